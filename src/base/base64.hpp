#pragma once
// Base64 (RFC 4648, section 4, with padding): bytes inside of text.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace zed {

std::string to_base64(std::string_view bytes);

/// Errors: `invalid` for another alphabet, a missing '=', or bits that no encoder leaves; text that
/// stands for more than `limit` bytes is refused before memory is taken.
Result<std::string> from_base64(std::string_view text, std::size_t limit);

}  // namespace zed
