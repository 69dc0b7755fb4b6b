#pragma once
// The controller's issuing side: makes tokens, gives certificates for them, renews, revokes. Every
// change is durable before anybody hears of it.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "api/operations.hpp"
#include "bin/audit.hpp"
#include "bin/identity_files.hpp"
#include "http/server.hpp"
#include "net/loop.hpp"
#include "net/workers.hpp"

namespace zed::bin {

/// The node that holds the journal's copy, as it is known here.
struct SecondNode {
  std::string name;  ///< "workstation"
  std::string host;  ///< the address that it shows
};

struct RegistrarOptions {
  IdentityFiles files;
  std::shared_ptr<net::Tls> tls;  ///< the controller's own
  std::string cookie;
  std::uint16_t distribution_port = 0;                     ///< set once it is known
  std::function<std::optional<SecondNode>()> second = {};  ///< null: there never is one
};

/// Loop's thread only.
class Registrar {
public:
  /// `on_revoked` gets all serials that are revoked, after each change. Errors: those of the files.
  static Result<std::unique_ptr<Registrar>>
  open(net::Loop& loop, RegistrarOptions options, AuditLog& audit,
       std::function<void(const std::set<std::string>&)> on_revoked);

  void set_distribution_port(std::uint16_t port) { options_.distribution_port = port; }
  void create_token(const api::CreateToken& op, const http::Reply& reply);
  Value list() const;
  /// Revokes what a machine or person of that plain name has; `done` gets whether there was
  /// anything, once it is durable.
  void forget(const std::string& name, std::function<void(Result<bool>)> done);
  void enrol(const http::Enrolment& enrolment, const http::Reply& reply);
  std::set<std::string> revoked() const { return registry_.revoked(); }

private:
  Registrar(net::Loop& loop, RegistrarOptions options, pki::Issuer issuing, pki::Registry registry,
            std::string roots, AuditLog& audit,
            std::function<void(const std::set<std::string>&)> on_revoked);
  Result<Value> join(const Value& body, std::string& who);
  Result<Value> succession(const pki::CertificateInfo& certificate) const;
  Status learn(const pki::CertificateInfo& certificate);
  Result<Value> renew(const Value& body, const pki::CertificateInfo& certificate);
  Result<std::string> sign(const std::string& request, const pki::Identity& identity,
                           const std::vector<std::string>& hosts);
  void save(std::function<void(Status)> done);
  void keep_own_certificate_young();
  Status renew_own(const pki::CertificateInfo& own);

  net::Loop& loop_;
  RegistrarOptions options_;
  pki::Issuer issuing_;
  pki::Registry registry_;
  std::string roots_;
  std::string authority_;   ///< fingerprint
  std::string sealed_key_;  ///< the authority's; empty if it is kept elsewhere
  AuditLog& audit_;
  std::function<void(const std::set<std::string>&)> on_revoked_;
  net::WorkerPool worker_;  ///< one thread: the file is written in order
  net::Timer daily_;
};

}  // namespace zed::bin
