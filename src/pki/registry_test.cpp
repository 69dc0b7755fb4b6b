#include <gtest/gtest.h>

#include "base/json.hpp"
#include "pki/registry.hpp"

namespace zed::pki {
namespace {

constexpr WallTime start{1'767'225'600'000};
constexpr Millis hour = minutes(60);
const std::string authority(64, 'a');
const Identity server{"zed@server", Role::agent};

WallTime after(Millis span) {
  return {start.ms + span.value};
}

Nonce secret(std::uint8_t first) {
  Nonce bytes{};
  bytes.fill(first);
  return bytes;
}

JoinToken token_in(Registry& registry, std::uint8_t first = 1) {
  return registry.add_token(server, authority, secret(first), start, hour).value();
}

CertificateInfo certificate(const std::string& serial, WallTime until = after(hour * 24 * 90)) {
  CertificateInfo info;
  info.identity = server;
  info.serial = serial;
  info.not_after = until;
  return info;
}

TEST(Token, SurvivesBeingCarried) {
  Registry registry;
  const JoinToken token = token_in(registry);
  EXPECT_EQ(token.str(),
            "zed1:agent:zed@server:" + authority + ":01010101010101010101010101010101");
  EXPECT_EQ(JoinToken::parse(token.str()).value(), token);
  EXPECT_EQ(JoinToken::parse(" " + token.str() + "\n").value(), token);
  for (std::size_t cut = 0; cut < token.str().size(); ++cut)
    EXPECT_FALSE(JoinToken::parse(token.str().substr(0, cut))) << cut;
  for (const std::string& wrong :
       {"zed2" + token.str().substr(4), token.str() + ":", std::string(600, 'x'),
        "zed1:operator:zed@server:" + authority + ":01010101010101010101010101010101",
        "zed1:agent:alice@laptop:" + authority + ":01010101010101010101010101010101"})
    EXPECT_FALSE(JoinToken::parse(wrong)) << wrong;
}

TEST(Token, IsGoodOnce) {
  Registry registry;
  const JoinToken token = token_in(registry);
  EXPECT_EQ(registry.take_token(token, after(minutes(5))).value(), server);
  EXPECT_EQ(registry.take_token(token, after(minutes(5))).error().code, ErrorCode::refused);
}

TEST(Token, IsGoodUntilItExpires) {
  Registry registry;
  const JoinToken token = token_in(registry);
  EXPECT_FALSE(registry.take_token(token, after(hour)));
  EXPECT_TRUE(registry.take_token(token, after(hour - Millis{1})));
}

TEST(Token, IsGoodForItsNameRoleAndAuthorityOnly) {
  Registry registry;
  const JoinToken token = token_in(registry);
  JoinToken other = token;
  other.identity.node = "zed@laptop";
  EXPECT_FALSE(registry.take_token(other, start));
  other = token;
  other.identity = {"boss@laptop", Role::operator_};
  EXPECT_FALSE(registry.take_token(other, start));
  other = token;
  other.authority = std::string(64, 'b');
  EXPECT_FALSE(registry.take_token(other, start));
  other = token;
  other.secret = std::string(32, '0');
  EXPECT_FALSE(registry.take_token(other, start));
  EXPECT_TRUE(registry.take_token(token, start));
}

TEST(Token, ANewOneReplacesTheOlder) {
  Registry registry;
  const JoinToken older = token_in(registry, 1);
  const JoinToken newer = token_in(registry, 2);
  EXPECT_FALSE(registry.take_token(older, start));
  EXPECT_TRUE(registry.take_token(newer, start));
}

TEST(Token, IsRefusedForANameThatIsTaken) {
  Registry registry;
  const JoinToken early = token_in(registry);
  registry.record(certificate("41"));
  EXPECT_EQ(registry.take_token(early, start).error().code, ErrorCode::refused);
  const auto again = registry.add_token(server, authority, secret(2), start, hour);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::exists);
  EXPECT_EQ(again.error().hint, "zedctl node forget server revokes it");
  ASSERT_TRUE(registry.forget("zed@server", start));
  EXPECT_TRUE(registry.add_token(server, authority, secret(2), start, hour));
}

TEST(Token, LivesAMinuteToThirtyDaysAndIsNotKeptAsItIs) {
  Registry registry;
  EXPECT_FALSE(registry.add_token(server, authority, secret(1), start, seconds(59)));
  EXPECT_FALSE(registry.add_token(server, authority, secret(1), start, hour * 24 * 31));
  const JoinToken token = token_in(registry);
  EXPECT_EQ(to_json(to_value(registry)).find(token.secret), std::string::npos);
}

TEST(Registry, ForgettingRevokesEveryCertificateOfTheName) {
  Registry registry;
  registry.record(certificate("41"));
  registry.record(certificate("42"));
  EXPECT_TRUE(registry.is_live("41"));
  ASSERT_TRUE(registry.forget("zed@server", start));
  EXPECT_EQ(registry.revoked(), (std::set<std::string>{"41", "42"}));
  EXPECT_FALSE(registry.is_live("41"));
  EXPECT_EQ(registry.forget("zed@server", start).error().code, ErrorCode::not_found);
}

TEST(Registry, DropsWhatHasExpired) {
  Registry registry;
  token_in(registry);
  registry.record(certificate("41", after(hour)));
  ASSERT_TRUE(registry.forget("zed@server", start));
  token_in(registry);
  registry.record(certificate("42", after(hour)));
  registry.prune(after(hour));
  EXPECT_TRUE(registry.tokens().empty() && registry.issued().empty() && registry.revoked().empty());
}

TEST(Registry, SurvivesItsFile) {
  Registry registry;
  const JoinToken token = token_in(registry);
  CertificateInfo other = certificate("41");
  other.identity = {"alice@laptop", Role::operator_};
  registry.record(other);
  const auto value = parse_json(to_json_pretty(to_value(registry)));
  ASSERT_TRUE(value);
  auto read = from_value<Registry>(*value);
  ASSERT_TRUE(read) << read.error().describe();
  EXPECT_TRUE(read->take_token(token, start));
  EXPECT_EQ(read->issued().front().role, Role::operator_);
}

}  // namespace
}  // namespace zed::pki
