#include "cli/axis.hpp"

namespace zed::cli {
namespace {

/// At commas, but not where a backslash stands before one.
std::vector<std::string> values_of(std::string_view text) {
  std::vector<std::string> values(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escapes = text[i] == '\\' && i + 1 < text.size() && text[i + 1] == ',';
    if (escapes)
      values.back() += text[++i];
    else if (text[i] == ',')
      values.emplace_back();
    else
      values.back() += text[i];
  }
  return values;
}

}  // namespace

Result<api::ArrayAxis> parse_axis(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return fail(ErrorCode::invalid, "\"" + std::string(text) + "\" names no parameter and values",
                "--array lr=0.1,0.01");
  api::ArrayAxis axis{std::string(text.substr(0, equals)), values_of(text.substr(equals + 1))};
  for (const std::string& value : axis.values)
    if (value.empty())
      return fail(ErrorCode::invalid, "parameter " + axis.name + " has an empty value",
                  "--array " + axis.name + "=A,B");
  return axis;
}

Result<std::vector<api::ArrayAxis>> parse_axes(const std::vector<std::string>& texts) {
  std::vector<api::ArrayAxis> axes;
  for (const std::string& text : texts) {
    ZED_TRY(auto axis, parse_axis(text));
    axes.push_back(std::move(axis));
  }
  return axes;
}

}  // namespace zed::cli
