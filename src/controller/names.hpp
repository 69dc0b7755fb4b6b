#pragma once
// What a person typed, and what it means. Pure. Errors: `not_found`, with the nearest word as hint.

#include <string_view>

#include "base/result.hpp"
#include "controller/desired.hpp"
#include "core/fleet.hpp"

namespace zed::controller {

/// A submitted job: by its name (the last submitted of that name), by the same name with '-' for
/// '_', by the last component of its dataset, by its identity, or by its name followed by "-job".
Result<JobId> find_job(const DesiredState& state, std::string_view typed);

/// A job of the applied cluster file, by the same rules.
Result<const Job*> find_declared_job(const DesiredState& state, std::string_view typed);

/// A node that joined or is declared: "server", ":server", "zed@server".
Result<NodeName> find_node(const DesiredState& state, const FleetView& view,
                           std::string_view typed);

/// The same wishes with nodes by their full names. A wish never blocks, so that a misspelt node
/// would be noticed by nobody: it is the error of find_node().
Result<Preference> with_known_nodes(const DesiredState& state, const FleetView& view,
                                    Preference wishes);

/// Whether a declared GPU name means this GPU (sched/gpu_name.hpp): "RTX 4090" is no laptop's.
bool same_gpu(std::string_view declared, const Gpu& detected);

/// `names` as a hint: "did you mean `finetune`?", or the list of what there is.
std::string hint_for(std::string_view typed, const std::vector<std::string>& names,
                     std::string_view noun);

}  // namespace zed::controller
