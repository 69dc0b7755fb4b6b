#pragma once
// The operations as a BEAM shell calls them, by GenServer.call, :rpc.call or :erpc.call:
//
//   GenServer.call({:zed, :"zed_controller@server"}, {:zed, 1, Zed.Cluster, :jobs, []})
//   :rpc.call(:"zed_controller@server", Zed.Cluster, :jobs, [])
//   {:ok, %{jobs: […]}} | {:error, :not_found, "…"}
//
// The function is an operation's name ('-' may be written '_'), its one argument a map or keyword
// list of that operation's arguments. Beside the operations there are `watch` and `unwatch`, by
// GenServer.call only, since events go to the process that calls (bin/erlang_watchers.hpp).

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "api/operations.hpp"
#include "beam/node.hpp"
#include "beam/term.hpp"
#include "core/cluster.hpp"

namespace zed::bin {

/// Events as messages to the caller, from now on. The answer has those after that number, which
/// were missed (at most 1,000), and as `last` the number of the newest.
struct WatchEvents {
  std::optional<std::uint64_t> after;
};
struct UnwatchEvents {};
using ShellRequest = std::variant<api::Request, WatchEvents, UnwatchEvents>;

/// Errors: `invalid` (not such a tuple), `unsupported` (another version), those of
/// api::make_request.
Result<ShellRequest> request_of_call(const beam::Call& call);

/// The white list of remote calls: Zed.Cluster, an operation, no argument or one.
bool is_remote_operation(std::string_view module, std::string_view function, std::size_t arity);
/// Errors: those of api::make_request, and `invalid` for arguments that cannot be read.
Result<api::Request> request_of_rpc(const beam::RpcCall& call);

/// The names that a cluster file declares: those and no others become atoms, since a BEAM never
/// frees one.
class DeclaredNames {
public:
  DeclaredNames() = default;
  explicit DeclaredNames(const Cluster& cluster);
  bool contains(std::string_view name) const { return names_.contains(name); }

private:
  std::set<std::string, std::less<>> names_;
};

/// {:ok, map} or {:error, kind, text}. Keys that are our words and declared names of nodes, jobs
/// and models are atoms; every other text is a binary.
beam::Term answer_term(const Result<Value>& result, const DeclaredNames& names);
/// {:zed_event, map}.
beam::Term event_term(const api::FleetEvent& event);

}  // namespace zed::bin
