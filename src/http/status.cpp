#include "http/status.hpp"

#include "api/operations.hpp"
#include "base/describe.hpp"
#include "base/json.hpp"

namespace zed::http {

unsigned status_of(ErrorCode code) {
  switch (code) {
  case ErrorCode::invalid: return 400;
  case ErrorCode::refused: return 403;
  case ErrorCode::not_found: return 404;
  case ErrorCode::exists:
  case ErrorCode::stale:
  case ErrorCode::conflict:
  case ErrorCode::cancelled: return 409;
  case ErrorCode::unplaceable: return 422;
  case ErrorCode::io:
  case ErrorCode::corrupt:
  case ErrorCode::internal: return 500;
  case ErrorCode::unsupported: return 501;
  case ErrorCode::busy:
  case ErrorCode::unavailable: return 503;
  case ErrorCode::timeout: return 504;
  case ErrorCode::no_space: return 507;
  }
  return 500;
}

std::string_view reason_of(unsigned status) {
  switch (status) {
  case 200: return "OK";
  case 400: return "Bad Request";
  case 401: return "Unauthorized";
  case 403: return "Forbidden";
  case 404: return "Not Found";
  case 405: return "Method Not Allowed";
  case 409: return "Conflict";
  case 413: return "Content Too Large";
  case 422: return "Unprocessable Content";
  case 431: return "Request Header Fields Too Large";
  case 500: return "Internal Server Error";
  case 501: return "Not Implemented";
  case 503: return "Service Unavailable";
  case 504: return "Gateway Timeout";
  case 507: return "Insufficient Storage";
  default: return "Error";
  }
}

std::string error_body(const Error& error) {
  Value body = Value::map();
  body.set("schema", api::schema_version);
  body.set("error", to_value(error));
  return to_json(body) + "\n";
}

Error error_of(unsigned status, std::string_view body) {
  if (auto value = parse_json(body)) {
    if (const Value* member = value->find("error")) {
      auto error = from_value<Error>(*member);
      if (error && !error->message.empty()) return std::move(*error);
    }
  }
  return Error{ErrorCode::internal,
               "the other side answered HTTP " + std::to_string(status) + " without saying why",
               {},
               "is it a Zed controller that listens there?"};
}

}  // namespace zed::http
