#pragma once
// What the issuing side remembers: tokens that wait, certificates that live, those revoked. A pure
// value; whoever owns it writes it to disk before it acts on a change.

#include <set>
#include <string>
#include <vector>

#include "base/describe.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "pki/certificate.hpp"
#include "pki/token.hpp"

namespace zed::pki {

struct TokenRecord {
  std::string node;
  Role role = Role::viewer;
  std::string hash;
  WallTime expires;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("role", self.role);
    visit("hash", self.hash);
    visit("expires", self.expires);
  }
};

struct IssuedRecord {
  std::string node;
  Role role = Role::viewer;
  std::string serial;
  WallTime not_after;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("role", self.role);
    visit("serial", self.serial);
    visit("not_after", self.not_after);
  }
};

/// An issuing certificate.
struct IssuerRecord {
  std::string serial;
  WallTime not_after;
  bool revoked = false;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("serial", self.serial);
    visit("not_after", self.not_after);
    visit("revoked", self.revoked);
  }
};

class Registry {
public:
  static constexpr std::size_t most_tokens = 1'000;

  /// A token for a name that is free. `secret` is what makes it unguessable. Errors: `exists` if a
  /// certificate of that name lives, `busy` beyond most_tokens, `invalid` for a lifetime of less
  /// than a minute or more than 30 days. An older token for the name is replaced.
  Result<JoinToken> add_token(const Identity& identity, const std::string& authority,
                              const Nonce& secret, WallTime now, Millis lifetime);
  /// Uses a token up. Errors: `refused` for one that is unknown, used, expired, altered, or whose
  /// name has meanwhile been given a certificate.
  Result<Identity> take_token(const JoinToken& token, WallTime now);
  /// A certificate was made.
  void record(const CertificateInfo& certificate);
  /// Revokes all certificates of the node ("zed@server") and drops its tokens. Error: `not_found`.
  Status forget(const std::string& node, WallTime now);
  /// An issuing certificate was made. Whether it is new here.
  bool record_issuer(const CertificateInfo& issuing);
  /// Whoever holds an issuing certificate can make any: all that were made until now are revoked,
  /// with everything that they signed; tokens are dropped, since their hashes lay beside the key.
  void revoke_issuers(WallTime now);
  /// Drops what has expired: it is refused for that already.
  void prune(WallTime now);

  /// Whether this very certificate lives: was issued here, and not revoked.
  bool is_live(const std::string& serial) const;
  /// Serials, of issuing certificates too.
  std::set<std::string> revoked() const;
  const std::vector<TokenRecord>& tokens() const { return tokens_; }
  const std::vector<IssuedRecord>& issued() const { return issued_; }

  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("tokens", self.tokens_);
    visit("issued", self.issued_);
    visit("revoked", self.revoked_);
    visit("issuers", self.issuers_);
  }

private:
  bool has_live(const std::string& node, WallTime now) const;

  std::vector<TokenRecord> tokens_;
  std::vector<IssuedRecord> issued_;
  std::vector<IssuedRecord> revoked_;
  std::vector<IssuerRecord> issuers_;
};

}  // namespace zed::pki
