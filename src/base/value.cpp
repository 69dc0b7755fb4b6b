#include "base/value.hpp"

#include "base/result.hpp"

namespace zed {

const std::string* Value::as_text() const {
  if (auto* text = std::get_if<std::string>(&data_)) return text;
  if (auto* symbol = std::get_if<Symbol>(&data_)) return &symbol->name;
  return nullptr;
}

const Value* Value::find(std::string_view key) const {
  auto* members = as_map();
  if (members == nullptr) return nullptr;
  for (const Member& member : *members)
    if (member.key == key) return &member.value;
  return nullptr;
}

Value& Value::set(std::string_view key, Value value) {
  if (is_null()) data_ = Map{};
  auto* members = std::get_if<Map>(&data_);
  ZED_ASSERT(members != nullptr);
  for (Member& member : *members) {
    if (member.key != key) continue;
    member.value = std::move(value);
    return *this;
  }
  members->push_back({std::string(key), std::move(value)});
  return *this;
}

Value& Value::push(Value value) {
  if (is_null()) data_ = List{};
  auto* items = std::get_if<List>(&data_);
  ZED_ASSERT(items != nullptr);
  items->push_back(std::move(value));
  return *this;
}

std::string_view Value::kind() const {
  static constexpr std::string_view kinds[] = {"nothing",  "true or false", "a whole number",
                                               "a number", "text",          "a word",
                                               "a list",   "a map"};
  return kinds[data_.index()];
}

bool operator==(const Value& a, const Value& b) {
  return a.data_ == b.data_;
}

}  // namespace zed
