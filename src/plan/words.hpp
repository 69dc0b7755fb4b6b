#pragma once
// Inside the room: a field's value as a person reads it.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/value.hpp"
#include "core/requirement.hpp"

namespace zed::plan {

/// "none", "[a, b]", "12 s" for durations, "200 MiB/s" for rates: `field` decides the unit.
std::string words_of(std::string_view field, const Value& value);
/// "last 10, best 3 by min loss", or "all".
std::string words_of(const Retention& retention);

}  // namespace zed::plan
