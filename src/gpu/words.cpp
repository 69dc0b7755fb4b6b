#include "gpu/words.hpp"

#include <algorithm>

#include "base/number.hpp"
#include "base/text.hpp"

namespace zed::gpu {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 50;
constexpr std::size_t most_lines = 100'000;
constexpr std::size_t longest_text = 256;

std::string plain(std::string_view text) {
  text = trim(text);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']')
    text = text.substr(1, text.size() - 2);
  return lower(trim(text).substr(0, longest_text));
}

struct Unit {
  std::string_view name;
  std::int64_t bytes;
};
constexpr std::array<Unit, 10> units{{{"b", 1},
                                      {"bytes", 1},
                                      {"kb", 1 << 10},
                                      {"kib", 1 << 10},
                                      {"mb", 1 << 20},
                                      {"mib", 1 << 20},
                                      {"gb", 1 << 30},
                                      {"gib", 1 << 30},
                                      {"tb", std::int64_t{1} << 40},
                                      {"tib", std::int64_t{1} << 40}}};

}  // namespace

Word word_of(std::string_view text) {
  const std::string word = plain(text);
  auto has = [&](std::string_view part) { return word.find(part) != std::string::npos; };
  if (word.empty() || word == "n/a" || word == "none" || word == "not supported" ||
      word == "not available" || word == "not found" || word == "unknown" || word == "null" ||
      word == "unsupported" || word == "nan" || word == "-" || has("not supported"))
    return {FieldState::unsupported, GpuHealth::ok};
  if (has("insufficient permission") || has("permission denied") || has("no permission"))
    return {FieldState::denied, GpuHealth::ok};
  if (has("gpu is lost") || has("fallen off the bus")) return {FieldState::error, GpuHealth::lost};
  if (has("requires reset") || has("reset required"))
    return {FieldState::error, GpuHealth::reset_required};
  // A message in brackets is never a value; "ERR!" is what the table prints.
  bool bracketed = trim(text).starts_with('[') && trim(text).ends_with(']');
  if (bracketed || word == "err!" || word == "error" || word == "unknown error")
    return {FieldState::error, GpuHealth::ok};
  return {};
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  return parse_number<std::int64_t>(trim(text));
}

std::optional<double> decimal_number(std::string_view text) {
  const auto number = parse_number<double>(trim(text));
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<std::uint64_t> hexadecimal(std::string_view text) {
  text = trim(text);
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return parse_number<std::uint64_t>(text, 16);
}

std::optional<Bytes> bytes_of(std::int64_t count, std::int64_t unit) {
  if (count < 0 || count > most_bytes / unit) return std::nullopt;
  return Bytes{count * unit};
}

std::optional<Bytes> size_of(std::string_view text) {
  text = trim(text);
  std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string unit = lower(trim(text.substr(digits)));
  auto number = decimal_number(text.substr(0, digits));
  if (!number || *number < 0) return std::nullopt;
  for (const Unit& known : units)
    if (unit == known.name) {
      double bytes = *number * static_cast<double>(known.bytes);
      if (bytes > static_cast<double>(most_bytes)) return std::nullopt;
      return Bytes{static_cast<std::int64_t>(bytes)};
    }
  return std::nullopt;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty() && lines.size() < most_lines) {
    std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

Known<std::string> known_text(std::string_view text, const std::string& source) {
  return known<std::string>(text, source, [](std::string_view t) -> std::optional<std::string> {
    t = trim(t).substr(0, longest_text);
    if (!is_valid_utf8(t)) return std::nullopt;
    return std::string(t);
  });
}

Known<Bytes> known_mebibytes(std::string_view text, const std::string& source) {
  return known<Bytes>(text, source, [](std::string_view t) -> std::optional<Bytes> {
    t = trim(t);
    if (t.ends_with("MiB")) t = trim(t.substr(0, t.size() - 3));
    auto number = whole_number(t);
    return number ? bytes_of(*number, 1 << 20) : std::nullopt;
  });
}

}  // namespace zed::gpu
