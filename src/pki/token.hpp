#pragma once
// Join tokens: what a person carries from the controller to a machine that is to join. Pure.
//
//   zed1:<role>:<node>:<fingerprint of the fleet's authority>:<secret>
//
// It tells the machine whom to believe (the fingerprint) and who it will be; its secret is the
// controller's proof that a person of this fleet meant that name. Good once, until it expires.

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "pki/identity.hpp"
#include "pki/keys.hpp"

namespace zed::pki {

struct JoinToken {
  Identity identity;
  std::string authority;  ///< SHA-256 of the root certificate, 64 hexadecimal digits
  std::string secret;     ///< 32 hexadecimal digits

  std::string str() const;
  /// Errors: `invalid`; the text is not repeated, since it may be most of a secret.
  static Result<JoinToken> parse(std::string_view text);
  friend bool operator==(const JoinToken&, const JoinToken&) = default;
};

/// What is kept of it: SHA-256 over the whole token, so that no part can be exchanged.
std::string hash_of(const JoinToken& token);

}  // namespace zed::pki
