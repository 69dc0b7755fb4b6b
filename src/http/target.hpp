#pragma once
// What a request line asks for. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.hpp"

namespace zed::http {

struct CallOperation {
  std::string name;  ///< not yet looked up: letters, digits and '-' only
};
struct FollowEvents {
  std::optional<std::uint64_t> after;  ///< none: only what happens from now on
};
struct ListOperations {};
struct DescribeApi {};
struct AskHealth {};
/// POST /enrol/<step>: join, renew, revocations. Only behind TLS, and before anybody is known.
struct EnrolMachine {
  std::string step;
};

using Route =
    std::variant<CallOperation, FollowEvents, ListOperations, DescribeApi, AskHealth, EnrolMachine>;

struct NoRoute {
  unsigned status = 404;  ///< or 405, 400
  std::string allow;      ///< with 405: the method that would do
  Error error;
};

/// `method` as sent ("POST"), `target` as sent ("/v1/events?after=17").
std::variant<Route, NoRoute> route_of(std::string_view method, std::string_view target);

}  // namespace zed::http
