#pragma once
// Arrays: one submit, one job for each combination of parameters. Pure. Inside the room only.

#include <string>
#include <utility>
#include <vector>

#include "api/operations.hpp"
#include "base/result.hpp"
#include "core/job.hpp"

namespace zed::controller {

inline constexpr std::size_t largest_array = 1000;

/// One combination: parameter and value, in the order of the axes.
using ArrayElement = std::vector<std::pair<std::string, std::string>>;

/// All combinations, the last axis running fastest. Errors: `invalid` for a name that is none, a
/// name or value given twice, an axis without values, or more than largest_array combinations.
Result<std::vector<ArrayElement>> elements_of(const std::vector<api::ArrayAxis>& axes);

/// Whether the job reads what varies. One that names other parameters ("{lr}") and not this one
/// would only burn time on equal runs; one that names none may read ZED_PARAM_<NAME>. Errors:
/// `invalid`.
Status check_parameters(const Job& base, const std::vector<api::ArrayAxis>& axes);

/// The identity of the job at `position` of an array that was submitted as `first`: the same each
/// time, so that a repeated submit makes no second job.
JobId element_id(const JobId& first, std::size_t position);

/// The declared job as one of an array: named "<name>-<number>", "{lr}" in its words replaced by
/// the value, ZED_PARAM_<LR> and ZED_ARRAY_INDEX in its environment. Errors: `invalid` for a name
/// that becomes too long.
Result<Job> element_of(const Job& base, const ArrayElement& element, std::size_t number,
                       const JobId& id);

}  // namespace zed::controller
