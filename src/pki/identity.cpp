#include "pki/identity.hpp"

#include <algorithm>

#include "base/enum.hpp"

namespace zed::pki {
namespace {

constexpr std::size_t longest_part = 63;

bool is_part(std::string_view part, std::string_view also) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (part.empty() || part.size() > longest_part || !is_plain(part.front())) return false;
  return std::all_of(part.begin(), part.end(), [&](char c) {
    return is_plain(c) || c == '_' || c == '-' || also.find(c) != std::string_view::npos;
  });
}

std::string_view before_at(std::string_view node) {
  return node.substr(0, node.find('@'));
}

Role role_of(std::string_view node, Role otherwise) {
  if (before_at(node) == "zed") return Role::agent;
  if (before_at(node) == "zed_controller") return Role::controller;
  return otherwise;
}

}  // namespace

std::string Identity::host() const {
  const auto at = node.find('@');
  return at == std::string::npos ? "" : node.substr(at + 1);
}

std::string Identity::name() const {
  const bool is_machine = role == Role::agent || role == Role::controller;
  return is_machine ? host() : std::string(before_at(node));
}

Result<Identity> identity_of(Role role, std::string_view name, bool long_names) {
  const std::string text(name);
  const bool is_machine = role == Role::agent || role == Role::controller;
  Identity identity{text, role};
  if (is_machine)
    identity.node = (role == Role::agent ? "zed@" : "zed_controller@") + text;
  else if (text.find('@') == std::string::npos)
    identity.node = text + "@" + text + (long_names ? ".shell" : "");
  const std::string_view local = before_at(identity.node);
  if (!is_part(local, "") || !is_part(identity.host(), "."))
    return fail(ErrorCode::invalid,
                "\"" + text.substr(0, 80) + "\" cannot be a name in a certificate",
                "use letters, digits, '-', '_' and '.', beginning with a letter or a digit");
  if (auto fits = check_identity(identity); !fits)
    return fail(ErrorCode::invalid, fits.error().message,
                "zed and zed_controller are names of machines");
  return identity;
}

Status check_identity(const Identity& identity) {
  const bool is_person = identity.role == Role::operator_ || identity.role == Role::viewer;
  const Role wanted = role_of(identity.node, is_person ? identity.role : Role::viewer);
  if (wanted == identity.role) return {};
  return fail(ErrorCode::refused, "\"" + identity.node.substr(0, 80) + "\" is no name of " +
                                      std::string(to_string(identity.role)) + "s");
}

}  // namespace zed::pki
