#pragma once
// A node of an Erlang cluster: listens, dials, and hands over what its peers say.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "beam/session.hpp"
#include "net/connection.hpp"
#include "net/endpoint.hpp"
#include "net/loop.hpp"
#include "net/tls.hpp"

namespace zed::beam {

/// epmd tells shells on which port a node listens. Nothing here needs it.
enum class Epmd {
  ignore,
  register_if_running,  ///< and again whenever it comes back
};

struct NodeOptions {
  std::string name;    ///< "zed@server"; see is_node_name
  std::string cookie;  ///< 1 to 255 bytes
  net::Endpoint listen{"127.0.0.1", 4370};
  /// What every connection is secured with; null: plain TCP, where `exposure` permits it. A peer's
  /// certificate must name the node that the handshake names.
  std::shared_ptr<const net::Tls> tls;
  net::Exposure exposure = net::Exposure::loopback_only;
  /// Names that take messages and calls.
  std::set<std::string, std::less<>> registered = {"zed"};
  /// The white list of :rpc.call and :erpc.call; empty allows none.
  std::function<bool(std::string_view module, std::string_view function, std::size_t arity)>
      allows_rpc;
  SessionLimits limits;
  std::size_t max_connections = 16'384;  ///< that are up
  std::size_t max_strangers = 1'024;     ///< that still shake hands (net/lobby.hpp: who makes room)
  Epmd epmd = Epmd::ignore;
  std::uint16_t epmd_port = 4369;
};

/// Called on the loop's thread, one at a time. A handler may call anything of the node, and may
/// destroy it. Unset ones drop what they would get; an unset `admit` admits nobody.
struct NodeHandlers {
  /// Whether a node of that name may connect. Asked before the cookie is checked, so it must not
  /// change anything.
  std::function<bool(const std::string& peer)> admit;
  std::function<void(const std::string& peer)> on_up;
  /// Once for each on_up. A peer that restarts and takes its connection over goes down first.
  std::function<void(const std::string& peer, const Error& why)> on_down;
  std::function<void(Call)> on_call;
  std::function<void(Message)> on_message;
  std::function<void(RpcCall)> on_rpc;
  /// A process that watch() was asked for has ended; not called when its node goes down.
  std::function<void(ProcessDown)> on_process_down;
  /// A connection that never came up: wrong cookie, a name not admitted, garbage, silence.
  std::function<void(const net::Endpoint& from, const Error& why)> on_refused;
};

class Node {
public:
  /// Listens at once. Errors: `invalid` (name, cookie), those of net::listen_tcp.
  static Result<std::unique_ptr<Node>> start(net::Loop& loop, NodeOptions options,
                                             NodeHandlers handlers);
  /// Tells monitors and links `shutdown`, and closes. No handler is called.
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const std::string& name() const;
  /// Where it listens, with the port that the kernel chose.
  net::Endpoint endpoint() const;

  /// Connects to a node; `done` is called once, on the loop, never inside this call. A connection
  /// that the peer opens meanwhile counts. Connecting again after an end is the caller's job.
  /// Errors: `exists` (an attempt is under way), `timeout`, `refused` (cookie, name),
  /// `unavailable`.
  void connect(const std::string& peer, const net::Endpoint& address, Millis deadline,
               std::function<void(Status)> done);
  /// Ends the connection; on_down is not called for it.
  void disconnect(const std::string& peer);
  std::vector<std::string> peers() const;
  bool is_up(const std::string& peer) const;
  /// The certificate of a peer that is up; null without TLS.
  const pki::CertificateInfo* certificate_of(const std::string& peer) const;
  /// Where a peer that is up has connected from, or was dialled at.
  std::optional<net::Endpoint> address_of(const std::string& peer) const;
  /// Ends every connection of whoever shows one of these serials, or a certificate that one of
  /// them signed; on_down tells.
  void drop_revoked(const std::set<std::string>& serials);

  /// To a registered name on the peer. Errors: `unavailable`, `busy` (the peer reads too slowly),
  /// `invalid` (over the cap of a message). Nothing is sent by halves. Sent messages arrive in
  /// order, or the connection ends.
  Status send(const std::string& peer, const Term& message, std::string_view to_name = "zed");
  /// To a process of the peer; one that has ended gets nothing, which is no error.
  Status send(const std::string& peer, const Pid& to, const Term& message);
  /// on_process_down tells of the process's end. Errors: as Session::watch.
  Status watch(const std::string& peer, const Pid& process);
  void unwatch(const std::string& peer, const Pid& process);
  /// Errors: as send; the caller may have gone, which is no error.
  Status reply(const Call& call, Term answer);
  /// The result of a remote call. Errors: as send, and `not_found` if the caller has given up.
  Status return_value(const RpcCall& call, Term value);
  /// Raises `reason` as an error at the caller.
  Status raise(const RpcCall& call, Term reason);

private:
  struct State;
  explicit Node(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace zed::beam
