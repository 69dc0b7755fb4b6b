#pragma once
// Parameters of an array as a person types them. Inside the room only.

#include <string>
#include <string_view>
#include <vector>

#include "api/operations.hpp"
#include "base/result.hpp"

namespace zed::cli {

/// "lr=0.1,0.01": the values are separated by commas; "\," is a comma of a value. Errors: `invalid`
/// for a text without '=', with no name or an empty value; the controller judges the rest.
Result<api::ArrayAxis> parse_axis(std::string_view text);
Result<std::vector<api::ArrayAxis>> parse_axes(const std::vector<std::string>& texts);

}  // namespace zed::cli
