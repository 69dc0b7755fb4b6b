#include "pki/registry.hpp"

#include <algorithm>

namespace zed::pki {
namespace {

constexpr Millis shortest_lifetime = minutes(1), longest_lifetime = minutes(60 * 24 * 30);

template <class Records, class Test> std::size_t remove_if(Records& records, Test test) {
  const auto from = std::remove_if(records.begin(), records.end(), test);
  const auto count = static_cast<std::size_t>(records.end() - from);
  records.erase(from, records.end());
  return count;
}

}  // namespace

bool Registry::has_live(const std::string& node, WallTime now) const {
  return std::any_of(issued_.begin(), issued_.end(), [&](const IssuedRecord& one) {
    return one.node == node && one.not_after > now;
  });
}

Result<JoinToken> Registry::add_token(const Identity& identity, const std::string& authority,
                                      const Nonce& secret, WallTime now, Millis lifetime) {
  ZED_CHECK(check_identity(identity));
  if (lifetime < shortest_lifetime || lifetime > longest_lifetime)
    return fail(ErrorCode::invalid, "a token lives a minute at least and 30 days at most");
  if (has_live(identity.node, now))
    return fail(ErrorCode::exists, identity.node + " has a certificate already",
                "zedctl node forget " + identity.name() + " revokes it");
  prune(now);
  remove_if(tokens_, [&](const TokenRecord& one) { return one.node == identity.node; });
  if (tokens_.size() >= most_tokens)
    return fail(ErrorCode::busy, "1000 tokens wait to be used already", "let some expire");
  JoinToken token{identity, authority, hex_of(secret)};
  tokens_.push_back({identity.node, identity.role, hash_of(token), {now.ms + lifetime.value}});
  return token;
}

Result<Identity> Registry::take_token(const JoinToken& token, WallTime now) {
  const std::string hash = hash_of(token);
  const auto found = std::find_if(tokens_.begin(), tokens_.end(), [&](const TokenRecord& one) {
    return same_secret(one.hash, hash);
  });
  if (found == tokens_.end() || found->expires <= now)
    return fail(ErrorCode::refused, "this token is not known here: used, expired, or altered",
                "zedctl token create makes a new one");
  const Identity identity{found->node, found->role};
  tokens_.erase(found);
  if (has_live(identity.node, now))
    return fail(ErrorCode::refused, identity.node + " has got a certificate meanwhile",
                "zedctl node forget " + identity.name() + " revokes it");
  return identity;
}

void Registry::record(const CertificateInfo& certificate) {
  issued_.push_back({certificate.identity.node, certificate.identity.role, certificate.serial,
                     certificate.not_after});
}

bool Registry::record_issuer(const CertificateInfo& issuing) {
  const auto known = std::find_if(issuers_.begin(), issuers_.end(), [&](const IssuerRecord& one) {
    return one.serial == issuing.serial;
  });
  if (known != issuers_.end()) return false;
  issuers_.push_back({issuing.serial, issuing.not_after, false});
  return true;
}

void Registry::revoke_issuers(WallTime now) {
  for (IssuerRecord& issuer : issuers_)
    issuer.revoked = true;
  revoked_.insert(revoked_.end(), issued_.begin(), issued_.end());
  issued_.clear();
  tokens_.clear();
  prune(now);
}

Status Registry::forget(const std::string& node, WallTime now) {
  std::size_t found = remove_if(tokens_, [&](const TokenRecord& one) { return one.node == node; });
  for (const IssuedRecord& one : issued_)
    if (one.node == node) revoked_.push_back(one);
  found += remove_if(issued_, [&](const IssuedRecord& one) { return one.node == node; });
  prune(now);
  if (found == 0)
    return fail(ErrorCode::not_found, "no certificate or token of " + node + " is known",
                "zedctl token list shows what there is");
  return {};
}

void Registry::prune(WallTime now) {
  remove_if(tokens_, [&](const TokenRecord& one) { return one.expires <= now; });
  remove_if(issued_, [&](const IssuedRecord& one) { return one.not_after <= now; });
  remove_if(revoked_, [&](const IssuedRecord& one) { return one.not_after <= now; });
  remove_if(issuers_, [&](const IssuerRecord& one) { return one.not_after <= now; });
}

bool Registry::is_live(const std::string& serial) const {
  return std::any_of(issued_.begin(), issued_.end(),
                     [&](const IssuedRecord& one) { return one.serial == serial; });
}

std::set<std::string> Registry::revoked() const {
  std::set<std::string> serials;
  for (const IssuedRecord& one : revoked_)
    serials.insert(one.serial);
  for (const IssuerRecord& issuer : issuers_)
    if (issuer.revoked) serials.insert(issuer.serial);
  return serials;
}

}  // namespace zed::pki
