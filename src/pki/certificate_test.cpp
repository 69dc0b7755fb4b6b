#include <gtest/gtest.h>

#include "pki/authority.hpp"
#include "pki/certificate.hpp"
#include "pki/keys.hpp"

namespace zed::pki {
namespace {

constexpr WallTime epoch{1'767'225'600'000};  // 2026-01-01
constexpr Millis day = minutes(60 * 24);

WallTime after(Millis span) {
  return {epoch.ms + span.value};
}

Nonce nonce(std::uint8_t first) {
  Nonce bytes{};
  bytes.fill(first);
  return bytes;
}

/// An authority with one issuing certificate, made at `epoch`.
struct Fleet {
  explicit Fleet(Millis issuing_lifetime = day * 700) {
    root = make_root(make_key().value(), nonce(1), epoch, day * 3650).value();
    issuing = make_issuing(root, make_key().value(), nonce(2), epoch, issuing_lifetime).value();
    authority = read_certificate(root.chain)->fingerprint;
  }
  Trust trust() const { return {root.chain, {}, ""}; }
  std::string node(const Identity& identity, Millis lifetime = day * 90,
                   std::vector<std::string> hosts = {}) const {
    const std::string request = make_request(make_key().value(), identity.node).value();
    return sign_request(request, issuing, identity, hosts, nonce(3), epoch, lifetime).value();
  }
  Issuer root, issuing;
  std::string authority;
};

const Identity server{"zed@server", Role::agent};

std::string why(const Result<CertificateInfo>& result) {
  return result ? "believed" : result.error().describe();
}

TEST(Identity, NamesAndRolesBelongTogether) {
  struct Row {
    Role role;
    std::string_view typed;
    std::string_view node;  ///< empty: refused
  };
  for (const Row& row : std::vector<Row>{
           {Role::agent, "server", "zed@server"},
           {Role::controller, "server.lan", "zed_controller@server.lan"},
           {Role::controller, "10.0.0.1", "zed_controller@10.0.0.1"},
           {Role::operator_, "alice", "alice@alice"},
           {Role::viewer, "alice@laptop", "alice@laptop"},
           {Role::operator_, "zed", ""},
           {Role::viewer, "zed@server", ""},
           {Role::operator_, "zed_controller@server", ""},
           {Role::agent, "", ""},
           {Role::agent, "a b", ""},
           {Role::agent, "-x", ""},
           {Role::agent, "a,URI:zed:role/operator", ""},
           {Role::viewer, "a@", ""},
           {Role::agent, std::string_view("x\0y", 3), ""},
       }) {
    const auto identity = identity_of(row.role, row.typed);
    EXPECT_EQ(identity ? identity->node : "", row.node) << row.typed;
  }
  EXPECT_EQ(identity_of(Role::operator_, "alice", true)->node, "alice@alice.shell");
  EXPECT_FALSE(check_identity({"zed@server", Role::operator_}));
  EXPECT_FALSE(check_identity({"alice@server", Role::agent}));
}

TEST(Key, IsReadableOnlyWithItsPassphrase) {
  const std::string key = make_key().value();
  const std::string sealed = encrypt_key(key, "correct horse").value();
  EXPECT_NE(sealed.find("BEGIN ENCRYPTED PRIVATE KEY"), std::string::npos);
  EXPECT_EQ(decrypt_key(sealed, "correct horse").value(), key);
  EXPECT_EQ(decrypt_key(sealed, "correct horsf").error().code, ErrorCode::refused);
  EXPECT_EQ(decrypt_key(key, "correct horse").error().code, ErrorCode::invalid);
  EXPECT_EQ(encrypt_key(key, "short").error().code, ErrorCode::invalid);
  EXPECT_EQ(encrypt_key("nonsense", "correct horse").error().code, ErrorCode::invalid);
}

TEST(Certificate, SaysWhoItIsFor) {
  const Fleet fleet;
  const auto info =
      verify(fleet.node(server, day * 90, {"10.0.0.7", "server.lan"}), fleet.trust(), after(day));
  ASSERT_TRUE(info) << why(info);
  EXPECT_EQ(info->identity, server);
  EXPECT_EQ(info->hosts, (std::vector<std::string>{"server", "10.0.0.7", "server.lan"}));
  EXPECT_EQ(info->not_after, after(day * 90));
  EXPECT_EQ(info->not_before, after(Millis{-backdated.value}));
  EXPECT_EQ(info->serial, "43030303030303030303030303030303");
  EXPECT_FALSE(info->is_authority);
}

TEST(Certificate, IsBelievedInItsTimeOnly) {
  const Fleet fleet;
  const std::string chain = fleet.node(server);
  struct Row {
    Millis at;
    std::string_view says;
  };
  for (const Row& row : std::vector<Row>{
           {Millis{-backdated.value - 1000}, "not valid before 2025-12-31T23:00:00"},
           {Millis{-backdated.value}, "believed"},
           {day * 90, "believed"},
           {day * 90 + seconds(1), "was valid until 2026-04-01T00:00:00"},
       })
    EXPECT_NE(why(verify(chain, fleet.trust(), after(row.at))).find(row.says), std::string::npos)
        << row.at.value << ": " << why(verify(chain, fleet.trust(), after(row.at)));
}

TEST(Certificate, OfAnotherFleetIsRefused) {
  const Fleet ours;
  const Fleet rogue;
  EXPECT_NE(why(verify(rogue.node(server), ours.trust(), epoch)).find("another fleet"),
            std::string::npos);
  // Not even with our public certificates pasted behind its own.
  const std::string leaf = rogue.node(server).substr(0, rogue.node(server).find("-----END") + 26);
  EXPECT_FALSE(verify(leaf + ours.issuing.chain, ours.trust(), epoch));
}

TEST(Certificate, RevokedIsRefused) {
  const Fleet fleet;
  const std::string chain = fleet.node(server);
  Trust trust = fleet.trust();
  trust.revoked.insert(read_certificate(chain)->serial);
  EXPECT_NE(why(verify(chain, trust, epoch)).find("revoked"), std::string::npos);
}

TEST(Certificate, WithItsIssuerRevokedAllIsRefusedThatItSigned) {
  const Fleet fleet;
  const std::string chain = fleet.node(server);
  Trust trust = fleet.trust();
  const auto believed = verify(chain, trust, epoch);
  ASSERT_TRUE(believed);
  const auto issuing = read_certificate(fleet.issuing.chain)->serial;
  EXPECT_EQ(believed->issuers.front(), issuing);
  trust.revoked = {issuing};
  EXPECT_TRUE(is_revoked(*believed, trust.revoked));
  EXPECT_NE(why(verify(chain, trust, epoch)).find("issuing certificate"), std::string::npos);
  // Only what it was that signed: another one of the same authority goes on.
  trust.revoked = {"41"};
  EXPECT_FALSE(is_revoked(*believed, trust.revoked));
  EXPECT_TRUE(verify(chain, trust, epoch));
}

TEST(Certificate, OfANodeMakesNoOtherCertificates) {
  const Fleet fleet;
  const std::string key = make_key().value();
  const std::string chain = sign_request(make_request(key, "x").value(), fleet.issuing, server, {},
                                         nonce(3), epoch, day * 90)
                                .value();
  const std::string request = make_request(make_key().value(), "x").value();
  const auto forged = sign_request(request, {chain, key}, {"boss@laptop", Role::operator_}, {},
                                   nonce(4), epoch, day * 90);
  ASSERT_TRUE(forged);  // anybody can write one
  EXPECT_NE(why(verify(*forged, fleet.trust(), epoch)), "believed");
}

TEST(Certificate, AnAuthoritysOwnIsNoNodes) {
  const Fleet fleet;
  EXPECT_NE(why(verify(fleet.issuing.chain, fleet.trust(), epoch)).find("authority"),
            std::string::npos);
  EXPECT_NE(why(verify(fleet.root.chain, fleet.trust(), epoch)), "believed");
}

TEST(Certificate, PinnedAuthorityStandsForTheRoots) {
  const Fleet fleet;
  const Fleet other;
  const std::string chain = fleet.node(server);
  EXPECT_EQ(why(verify(chain, {"", {}, fleet.authority}, epoch)), "believed");
  EXPECT_NE(why(verify(chain, {"", {}, other.authority}, epoch)).find("in between"),
            std::string::npos);
  // The chain carries the right authority, and is signed by another.
  const std::string leaf = chain.substr(0, chain.find("-----END") + 26);
  EXPECT_NE(
      why(verify(leaf + other.issuing.chain + fleet.root.chain, {"", {}, fleet.authority}, epoch)),
      "believed");
}

TEST(Certificate, NeverOutlivesItsIssuer) {
  const Fleet fleet(day * 30);
  EXPECT_EQ(read_certificate(fleet.node(server))->not_after, after(day * 30));
  const std::string request = make_request(make_key().value(), "x").value();
  const auto late =
      sign_request(request, fleet.issuing, server, {}, nonce(3), after(day * 29 + minutes(1)), day);
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().hint.find("zed-controller issue"), std::string::npos);
}

TEST(Certificate, IsRenewedInItsLastThird) {
  const Fleet fleet;
  const auto info = read_certificate(fleet.node(server)).value();
  EXPECT_FALSE(is_due_for_renewal(info, after(day * 59)));
  EXPECT_TRUE(is_due_for_renewal(info, after(day * 60)));
}

TEST(Request, MustBeWholeAndOfTheRightKind) {
  const Fleet fleet;
  const std::string good = make_request(make_key().value(), "x").value();
  std::string altered = good;
  altered[good.size() / 2] = altered[good.size() / 2] == 'A' ? 'B' : 'A';
  const std::string others[] = {
      "", "nonsense", altered, fleet.root.chain, make_key().value(), std::string(20'000, 'x')};
  for (const std::string& request : others) {
    const auto made = sign_request(request, fleet.issuing, server, {}, nonce(3), epoch, day * 90);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::invalid);
  }
  for (const std::string host : {"a,URI:zed:role/operator", "", "a b", "x\ny"})
    EXPECT_FALSE(sign_request(good, fleet.issuing, server, {host}, nonce(3), epoch, day * 90))
        << host;
  EXPECT_FALSE(sign_request(good, fleet.issuing, {"zed@server", Role::operator_}, {}, nonce(3),
                            epoch, day * 90));
}

TEST(Certificate, TextThatIsNoneIsRefused) {
  const Fleet fleet;
  std::string many;
  for (int i = 0; i < 9; ++i)
    many += fleet.root.chain;
  for (const std::string& text : {std::string(), std::string("x"), many,
                                  std::string("-----BEGIN CERTIFICATE-----\nAAAA\n"
                                              "-----END CERTIFICATE-----\n")})
    EXPECT_FALSE(verify(text, fleet.trust(), epoch));
}

}  // namespace
}  // namespace zed::pki
