#include "api/operations.hpp"

#include "base/text.hpp"

namespace zed::api {
namespace {

template <class... Operations> std::vector<OperationInfo> infos_of(std::variant<Operations...>*) {
  return {OperationInfo{Operations::tag, Operations::help, Operations::changes}...};
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
  if (request || request.error().code != ErrorCode::unsupported) return request;
  std::vector<std::string> known;
  for (const OperationInfo& info : all_operations())
    known.emplace_back(info.name);
  auto nearest = nearest_word(operation, known);
  return fail(ErrorCode::not_found,
              "there is no operation \"" + percent_encode(operation.substr(0, 80)) + "\"",
              nearest ? "did you mean \"" + *nearest + "\"?" : "operations: " + join(known, ", "));
}

}  // namespace zed::api
