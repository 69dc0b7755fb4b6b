#pragma once
// Why a job is where it is, or waits, in words for people.

#include <optional>
#include <string>
#include <vector>

#include "controller/machine.hpp"

namespace zed::controller {

/// The first of the jobs in its `after` that has not succeeded, and whether waiting is in vain for
/// now; nothing if it need not wait.
std::optional<std::string> awaited(const Machine& m, const DesiredJob& job);

/// The one reason that tables show; "" if there is nothing to say.
std::string reason_of(const Machine& m, const DesiredJob& job);

/// All of them, the most important first.
std::vector<std::string> reasons_of(const Machine& m, const DesiredJob& job);

}  // namespace zed::controller
