#pragma once
// Value to JSON text and back.

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/value.hpp"

namespace zed {

/// One line, no spaces. Symbols become strings; NaN and infinities the strings "NaN", "Infinity",
/// "-Infinity" (JSON has no such numbers).
std::string to_json(const Value& value);
/// The same, indented by two spaces, ending in a newline.
std::string to_json_pretty(const Value& value);

struct JsonLimits {
  std::size_t max_bytes = std::size_t{4} << 20;
  std::size_t max_depth = 64;
};

/// RFC 8259 JSON; a number beyond 64 bits signed becomes a double. Errors: `invalid` with the byte
/// offset, or `invalid` naming the limit that the text exceeds.
Result<Value> parse_json(std::string_view text, JsonLimits limits = {});

}  // namespace zed
