#pragma once
// For tests of whatever speaks TLS: a fleet's authority and certificates, made on the spot.

#include <memory>

#include "base/clock.hpp"
#include "net/tls.hpp"
#include "pki/authority.hpp"
#include "pki/keys.hpp"

namespace zed::pki {

class TestFleet {
public:
  TestFleet() {
    root_ = make_root(make_key().value(), random_nonce(), now(), day * 30).value();
    issuing_ = make_issuing(root_, make_key().value(), random_nonce(), now(), day * 20).value();
  }

  static WallTime now() { return wall_now(); }
  const std::string& root() const { return root_.chain; }
  std::string authority() const { return read_certificate(root_.chain)->fingerprint; }

  net::TlsIdentity identity(std::string_view name, Role role, Millis lifetime = day * 10) const {
    return signed_by(issuing_, identity_of(role, name).value(), now(), lifetime);
  }
  std::shared_ptr<net::Tls> tls(std::string_view name, Role role) const {
    return with(identity(name, role));
  }
  std::string sign(const std::string& request, const Identity& who) const {
    return sign_request(request, issuing_, who, {}, random_nonce(), now(), day * 10).value();
  }
  /// Valid until ten minutes ago.
  net::TlsIdentity expired_identity(std::string_view name, Role role) const {
    return signed_by(issuing_, identity_of(role, name).value(), {now().ms - minutes(20).value},
                     minutes(10));
  }
  std::shared_ptr<net::Tls> expired(std::string_view name, Role role) const {
    return with(expired_identity(name, role));
  }
  /// Serial of what signs here.
  std::string issuer() const { return read_certificate(issuing_.chain)->serial; }
  /// Another fleet's certificate in the hands of someone who believes this one.
  std::shared_ptr<net::Tls> with_chain_of(const TestFleet& other, std::string_view name,
                                          Role role) const {
    return with(other.identity(name, role));
  }
  std::shared_ptr<net::Tls> anonymous() const { return with({}); }

private:
  static constexpr Millis day = minutes(60 * 24);

  static net::TlsIdentity signed_by(const Issuer& issuer, const Identity& who, WallTime from,
                                    Millis lifetime) {
    const std::string key = make_key().value();
    return {sign_request(make_request(key, who.node).value(), issuer, who, {"127.0.0.1"},
                         random_nonce(), from, lifetime)
                .value(),
            key};
  }
  std::shared_ptr<net::Tls> with(net::TlsIdentity identity) const {
    return net::Tls::make(std::move(identity), {root_.chain, {}, ""}).value();
  }

  Issuer root_, issuing_;
};

}  // namespace zed::pki
