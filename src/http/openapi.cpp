#include "http/openapi.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "api/operations.hpp"
#include "base/describe.hpp"
#include "http/status.hpp"

namespace zed::http {
namespace {

/// The unqualified name of a type: "JobRow" of zed::api::JobRow. From what the compiler calls this
/// function, since C++20 has no other word for it.
template <class T> std::string type_name() {
  const std::string_view whole = __PRETTY_FUNCTION__;
  const std::size_t begin = whole.find("T = ") + 4;
  std::string_view name = whole.substr(begin, whole.find_first_of(";]", begin) - begin);
  return std::string(name.substr(name.rfind(':') + 1));
}

Value typed(std::string_view type) {
  return Value::map().set("type", type);
}
Value reference(const std::string& component) {
  return Value::map().set("$ref", "#/components/schemas/" + component);
}
Value list_of(Value schema) {
  return typed("array").set("items", std::move(schema));
}
Value words(const std::vector<std::string_view>& names) {
  Value all = Value::list();
  for (std::string_view name : names)
    all.push(name);
  return typed("string").set("enum", std::move(all));
}

/// Schemas of replies, by the name of their type.
class Components {
public:
  /// A reference to the component; `make` describes it the first time.
  template <class Make> Value add(const std::string& name, Make make) {
    if (known_.insert(name).second) {
      Value schema = make();
      schemas_.emplace(name, std::move(schema));
    }
    return reference(name);
  }
  Value take() {
    Value all = Value::map();
    for (auto& [name, schema] : schemas_)
      all.set(name, std::move(schema));
    return all;
  }

private:
  std::set<std::string> known_;
  std::map<std::string, Value> schemas_;
};

/// One specialisation a shape of type, as base/describe.hpp has them for Codec. `components` is
/// null for arguments, which are described in place.
template <class T> struct SchemaOf;

template <class T> Value schema_of(Components* components) {
  return SchemaOf<T>::of(components);
}

template <> struct SchemaOf<Value> {
  static Value of(Components*) { return Value::map(); }
};
template <> struct SchemaOf<bool> {
  static Value of(Components*) { return typed("boolean"); }
};
template <std::integral T>
requires(!std::same_as<T, bool>) struct SchemaOf<T> {
  static Value of(Components*) {
    if constexpr (sizeof(T) == 8 && std::unsigned_integral<T>) {
      // Beyond the signed range they are text.
      Value both = Value::list().push("integer").push("string");
      return Value::map()
          .set("type", std::move(both))
          .set("minimum", 0)
          .set("maximum", std::numeric_limits<std::int64_t>::max())
          .set("pattern", "^(0|[1-9][0-9]{0,19})$");
    } else {
      return typed("integer")
          .set("minimum", static_cast<std::int64_t>(std::numeric_limits<T>::min()))
          .set("maximum", static_cast<std::int64_t>(std::numeric_limits<T>::max()));
    }
  }
};
template <> struct SchemaOf<double> {
  static Value of(Components*) {
    // NaN and the infinities are text.
    return Value::map().set("type", Value::list().push("number").push("string"));
  }
};
template <> struct SchemaOf<std::string> {
  static Value of(Components*) { return typed("string"); }
};
template <class Tag> struct SchemaOf<Quantity<Tag>> {
  static Value of(Components* c) { return schema_of<std::int64_t>(c); }
};
template <> struct SchemaOf<WallTime> {
  static Value of(Components* c) {
    return schema_of<std::int64_t>(c).set("description", "milliseconds since 1970, UTC; 0: never");
  }
};
template <Textual T> struct SchemaOf<T> {
  static Value of(Components*) { return typed("string"); }
};
template <class Tag> struct SchemaOf<Name<Tag>> {
  static Value of(Components*) { return typed("string"); }
};
template <NamedEnum E> struct SchemaOf<E> {
  static Value of(Components*) {
    constexpr auto names = enum_names(E{});
    return words({names.begin(), names.end()});
  }
};
template <class T> struct SchemaOf<std::optional<T>> {
  static Value of(Components* c) {
    return Value::map().set("anyOf", Value::list().push(schema_of<T>(c)).push(typed("null")));
  }
};
template <class T> struct SchemaOf<std::vector<T>> {
  static Value of(Components* c) { return list_of(schema_of<T>(c)); }
};
template <class T> struct SchemaOf<std::set<T>> {
  static Value of(Components* c) { return list_of(schema_of<T>(c)); }
};
template <class K, class T> struct SchemaOf<std::map<K, T>> {
  static Value of(Components* c) {
    return typed("object").set("additionalProperties", schema_of<T>(c));
  }
};
template <> struct SchemaOf<Error> {
  static Value of(Components*) {
    std::vector<std::string_view> codes;
    for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code)
      codes.push_back(to_string(static_cast<ErrorCode>(code)));
    return typed("object")
        .set("properties", Value::map()
                               .set("code", words(codes))
                               .set("message", typed("string"))
                               .set("frames", list_of(typed("string")))
                               .set("hint", typed("string")))
        .set("required", Value::list().push("code").push("message").push("frames").push("hint"));
  }
};

template <class T> Value members_of(Components* components) {
  Value properties = Value::map();
  Value required = Value::list();
  T object{};
  T::fields(object, [&](std::string_view name, auto& member) {
    properties.set(name, schema_of<std::remove_reference_t<decltype(member)>>(components));
    required.push(name);
  });
  Value schema = typed("object").set("properties", std::move(properties));
  if (components != nullptr && !required.as_list()->empty())
    schema.set("required", std::move(required));
  return schema;
}

template <Described T> struct SchemaOf<T> {
  static Value of(Components* components) {
    if (components == nullptr) return members_of<T>(nullptr);
    return components->add(type_name<T>(), [components] { return members_of<T>(components); });
  }
};
template <class... Alternatives> struct SchemaOf<std::variant<Alternatives...>> {
  static Value of(Components* components) {
    Value all = Value::list();
    (all.push(one<Alternatives>(components)), ...);
    return Value::map().set("oneOf", std::move(all));
  }

private:
  template <class Alternative> static Value one(Components* components) {
    Value type = Value::map().set("const", Alternative::tag);
    Value tagged = typed("object")
                       .set("properties", Value::map().set("type", std::move(type)))
                       .set("required", Value::list().push("type"));
    return Value::map().set(
        "allOf", Value::list().push(schema_of<Alternative>(components)).push(std::move(tagged)));
  }
};

// ---- responses

Value json_content(Value schema) {
  return Value::map().set("application/json", Value::map().set("schema", std::move(schema)));
}

Value with_schema_number() {
  return typed("object")
      .set("properties", Value::map().set("schema", Value::map().set("const", api::schema_version)))
      .set("required", Value::list().push("schema"));
}

/// Every status that an error may have, with the codes that come under it.
std::map<unsigned, std::string> error_statuses() {
  // 401, 405, 413 and 431 are the door's own, before any operation.
  std::map<unsigned, std::string> statuses = {{401, "no token, or a wrong one"},
                                              {405, "the method does not fit"},
                                              {413, "the request is too large"},
                                              {431, "the request's head is too large"}};
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    std::string& text = statuses[status_of(static_cast<ErrorCode>(code))];
    text += (text.empty() ? "" : ", ") + std::string(to_string(static_cast<ErrorCode>(code)));
  }
  return statuses;
}

Value error_responses() {
  Value responses = Value::map();
  for (const auto& [status, text] : error_statuses())
    responses.set(
        "Failure" + std::to_string(status),
        Value::map().set("description", text).set("content", json_content(reference("Failure"))));
  return responses;
}

Value responses_with(Value success) {
  Value responses = Value::map().set("200", std::move(success));
  for (const auto& entry : error_statuses()) {
    const std::string status = std::to_string(entry.first);
    responses.set(status, Value::map().set("$ref", "#/components/responses/Failure" + status));
  }
  return responses;
}

Value text_response(std::string_view type, std::string_view description) {
  return Value::map()
      .set("description", description)
      .set("content", Value::map().set(type, Value::map().set("schema", typed("string"))));
}

// ---- paths

template <class Operation> void add_operation(Value& paths, Components& components) {
  Value reply =
      Value::map().set("allOf", Value::list()
                                    .push(schema_of<typename Operation::Reply>(&components))
                                    .push(with_schema_number()));
  Value post = Value::map()
                   .set("operationId", Operation::tag)
                   .set("summary", Operation::help)
                   .set("x-changes", Operation::changes)
                   .set("requestBody",
                        Value::map().set("content", json_content(schema_of<Operation>(nullptr))))
                   .set("responses", responses_with(Value::map()
                                                        .set("description", "the reply")
                                                        .set("content", json_content(reply))));
  paths.set("/v1/" + std::string(Operation::tag), Value::map().set("post", std::move(post)));
}

template <class... Operations>
void add_operations(Value& paths, Components& components, std::variant<Operations...>*) {
  (add_operation<Operations>(paths, components), ...);
}

Value get(std::string_view id, std::string_view summary, Value success) {
  return Value::map()
      .set("operationId", id)
      .set("summary", summary)
      .set("responses", responses_with(std::move(success)));
}

void add_event_stream(Value& paths) {
  Value after = Value::map()
                    .set("name", "after")
                    .set("in", "query")
                    .set("description", "begin with the events of a higher number")
                    .set("schema", typed("integer")
                                       .set("minimum", 0)
                                       .set("maximum", std::numeric_limits<std::int64_t>::max()));
  Value stream =
      get("follow-events", "what happens, as server-sent events",
          text_response("text/event-stream",
                        "`id` is the event's number, `event` is `fleet`, `data` the event as JSON; "
                        "`event: dropped` ends the stream of a reader that was too slow"))
          .set("parameters", Value::list().push(std::move(after)));
  Value path = Value::map();
  if (const Value* listed = paths.find("/v1/events")) path = *listed;
  path.set("get", std::move(stream));
  paths.set("/v1/events", std::move(path));
}

Value operation_list() {
  Value row = typed("object")
                  .set("properties", Value::map()
                                         .set("name", typed("string"))
                                         .set("help", typed("string"))
                                         .set("changes", typed("boolean")))
                  .set("required", Value::list().push("name").push("help").push("changes"));
  Value list = typed("object")
                   .set("properties", Value::map().set("operations", list_of(std::move(row))))
                   .set("required", Value::list().push("operations"));
  return Value::map().set("allOf", Value::list().push(std::move(list)).push(with_schema_number()));
}

Value json_response(std::string_view description, Value schema) {
  return Value::map()
      .set("description", description)
      .set("content", json_content(std::move(schema)));
}

Value failure() {
  return typed("object")
      .set("properties", Value::map()
                             .set("schema", Value::map().set("const", api::schema_version))
                             .set("error", reference("Error")))
      .set("required", Value::list().push("schema").push("error"));
}

}  // namespace

Value openapi_document() {
  Components components;
  Value paths = Value::map();
  add_operations(paths, components, static_cast<api::Request*>(nullptr));
  add_event_stream(paths);
  paths.set("/v1/operations",
            Value::map().set("get", get("list-operations", "this table in short",
                                        json_response("the table", operation_list()))));
  paths.set("/v1/openapi.json",
            Value::map().set("get", get("openapi", "this document",
                                        json_response("OpenAPI 3.1", typed("object")))));
  components.add("Error", [] { return schema_of<Error>(nullptr); });
  components.add("Failure", failure);
  return Value::map()
      .set("openapi", "3.1.0")
      .set("info",
           Value::map()
               .set("title", "Zed controller")
               .set("version", std::to_string(api::schema_version))
               .set("description", "Operations of a Zed fleet. Times are milliseconds since "
                                   "1970 (UTC), sizes bytes, durations milliseconds; null "
                                   "is unknown."))
      .set("paths", std::move(paths))
      .set("components",
           Value::map()
               .set("schemas", components.take())
               .set("responses", error_responses())
               .set("securitySchemes",
                    Value::map().set("token",
                                     Value::map().set("type", "http").set("scheme", "bearer"))))
      .set("security",
           Value::list().push(Value::map().set("token", Value::list())).push(Value::map()));
}

}  // namespace zed::http
