#pragma once
// What the HTTP door speaks, as an OpenAPI 3.1 document: made from the table of operations, so that
// it cannot say anything else than what is there. Pure.

#include "base/value.hpp"

namespace zed::http {

/// The document that GET /v1/openapi.json answers with. Arguments are described in place, replies
/// by components named after their types. Members may be left out of arguments (they have
/// defaults); a reply has all of them, and newer versions may add more.
Value openapi_document();

}  // namespace zed::http
