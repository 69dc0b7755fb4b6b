#pragma once
// Control messages: what one node asks of another. Reference: "Protocol between Connected Nodes",
// ERTS user's guide. Only those that Zed understands have a type; the tuples for sending are made
// here too, so that the numbers stay in one file.

#include <cstdint>
#include <string>
#include <variant>

#include "base/result.hpp"
#include "beam/frames.hpp"
#include "beam/term.hpp"

namespace zed::beam::control {

/// SEND, SEND_SENDER and their traced forms.
struct Send {
  Pid to;
  Term message;
};
/// REG_SEND.
struct SendToName {
  Pid from;
  std::string to;
  Term message;
};
/// ALIAS_SEND.
struct SendToAlias {
  Reference to;
  Term message;
};
/// MONITOR_P and DEMONITOR_P. The target is a Pid or the Atom of a registered name.
struct Monitor {
  Pid from;
  Term target;
  Reference reference;
};
struct Demonitor {
  Pid from;
  Reference reference;
};
/// MONITOR_P_EXIT: what we watched has ended, or was not there.
struct MonitorExit {
  Reference reference;
};
struct Link {
  Pid from;
  Pid to;
};
/// UNLINK_ID: owes an acknowledgement.
struct Unlink {
  std::uint64_t id = 0;
  Pid from;
  Pid to;
};
/// EXIT: the process `from` ended, and was linked to `to`.
struct Exit {
  Pid from;
  Pid to;
};
struct SpawnRequest {
  Reference id;
  Pid from;
  std::string module;
  std::string function;
  std::int64_t arity = 0;
  bool monitored = false;
  bool linked = false;
  Term arguments;
};
/// Legal, and of no consequence here: group leaders, exit/2 (our processes do not die of it),
/// replies to requests that we never make.
struct Ignored {};

using Message = std::variant<Send, SendToName, SendToAlias, Monitor, Demonitor, MonitorExit, Link,
                             Unlink, Exit, SpawnRequest, Ignored>;

/// Errors: `corrupt` for a tuple that is no control message, `unsupported` for an unknown number.
Result<Message> parse(Packet packet);

Term send(const Pid& to);
Term send_to_name(const Pid& from, std::string_view name);
Term send_to_alias(const Pid& from, const Reference& alias);
Term monitor(const Pid& from, const Pid& target, const Reference& reference);
Term demonitor(const Pid& from, const Pid& target, const Reference& reference);
/// `from` is what was monitored, as the monitor named it.
Term monitor_exit(const Term& from, const Pid& to, const Reference& reference, Term reason);
Term exit(const Pid& from, const Pid& to, Term reason);
Term unlink_ack(const Unlink& unlink);
Term spawned(const SpawnRequest& request, const Pid& process);
/// `why` is an atom.
Term spawn_refused(const SpawnRequest& request, std::string_view why);

}  // namespace zed::beam::control
