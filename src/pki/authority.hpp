#pragma once
// Making certificates: the authority's, the issuing one's, a node's. Pure but for the signatures'
// own randomness: times and serial numbers are arguments.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "pki/certificate.hpp"
#include "pki/keys.hpp"

namespace zed::pki {

/// Certificate (PEM) and key (PEM, not encrypted) of whoever signs. `chain` goes with what it
/// signs: its own certificate and those above, the root last.
struct Issuer {
  std::string chain;
  std::string key;
};

/// Clocks of machines differ: what is made now is valid since an hour ago.
inline constexpr Millis backdated = minutes(60);

/// A fleet's authority: signs issuing certificates, nothing else. Errors: `invalid` key.
Result<Issuer> make_root(std::string_view key, const Nonce& serial, WallTime now, Millis lifetime);
/// Signs nodes, and can make no authority. Never valid longer than the root. Errors: `invalid`.
Result<Issuer> make_issuing(const Issuer& root, std::string_view key, const Nonce& serial,
                            WallTime now, Millis lifetime);

/// A signing request (PEM): shows that whoever asks has the key. What it names is only for people.
Result<std::string> make_request(std::string_view key, std::string_view name);

/// The chain (PEM, the new certificate first) for whoever made the request. `hosts` are names and
/// addresses beside the identity's own host. Never valid longer than the issuer. Errors: `invalid`
/// for a request whose signature or kind of key is wrong (P-256 only), `refused` if the issuer has
/// less than a day left.
Result<std::string> sign_request(std::string_view request, const Issuer& issuer,
                                 const Identity& identity, const std::vector<std::string>& hosts,
                                 const Nonce& serial, WallTime now, Millis lifetime);

/// A third of its lifetime is left, or less.
bool is_due_for_renewal(const CertificateInfo& certificate, WallTime now);

}  // namespace zed::pki
