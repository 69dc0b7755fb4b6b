#include "api/operations.hpp"

#include <algorithm>
#include <type_traits>

#include "base/text.hpp"

namespace zed::api {
namespace {

template <class... Operations> std::vector<OperationInfo> infos_of(std::variant<Operations...>*) {
  return {OperationInfo{Operations::tag, Operations::help, Operations::changes}...};
}

std::vector<std::string> argument_names(const Request& request) {
  std::vector<std::string> names;
  std::visit(
      [&names](const auto& operation) {
        std::decay_t<decltype(operation)>::fields(
            operation, [&names](std::string_view name, const auto&) { names.emplace_back(name); });
      },
      request);
  return names;
}

/// What a client of a later version sends for an argument that nobody gave.
bool asks_for_nothing(const Value& value) {
  if (const auto* list = value.as_list()) return list->empty();
  if (const auto* map = value.as_map()) return map->empty();
  if (const auto* text = value.as_text()) return text->empty();
  if (const auto* flag = value.as_bool()) return !*flag;
  if (const auto* number = value.as_int()) return *number == 0;
  return value.is_null();
}

/// An argument that is not known would be obeyed by nobody: the answer was for another question.
Status check_arguments(std::string_view operation, const Request& request,
                       const Value::Map& given) {
  const std::vector<std::string> known = argument_names(request);
  for (const Value::Member& member : given) {
    if (std::find(known.begin(), known.end(), member.key) != known.end() || member.key == "type" ||
        asks_for_nothing(member.value))
      continue;
    const auto nearest = nearest_word(member.key, known);
    return fail(ErrorCode::invalid,
                std::string(operation) + " has no argument \"" +
                    percent_encode(member.key.substr(0, 80)) + "\"",
                nearest ? "did you mean \"" + *nearest + "\"?" : "arguments: " + join(known, ", "));
  }
  return {};
}

}  // namespace

std::vector<OperationInfo> all_operations() {
  return infos_of(static_cast<Request*>(nullptr));
}

Result<Request> make_request(std::string_view operation, const Value& arguments) {
  if (!arguments.is_null() && arguments.as_map() == nullptr)
    return fail(ErrorCode::invalid,
                "the arguments of an operation are a map, got " + std::string(arguments.kind()));
  Value tagged = arguments.is_null() ? Value::map() : arguments;
  tagged.set("type", Symbol{std::string(operation)});
  auto request = from_value<Request>(tagged);
  if (request) {
    if (arguments.as_map() != nullptr)
      ZED_CHECK(check_arguments(operation, *request, *arguments.as_map()));
    return request;
  }
  if (request.error().code != ErrorCode::unsupported) return request;
  std::vector<std::string> known;
  for (const OperationInfo& info : all_operations())
    known.emplace_back(info.name);
  auto nearest = nearest_word(operation, known);
  return fail(ErrorCode::not_found,
              "there is no operation \"" + percent_encode(operation.substr(0, 80)) + "\"",
              nearest ? "did you mean \"" + *nearest + "\"?" : "operations: " + join(known, ", "));
}

}  // namespace zed::api
