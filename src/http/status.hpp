#pragma once
// How errors look over HTTP: a status, and always the same body.
//
//   {"schema":1,"error":{"code":"not_found","message":"…","frames":["…"],"hint":"…"}}

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace zed::http {

/// The HTTP status of an error: invalid 400, refused 403, not_found 404, exists, stale, conflict
/// and cancelled 409, unplaceable 422, io, corrupt and internal 500, unsupported 501, busy and
/// unavailable 503, timeout 504, no_space 507.
unsigned status_of(ErrorCode code);

/// "Not Found"; "Error" for a status that we never send.
std::string_view reason_of(unsigned status);

/// The body that goes with it, ending in a newline.
std::string error_body(const Error& error);

/// The error that a response carries. A body that is not ours (a proxy's page) still gives an error
/// that names the status.
Error error_of(unsigned status, std::string_view body);

}  // namespace zed::http
