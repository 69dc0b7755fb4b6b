#include "bin/identity_files.hpp"

#include <cerrno>

#include <sys/stat.h>

#include "bin/daemon.hpp"
#include "net/files.hpp"
#include "proc/launch.hpp"

namespace zed::bin {
namespace {

/// A file that holds a key: nobody else may read it.
Result<pki::ChainAndKey> read_secret(const std::filesystem::path& path) {
  ZED_TRY(std::string text, proc::read_file(path));
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return fail(net::system_error(errno, "read " + path.string()));
  if ((info.st_mode & 077) != 0)
    return fail(ErrorCode::refused, "others may read the key in " + path.string(),
                "chmod 600 " + path.string());
  auto parts = pki::split_pem(text);
  if (!parts) return fail(std::move(parts).error().with("read " + path.string()));
  return parts;
}

}  // namespace

bool IdentityFiles::has_identity() const {
  std::error_code error;
  return std::filesystem::exists(folder_ / "node.pem", error);
}

Result<std::shared_ptr<net::Tls>> IdentityFiles::load_tls() const {
  ZED_TRY(pki::ChainAndKey own, read_secret(folder_ / "node.pem"));
  ZED_TRY(pki::Trust trust, load_trust());
  return net::Tls::make({std::move(own.chain), std::move(own.key)}, std::move(trust));
}

Result<pki::Trust> IdentityFiles::load_trust() const {
  pki::Trust trust;
  ZED_TRY(trust.roots, load_roots());
  auto revoked = net::read_record<http::RevocationsReply>(folder_ / "revoked.json");
  if (revoked)
    trust.revoked.insert(revoked->serials.begin(), revoked->serials.end());
  else if (revoked.error().code != ErrorCode::not_found)
    return fail(std::move(revoked).error());
  return trust;
}

Status IdentityFiles::save_identity(const net::TlsIdentity& identity) const {
  ZED_CHECK(make_private_folder(folder_));
  return proc::write_file_durably(folder_ / "node.pem", identity.chain + identity.key);
}

Status IdentityFiles::save_roots(const std::string& pem) const {
  ZED_CHECK(make_private_folder(folder_));
  return proc::write_file_durably(folder_ / "ca.pem", pem);
}

Status IdentityFiles::save_revoked(const std::set<std::string>& serials) const {
  return net::write_record(folder_ / "revoked.json",
                           http::RevocationsReply{{serials.begin(), serials.end()}});
}

Result<std::string> IdentityFiles::load_roots() const {
  return proc::read_file(folder_ / "ca.pem");
}

Result<pki::Issuer> IdentityFiles::load_issuing() const {
  ZED_TRY(pki::ChainAndKey parts, read_secret(folder_ / "issuing.pem"));
  return pki::Issuer{std::move(parts.chain), std::move(parts.key)};
}

Status IdentityFiles::save_issuing(const pki::Issuer& issuing) const {
  return proc::write_file_durably(folder_ / "issuing.pem", issuing.chain + issuing.key);
}

Result<std::string> IdentityFiles::load_authority_key() const {
  return proc::read_file(folder_ / "ca-key.pem");
}

Status IdentityFiles::save_authority_key(const std::string& encrypted) const {
  ZED_CHECK(make_private_folder(folder_));
  return proc::write_file_durably(folder_ / "ca-key.pem", encrypted);
}

Result<pki::Registry> IdentityFiles::load_registry_that_is_there() const {
  return net::read_record<pki::Registry>(folder_ / "registry.json");
}

Result<pki::Registry> IdentityFiles::load_registry() const {
  auto registry = load_registry_that_is_there();
  if (!registry && registry.error().code == ErrorCode::not_found) return pki::Registry();
  return registry;
}

Status IdentityFiles::save_registry(const pki::Registry& registry) const {
  return net::write_record(folder_ / "registry.json", registry);
}

Status IdentityFiles::save_authority_copy(const http::AuthorityCopy& copy,
                                          const std::string& cookie) const {
  const IdentityFiles files = at(authority_copy());
  ZED_TRY(const std::string roots, load_roots());
  ZED_CHECK(files.save_roots(roots));
  ZED_CHECK(proc::write_file_durably(authority_copy() / "cookie", cookie + "\n"));
  ZED_CHECK(files.save_registry(copy.registry));
  // Last: without it the rest is of no use.
  return files.save_authority_key(copy.sealed_key);
}

Status IdentityFiles::remove_authority_copy() const {
  std::error_code error;
  std::filesystem::remove_all(authority_copy(), error);
  if (!error) return {};
  return fail(ErrorCode::io, "remove " + authority_copy().string() + ": " + error.message());
}

Result<JoinRecord> load_join(const IdentityFiles& files) {
  return net::read_record<JoinRecord>(files.folder() / "join.json");
}
Status save_join(const IdentityFiles& files, const JoinRecord& record) {
  return net::write_record(files.folder() / "join.json", record);
}

}  // namespace zed::bin
