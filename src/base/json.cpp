#include "base/json.hpp"

#include <cmath>

#include <boost/json.hpp>

namespace zed {
namespace {

namespace json = boost::json;

json::value to_boost(const Value& value) {
  if (auto* b = value.as_bool()) return *b;
  if (auto* n = value.as_int()) return *n;
  if (auto* d = value.as_double()) {
    if (std::isnan(*d)) return "NaN";
    if (std::isinf(*d)) return *d > 0 ? "Infinity" : "-Infinity";
    return *d;
  }
  if (auto* text = value.as_text()) return json::string(*text);
  if (auto* list = value.as_list()) {
    json::array items;
    items.reserve(list->size());
    for (const Value& item : *list)
      items.push_back(to_boost(item));
    return items;
  }
  if (auto* members = value.as_map()) {
    json::object object;
    object.reserve(members->size());
    for (const auto& member : *members)
      object.insert_or_assign(member.key, to_boost(member.value));
    return object;
  }
  return nullptr;
}

Value from_boost(const json::value& value) {
  switch (value.kind()) {
  case json::kind::null: return {};
  case json::kind::bool_: return value.get_bool();
  case json::kind::int64: return value.get_int64();
  case json::kind::uint64: return static_cast<double>(value.get_uint64());
  case json::kind::double_: return value.get_double();
  case json::kind::string: return std::string(value.get_string());
  case json::kind::array: {
    Value::List items;
    items.reserve(value.get_array().size());
    for (const json::value& item : value.get_array())
      items.push_back(from_boost(item));
    return items;
  }
  case json::kind::object: {
    Value::Map members;
    members.reserve(value.get_object().size());
    for (const auto& member : value.get_object())
      members.push_back({std::string(member.key()), from_boost(member.value())});
    return members;
  }
  }
  return {};
}

bool is_scalar(const Value& value) {
  return value.as_list() == nullptr && value.as_map() == nullptr;
}

void write_pretty(const Value& value, std::size_t depth, std::string& out);

template <class Items, class WriteItem>
void write_block(char open, char close, const Items& items, std::size_t depth, std::string& out,
                 WriteItem write_item) {
  out += open;
  bool first = true;
  for (const auto& item : items) {
    out += first ? "\n" : ",\n";
    first = false;
    out.append(2 * (depth + 1), ' ');
    write_item(item);
  }
  if (!first) {
    out += '\n';
    out.append(2 * depth, ' ');
  }
  out += close;
}

void write_pretty(const Value& value, std::size_t depth, std::string& out) {
  if (is_scalar(value)) {
    out += to_json(value);
  } else if (auto* list = value.as_list()) {
    write_block('[', ']', *list, depth, out,
                [&](const Value& item) { write_pretty(item, depth + 1, out); });
  } else {
    write_block('{', '}', *value.as_map(), depth, out, [&](const Value::Member& member) {
      out += to_json(Value(member.key)) + ": ";
      write_pretty(member.value, depth + 1, out);
    });
  }
}

}  // namespace

std::string to_json(const Value& value) {
  return json::serialize(to_boost(value));
}

std::string to_json_pretty(const Value& value) {
  std::string out;
  write_pretty(value, 0, out);
  out += '\n';
  return out;
}

Result<Value> parse_json(std::string_view text, JsonLimits limits) {
  if (text.size() > limits.max_bytes)
    return fail(ErrorCode::invalid, "JSON of " + std::to_string(text.size()) +
                                        " bytes is over the limit of " +
                                        std::to_string(limits.max_bytes));
  json::parse_options options;
  options.max_depth = limits.max_depth;
  json::stream_parser parser({}, options);
  boost::system::error_code error;
  std::size_t read = parser.write_some(text.data(), text.size(), error);
  if (!error && read < text.size()) {
    std::size_t rest = text.find_first_not_of(" \t\r\n", read);
    if (rest != std::string_view::npos) error = json::error::extra_data;
  }
  if (!error) parser.finish(error);
  if (error)
    return fail(ErrorCode::invalid,
                "not JSON: " + error.message() + " at byte " + std::to_string(read));
  return from_boost(parser.release());
}

}  // namespace zed
