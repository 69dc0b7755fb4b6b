#pragma once
// Estimates of encoded size, so that messages stay below message_limit without being encoded twice.

#include <cstddef>
#include <vector>

#include "core/message.hpp"

namespace zed::agent {

/// Below message_limit by more than an estimate can be wrong.
inline constexpr std::size_t page_budget = message_limit * 5 / 8;

/// An upper bound for properties of printable text; keys and numbers of the encoding included.
std::size_t encoded_size(const Properties& properties);
std::size_t encoded_size(const Snapshot& snapshot);

/// Cuts datasets into pages: a dataset with many snapshots goes on in the next page, its properties
/// repeated. There is always at least one page. A set of properties that is itself too large (a
/// person may have set megabytes) is cut down to those that Zed acts upon.
std::vector<std::vector<Dataset>> pages_of(const std::vector<const Dataset*>& datasets,
                                           std::size_t budget = page_budget);

}  // namespace zed::agent
