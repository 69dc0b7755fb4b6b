#include "http/target.hpp"

#include <algorithm>

#include "base/number.hpp"
#include "base/text.hpp"

namespace zed::http {
namespace {

constexpr std::string_view prefix = "/v1/";

NoRoute not_found(std::string_view path) {
  return {404,
          {},
          Error{ErrorCode::not_found,
                "there is nothing at \"" + percent_encode(path.substr(0, 80)) + "\"",
                {},
                "GET /v1/operations lists what there is"}};
}

NoRoute wrong_method(std::string_view method, std::string allow) {
  return {405, allow,
          Error{ErrorCode::invalid,
                "the method " + percent_encode(method.substr(0, 20)) + " does not fit",
                {},
                "use " + allow}};
}

bool is_operation_name(std::string_view name) {
  return !name.empty() && name.size() <= 40 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

/// The one query that we know. Others are ignored, as unknown JSON members are.
std::variant<Route, NoRoute> events_of(std::string_view query) {
  FollowEvents follow;
  for (const std::string& part : split(query, '&')) {
    if (part.substr(0, 6) != "after=") continue;
    const auto number = parse_number<std::uint64_t>(std::string_view(part).substr(6));
    if (!number)
      return NoRoute{400,
                     {},
                     Error{ErrorCode::invalid,
                           "\"after\" is the number of an event",
                           {},
                           "GET /v1/events?after=17"}};
    follow.after = *number;
  }
  return Route{follow};
}

}  // namespace

std::variant<Route, NoRoute> route_of(std::string_view method, std::string_view target) {
  const std::size_t question = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, question);
  const std::string_view query = target.substr(std::min(question + 1, target.size()));
  const bool is_get = method == "GET";
  if (path == "/healthz") {
    if (!is_get) return wrong_method(method, "GET");
    return Route{AskHealth{}};
  }
  constexpr std::string_view enrol = "/enrol/";
  if (path.starts_with(enrol)) {
    const std::string_view step = path.substr(enrol.size());
    if (!is_operation_name(step)) return not_found(path);
    if (method != "POST") return wrong_method(method, "POST");
    return Route{EnrolMachine{std::string(step)}};
  }
  if (path.substr(0, prefix.size()) != prefix) return not_found(path);
  const std::string_view name = path.substr(prefix.size());
  if (name == "operations") {
    if (!is_get) return wrong_method(method, "GET");
    return Route{ListOperations{}};
  }
  if (name == "openapi.json") {
    if (!is_get) return wrong_method(method, "GET");
    return Route{DescribeApi{}};
  }
  if (name == "events" && is_get) return events_of(query);
  if (!is_operation_name(name)) return not_found(path);
  if (method != "POST") return wrong_method(method, name == "events" ? "GET, POST" : "POST");
  return Route{CallOperation{std::string(name)}};
}

}  // namespace zed::http
