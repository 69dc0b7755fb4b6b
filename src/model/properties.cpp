#include "model/properties.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/text.hpp"

namespace zed::model {
namespace {

constexpr std::int64_t largest_gpu_gib = 288;
constexpr std::size_t longest_word = 128;
constexpr std::size_t longest_geometry = 4096;  ///< a ZFS property holds 8 KiB

void put(Properties& properties, const char* key, std::string value) {
  value = value.substr(0, longest_word);
  // From a file: cut off inside a character, or never text at all.
  for (int i = 0; i < 3 && !value.empty() && !is_valid_utf8(value); ++i)
    value.pop_back();
  if (!value.empty() && is_valid_utf8(value)) properties[key] = std::move(value);
}

}  // namespace

std::string size_gb(Bytes bytes) {
  const double gb = static_cast<double>(bytes.value) / 1e9;
  const int whole = gb >= 1 ? static_cast<int>(std::floor(std::log10(gb))) + 1 : 0;
  int decimals = std::max(0, 3 - whole);
  for (double small = gb; small > 0 && small < 0.1 && decimals < 9; small *= 10)
    ++decimals;
  std::string text = fmt::format("{:.{}f}", gb, decimals);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

Requirement requirement_of(const Geometry& geometry, const Workload& workload) {
  const std::int64_t gib = gibibytes(1).value;
  const std::int64_t whole = (estimate(geometry, workload).total().value + gib - 1) / gib;
  const MemorySize size{MemorySize::Kind::exact, gibibytes(whole).value};
  Requirement requirement;
  (whole <= largest_gpu_gib ? requirement.vram : requirement.vram_total) = size;
  return requirement;
}

Properties properties_of(const Facts& facts) {
  Properties properties;
  put(properties, "format", facts.format);
  put(properties, "architecture", facts.architecture);
  put(properties, "licence", facts.licence);
  put(properties, "dtype", facts.dtype);
  if (facts.tensor_bytes > Bytes{}) {
    put(properties, "size_gb", size_gb(facts.tensor_bytes));
    put(properties, "quantized", facts.quantised.empty() ? "none" : facts.quantised);
    put(properties, "requires", requirement_of(facts.geometry, {}).str());
  }
  if (facts.parameters > 0) {
    put(properties, "parameters", std::to_string(facts.parameters));
    put(properties, "bits_per_weight", fmt::format("{:.2f}", facts.bits_per_weight));
  }
  if (facts.geometry.context > 0)
    put(properties, "context", std::to_string(facts.geometry.context));
  std::string geometry = to_json(to_value(facts.geometry));
  if (geometry.size() <= longest_geometry) properties["geometry"] = std::move(geometry);
  return properties;
}

std::optional<Geometry> geometry_of(const Properties& properties) {
  auto found = properties.find("geometry");
  if (found == properties.end()) return std::nullopt;
  JsonLimits limits;
  limits.max_bytes = 2 * longest_geometry;
  auto value = parse_json(found->second, limits);
  if (!value) return std::nullopt;
  auto geometry = from_value<Geometry>(*value);
  if (!geometry || !geometry->is_sane()) return std::nullopt;
  return std::move(*geometry);
}

}  // namespace zed::model
