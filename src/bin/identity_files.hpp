#pragma once
// A machine's certificates on disk, under <state>/pki:
//
//   ca.pem         the fleet's authority
//   node.pem       the machine's certificate, those above it, and its key (0600)
//   revoked.json   whom the controller told not to believe (agents)
//   join.json      where the controller is, and would be after a takeover (agents)
//   authority/     what a controller would go on with here: ca.pem, ca-key.pem, registry.json and
//                  the cookie (the second node's agent)
// and on the controller's machine also
//   ca-key.pem     the authority's key, encrypted with a passphrase
//   issuing.pem    the issuing certificate and its key (0600)
//   registry.json  tokens, certificates given out and revoked (pki/registry.hpp)

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

#include "base/describe.hpp"
#include "http/enrol.hpp"
#include "pki/authority.hpp"
#include "pki/registry.hpp"

namespace zed::bin {

class IdentityFiles {
public:
  explicit IdentityFiles(const std::filesystem::path& state) : folder_(state / "pki") {}
  /// A folder of that kind that lies elsewhere.
  static IdentityFiles at(std::filesystem::path folder) {
    IdentityFiles files("");
    files.folder_ = std::move(folder);
    return files;
  }

  const std::filesystem::path& folder() const { return folder_; }
  bool has_identity() const;

  /// Certificate, key and whom to believe. Errors: `not_found` (not joined), `refused` if others
  /// may read the key, `corrupt`.
  Result<std::shared_ptr<net::Tls>> load_tls() const;
  Result<pki::Trust> load_trust() const;
  Status save_identity(const net::TlsIdentity& identity) const;
  Status save_roots(const std::string& pem) const;
  Status save_revoked(const std::set<std::string>& serials) const;

  Result<std::string> load_roots() const;
  /// The issuing certificate with its key.
  Result<pki::Issuer> load_issuing() const;
  Status save_issuing(const pki::Issuer& issuing) const;
  Result<std::string> load_authority_key() const;
  Status save_authority_key(const std::string& encrypted) const;
  Result<pki::Registry> load_registry() const;
  /// Errors: `not_found` too.
  Result<pki::Registry> load_registry_that_is_there() const;
  Status save_registry(const pki::Registry& registry) const;

  /// Copy of the authority that this machine holds as the second node.
  std::filesystem::path authority_copy() const { return folder_ / "authority"; }
  Status save_authority_copy(const http::AuthorityCopy& copy, const std::string& cookie) const;
  Status remove_authority_copy() const;

private:
  std::filesystem::path folder_;
};

/// <state>/pki/join.json: how an agent finds its controller.
struct JoinRecord {
  std::string controller;  ///< "zed_controller@server"
  std::string host;        ///< as the person gave it
  std::uint16_t distribution_port = 0;
  std::uint16_t http_port = 0;
  std::string second = {};       ///< "workstation", that has the journal's copy; may be empty
  std::string second_host = {};  ///< its address
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("controller", self.controller);
    visit("host", self.host);
    visit("distribution_port", self.distribution_port);
    visit("http_port", self.http_port);
    visit("second", self.second);
    visit("second_host", self.second_host);
  }
  friend bool operator==(const JoinRecord&, const JoinRecord&) = default;
};
Result<JoinRecord> load_join(const IdentityFiles& files);
Status save_join(const IdentityFiles& files, const JoinRecord& record);

}  // namespace zed::bin
