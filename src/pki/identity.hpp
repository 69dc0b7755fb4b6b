#pragma once
// Whom a certificate names. Pure.

#include <array>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace zed::pki {

/// What its holder may do. The controller and agents are machines; an operator may change the
/// fleet, a viewer may look at it.
enum class Role { controller, agent, operator_, viewer };
constexpr auto enum_names(Role) {
  return std::array<std::string_view, 4>{"controller", "agent", "operator", "viewer"};
}

struct Identity {
  std::string node;  ///< its Erlang node: "zed@server", "zed_controller@server", "alice@laptop"
  Role role = Role::viewer;

  /// What stands after the '@'.
  std::string host() const;
  /// What a person calls it: "server" of an agent and a controller, else the whole node's name
  /// before the '@'.
  std::string name() const;
  friend bool operator==(const Identity&, const Identity&) = default;
};

/// The identity of a machine or person by its plain name: "server" is zed@server as an agent and
/// zed_controller@server as a controller; "alice" is alice@alice, or alice@alice.shell with
/// `long_names` (Erlang wants a dot in the host then); a person may also give all of it,
/// "alice@laptop". Errors: `invalid`.
Result<Identity> identity_of(Role role, std::string_view name, bool long_names = false);

/// Whether role and node fit: `zed@` is an agent's, `zed_controller@` a controller's, anything else
/// a person's. Errors: `refused`, saying what does not fit.
Status check_identity(const Identity& identity);

}  // namespace zed::pki
