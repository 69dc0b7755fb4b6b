#pragma once
// Inside the room: a field's value as a person reads it.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/value.hpp"
#include "core/cluster.hpp"
#include "core/requirement.hpp"

namespace zed::plan {

/// The cluster file's word for a member of what it declares: "requires" for "requirement". A member
/// that is called as its verb stays.
std::string_view verb_of(std::string_view field);
/// "2x A100 80 GB", "M3 Max 64 GB unified".
std::string words_of(const DeclaredGpu& gpu);
/// "none", "[a, b]", "12 s" for durations, "200 MiB/s" for rates: `field` decides the unit.
std::string words_of(std::string_view field, const Value& value);
/// "last 10, best 3 by min loss", or "all".
std::string words_of(const Retention& retention);

}  // namespace zed::plan
