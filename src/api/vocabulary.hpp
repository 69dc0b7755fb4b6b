#pragma once
// The fixed words of the operations: names of members, never what a person typed.

#include <string_view>

namespace zed::api {

/// Whether this is the name of a member of some reply or error, and so may become an Erlang atom.
bool is_member_name(std::string_view word);

}  // namespace zed::api
