// What may be the name and the value of a property.

#include <algorithm>

#include "base/text.hpp"
#include "store/catalog.hpp"

namespace zed::store {
namespace {

constexpr std::size_t longest_value = 8191;
constexpr std::size_t longest_key = 200;

bool is_property_name(std::string_view name) {
  return !name.empty() && name.size() <= longest_key &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
                  c == ':' || c == '-';
         });
}

Status check_property(const std::string& name, const std::string& value) {
  if (!is_property_name(name))
    return fail(ErrorCode::invalid,
                "\"" + percent_encode(name.substr(0, 80)) + "\" is no property name",
                "use lower-case letters, digits, '.', '_', ':' and '-', at most 200");
  if (value.size() > longest_value || percent_encode(value).size() > longest_value)
    return fail(ErrorCode::invalid,
                "the value of property " + name + " is longer than 8191 bytes once encoded");
  bool is_identity = name == property::uuid || name == property::id;
  if (is_identity && !bytes_of_hex(value))
    return fail(ErrorCode::invalid, "property " + name + " is not 32 hexadecimal digits");
  return {};
}

}  // namespace

Status check_properties(const Properties& properties) {
  for (const auto& [name, value] : properties)
    ZED_CHECK(check_property(name, value));
  return {};
}

Status check_properties(const PropertyChanges& changes) {
  for (const auto& [name, value] : changes)
    ZED_CHECK(check_property(name, value.value_or(std::string(32, '0'))));
  return {};
}

}  // namespace zed::store
