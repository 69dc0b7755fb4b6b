#pragma once
// The operations as a BEAM shell calls them:
//
//   GenServer.call({:zed, :"zed_controller@server"}, {:zed, 1, Zed.Cluster, :jobs, []})
//   {:ok, %{jobs: […]}} | {:error, :not_found, "…"}
//
// The function is an operation's name ('-' may be written '_'), its one argument a map or keyword
// list of that operation's arguments.

#include "api/operations.hpp"
#include "beam/node.hpp"
#include "beam/term.hpp"

namespace zed::bin {

/// Errors: `invalid` (not such a tuple), `unsupported` (another version), those of
/// api::make_request.
Result<api::Request> request_of_call(const beam::Call& call);

beam::Term answer_term(const Result<Value>& result);

}  // namespace zed::bin
