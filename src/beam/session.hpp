#pragma once
// One connection to another node, from its first byte to its end, as a pure state machine: bytes
// and time in, events and bytes out. beam/node.hpp gives it a socket and a clock.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "beam/control.hpp"
#include "beam/frames.hpp"
#include "beam/handshake.hpp"
#include "beam/outbox.hpp"

namespace zed::beam {

struct SessionLimits {
  Millis handshake = seconds(7);  ///< OTP's own
  /// T: something is sent at least every T/4, and a peer silent for T is given up. OTP's
  /// net_ticktime; nodes of one cluster should agree.
  Millis tick = seconds(60);
  std::size_t max_output = std::size_t{8} << 20;  ///< bytes waiting for a slow peer
  std::size_t max_monitors = 16'384;              ///< and as many links
  std::size_t max_spawned = 1'024;                ///< rpc calls that wait for their answer
  FrameLimits frames;
  TermLimits terms;
};

struct SessionOptions {
  Handshake::Identity self;
  Handshake::Random random;
  /// Names that take messages and can be monitored. `net_kernel` is always there, for ping.
  std::set<std::string, std::less<>> registered = {"zed"};
  /// The white list of :rpc.call and :erpc.call: module, function, arity. Anything else is undef.
  std::function<bool(std::string_view, std::string_view, std::size_t)> allows_rpc;
  /// Numbers of processes, unique in the node's life, from 2 on. Process 1 is what is registered.
  std::function<std::uint64_t()> next_process;
  SessionLimits limits;
};

/// A GenServer.call; answer it by reply(), late or never: the caller's own time-out ends its wait.
struct Call {
  std::string peer;
  std::string to;  ///< the registered name
  Pid from;
  Term tag;  ///< goes back as it came
  Term request;
};
/// Any other message to a registered name (`{'$gen_cast', …}` too).
struct Message {
  std::string peer;
  std::string to;
  Pid from;
  Term content;
};
/// An allowed :rpc.call or :erpc.call.
struct RpcCall {
  std::string peer;
  std::uint64_t id = 0;
  std::string module;
  std::string function;
  std::vector<Term> arguments;
};

/// An accepted peer said its name: the owner owes answer().
struct PeerNamed {
  std::string peer;
};
struct PeerUp {
  PeerInfo peer;
};
/// A process that was watched by watch() has ended, or was not there.
struct ProcessDown {
  std::string peer;
  Pid process;
};
/// The session is over. What take_output() still gives should be sent before closing.
struct Ended {
  Error error;
};
using SessionEvent = std::variant<PeerNamed, PeerUp, Call, Message, RpcCall, ProcessDown, Ended>;

class Session {
public:
  static Session dial(SessionOptions options, std::string peer, Instant now);
  static Session accept(SessionOptions options, Instant now);

  std::vector<SessionEvent> receive(std::span<const std::uint8_t> bytes, Instant now);
  /// Time-outs of the handshake and of a silent peer; ticks. Call at next_deadline() or often.
  std::vector<SessionEvent> on_time(Instant now);
  Instant next_deadline() const;
  /// After PeerNamed. The events of nok and not_allowed end with Ended.
  std::vector<SessionEvent> answer(Verdict verdict);

  bool is_up() const { return stage_ == Stage::up; }
  bool is_over() const { return stage_ == Stage::over; }
  const PeerInfo& peer() const { return peer_; }

  /// To a registered name on the peer. Errors: `unavailable` (not up), `busy` (the peer does not
  /// read fast enough), `invalid` (beyond the cap of a message). Nothing is sent by halves.
  Status send(std::string_view to_name, const Term& message);
  /// To a process of the peer. Errors: the same. One that has ended gets nothing, and nobody knows.
  Status send(const Pid& to, const Term& message);
  Status reply(const Call& call, Term answer);
  /// ProcessDown comes once for a process of the peer, at once if it is not there; with the end of
  /// the session it comes no more. Errors: `unavailable`, `busy` (more watched than max_monitors).
  Status watch(const Pid& process);
  /// Forgets a watch; ProcessDown comes no more.
  void unwatch(const Pid& process);
  /// The result of an RpcCall, or the reason of the error that it raises at the caller. `not_found`
  /// if the caller has given up.
  Status return_value(std::uint64_t rpc, Term value);
  Status raise(std::uint64_t rpc, Term reason);
  /// Tells every monitor and link that our processes end, before the connection is closed.
  void say_goodbye(const Term& reason);

  /// Bytes to send, at least a frame and up to about `most`; fragments of large messages take
  /// turns. Counts as traffic, so the next tick is T/4 from `now`.
  std::string take_output(Instant now, std::size_t most = SIZE_MAX);
  bool has_output() const;

private:
  enum class Stage { handshake, up, over };
  struct Spawned {
    control::SpawnRequest request;
    Term result_tag;
  };
  struct Watch {
    Pid watcher;
    Term target;  ///< as the watcher named it
  };
  using Events = std::vector<SessionEvent>;

  Session(SessionOptions options, Handshake handshake, Instant now);
  void end(Events& events, Error error);
  void drive_handshake(Events& events, std::span<const std::uint8_t>& bytes);
  void drive_frames(Events& events, std::span<const std::uint8_t>& bytes);
  void on_packet(Events& events, Packet packet);

  void on(Events& events, control::Send& message);
  void on(Events& events, control::SendToName& message);
  void on(Events& events, control::SendToAlias& message);
  void on(Events& events, control::Monitor& message);
  void on(Events& events, control::Demonitor& message);
  void on(Events& events, control::MonitorExit& message);
  void on(Events& events, control::Link& message);
  void on(Events& events, control::Unlink& message);
  void on(Events& events, control::Exit& message);
  void on(Events& events, control::SpawnRequest& message);
  void on(Events& events, control::Ignored& message);
  void on_gen_call(Events& events, control::SendToName& message, const std::vector<Term>& parts);
  void on_erpc(Events& events, control::SpawnRequest& request);

  Pid own_pid(std::uint64_t number) const;
  bool is_alive(const Term& target) const;
  Status finish_rpc(std::uint64_t rpc, const std::function<Term(const Term& tag)>& reason);
  void tell_watchers(const Pid& process, const Term& reason);
  Reference new_reference();
  std::size_t waiting() const { return output_.size() + outbox_.size(); }
  /// `to` is the receiver, as Outbox::add has it.
  Status post(const std::string& to, const Term& control, const Term& message);
  void post_control(const Pid& to, const Term& control);

  SessionOptions options_;
  Handshake handshake_;
  Stage stage_ = Stage::handshake;
  PeerInfo peer_;
  FrameReader reader_;
  FrameWriter writer_{false};
  std::string output_;  ///< of the handshake
  Outbox outbox_;
  Instant started_;
  Instant last_received_;
  Instant last_sent_;
  std::map<Reference, Watch> watches_;
  std::map<Reference, Pid> watched_;  ///< the peer's processes, by the monitor that we hold
  std::uint64_t last_reference_ = 0;
  std::set<std::pair<Pid, Pid>> links_;  ///< the peer's process, ours
  std::map<std::uint64_t, Spawned> spawned_;
};

}  // namespace zed::beam
