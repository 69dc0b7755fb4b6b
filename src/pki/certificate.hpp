#pragma once
// Certificates read and verified. Pure: the time is an argument.
//
// A node's certificate carries, beside dNSName <host> (OTP's hostname check) and an iPAddress where
// the host is one, two URIs: zed:node/<node> and zed:role/<role>. Both are checked wherever a
// certificate counts.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "pki/identity.hpp"

namespace zed::pki {

struct CertificateInfo {
  Identity identity;  ///< of a node; empty for an authority
  bool is_authority = false;
  std::string serial;       ///< lower-case hexadecimal digits
  std::string fingerprint;  ///< SHA-256 of the whole certificate, 64 digits
  std::vector<std::string> hosts;
  std::vector<std::string> issuers;  ///< serials of the authorities above it; empty if only read
  WallTime not_before;
  WallTime not_after;
};

/// The first certificate of a PEM text. Errors: `invalid`, `refused` (not one of Zed's).
Result<CertificateInfo> read_certificate(std::string_view pem);

/// Whom to believe.
struct Trust {
  std::string roots;              ///< PEM of the fleet's authority, one or more
  std::set<std::string> revoked;  ///< serials; an issuing one's takes all along that it signed
  /// Instead of `roots`: believe whoever presents a chain up to the authority of this fingerprint,
  /// as a machine does that joins and knows nothing else yet.
  std::string pinned_root;
};

/// Whether it, or an authority above it, is among these serials.
bool is_revoked(const CertificateInfo& certificate, const std::set<std::string>& serials);

/// Verifies a chain (PEM, the node's own certificate first) as of `now`: signatures up to a root,
/// validity, constraints, revocation, and that the certificate names a Zed node. Errors: `invalid`,
/// `refused` saying why.
Result<CertificateInfo> verify(std::string_view chain, const Trust& trust, WallTime now);

}  // namespace zed::pki
