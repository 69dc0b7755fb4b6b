// What a person does to make a fleet, and what the controller's keeper does with tokens, roles and
// the audit: on real files, without sockets.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <sys/stat.h>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "bin/door_keeper.hpp"
#include "bin/init.hpp"
#include "bin/joined.hpp"
#include "proc/launch.hpp"

namespace zed::bin {
namespace {

namespace fs = std::filesystem;

constexpr Millis patience = seconds(20);
const std::string passphrase = "correct horse";

class Keeper : public testing::Test {
protected:
  Keeper() {
    char pattern[] = "/tmp/zed-keeper-XXXXXX";
    state_ = ::mkdtemp(pattern);
  }
  ~Keeper() override {
    keeper_.reset();
    fs::remove_all(state_);
  }

  void init() {
    const auto made = init_fleet({state_, "server", {"10.0.0.1"}, passphrase});
    ASSERT_TRUE(made) << made.error().describe();
    authority_ = *made;
  }

  void open() {
    keeper_.reset();
    tls_ = files_().load_tls().value();
    auto opened = DoorKeeper::open(
        loop_, state_, RegistrarOptions{files_(), tls_, "cookie", 4371, [this] { return second_; }},
        [this](const std::set<std::string>& s) { revoked_ = s; });
    ASSERT_TRUE(opened) << opened.error().describe();
    keeper_ = std::move(*opened);
  }
  IdentityFiles files_() const { return IdentityFiles(state_); }

  Result<Value> wait(const std::optional<Result<Value>>& answer) {
    EXPECT_TRUE(loop_.run_until([&] { return answer.has_value(); }, patience));
    return answer ? *answer : fail(ErrorCode::timeout, "no answer");
  }

  Result<Value> ask(api::Request request, bool may_change = true) {
    std::optional<Result<Value>> answer;
    keeper_->pass(
        std::move(request), {"alice@alice", "https", may_change, "10.0.0.7:5"},
        [&](Result<Value> result) { answer = std::move(result); },
        [this](const api::Request&, const api::Caller&, const http::Reply& reply) -> http::OnGone {
          ++passed_;
          reply(next_);
          return {};
        });
    return wait(answer);
  }

  std::string token_for(const std::string& name, api::TokenRole role = api::TokenRole::agent) {
    const auto made = ask(api::CreateToken{name, role, minutes(60)});
    EXPECT_TRUE(made) << made.error().describe();
    return made ? from_value<api::TokenReply>(*made)->token : "";
  }

  Result<Value> enrol(const std::string& step, Value body,
                      std::optional<pki::CertificateInfo> certificate = {}) {
    std::optional<Result<Value>> answer;
    keeper_->enrol({step, std::move(body), std::move(certificate), {"10.0.0.9", 5}},
                   [&](Result<Value> result) { answer = std::move(result); });
    return wait(answer);
  }
  Result<Value> join(const std::string& token) {
    const std::string request = pki::make_request(pki::make_key().value(), "x").value();
    return enrol("join", to_value(http::JoinRequest{token, request}));
  }
  std::string chain_of(const std::string& token) {
    const auto reply = join(token);
    EXPECT_TRUE(reply) << reply.error().describe();
    return from_value<http::JoinReply>(*reply)->chain;
  }
  pki::CertificateInfo joined(const std::string& token) {
    return pki::read_certificate(chain_of(token)).value();
  }
  http::SuccessionReply succession(const pki::CertificateInfo& asker) {
    const auto reply = enrol("succession", Value::map(), asker);
    EXPECT_TRUE(reply) << reply.error().describe();
    return from_value<http::SuccessionReply>(*reply).value();
  }

  std::vector<Value> audit() {
    std::vector<Value> lines;
    std::ifstream file(state_ / "audit.log");
    for (std::string line; std::getline(file, line);)
      lines.push_back(parse_json(line).value());
    return lines;
  }

  static unsigned mode_of(const fs::path& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
  }

  fs::path state_;
  std::string authority_;
  net::Loop loop_;
  std::shared_ptr<net::Tls> tls_;
  std::unique_ptr<DoorKeeper> keeper_;
  std::set<std::string> revoked_;
  Result<Value> next_ = Value::map();
  int passed_ = 0;
  std::optional<SecondNode> second_;
};

TEST_F(Keeper, InitMakesAFleetWhoseKeysNobodyElseReads) {
  init();
  const fs::path pki = state_ / "pki";
  for (const char* file : {"node.pem", "issuing.pem", "ca-key.pem"})
    EXPECT_EQ(mode_of(pki / file), 0600U) << file;
  EXPECT_EQ(mode_of(pki), 0700U);
  const std::string sealed = proc::read_file(pki / "ca-key.pem").value();
  EXPECT_NE(sealed.find("ENCRYPTED"), std::string::npos);
  EXPECT_FALSE(pki::decrypt_key(sealed, "wrong horse"));
  const auto own = files_().load_tls().value()->own();
  EXPECT_EQ(own->identity.node, "zed_controller@server");
  EXPECT_EQ(own->hosts, (std::vector<std::string>{"server", "10.0.0.1"}));
  EXPECT_EQ(init_fleet({state_, "server", {}, passphrase}).error().code, ErrorCode::exists);
  fs::permissions(pki / "node.pem", fs::perms::group_read, fs::perm_options::add);
  EXPECT_EQ(files_().load_tls().error().code, ErrorCode::refused);
}

TEST_F(Keeper, IssueRenewsWithThePassphraseOnly) {
  init();
  const std::string before = files_().load_tls().value()->own()->serial;
  EXPECT_EQ(issue_anew(state_, "wrong horse").error().code, ErrorCode::refused);
  EXPECT_EQ(files_().load_tls().value()->own()->serial, before);
  ASSERT_TRUE(issue_anew(state_, passphrase));
  const auto own = files_().load_tls().value()->own();
  EXPECT_NE(own->serial, before);
  EXPECT_EQ(own->hosts, (std::vector<std::string>{"server", "10.0.0.1"}));
}

TEST_F(Keeper, ATokenGivesOneCertificate) {
  init();
  open();
  const std::string token = token_for("laptop");
  EXPECT_EQ(joined(token).identity, (pki::Identity{"zed@laptop", pki::Role::agent}));
  EXPECT_EQ(join(token).error().code, ErrorCode::refused);
  EXPECT_EQ(ask(api::CreateToken{"laptop"}).error().code, ErrorCode::exists);
  // And not more after a restart.
  open();
  EXPECT_EQ(join(token).error().code, ErrorCode::refused);
  EXPECT_EQ(ask(api::CreateToken{"laptop"}).error().code, ErrorCode::exists);
}

TEST_F(Keeper, AWrongRequestUsesTheTokenUp) {
  init();
  open();
  const std::string token = token_for("laptop");
  EXPECT_FALSE(enrol("join", to_value(http::JoinRequest{token, "nonsense"})));
  EXPECT_EQ(join(token).error().code, ErrorCode::refused);
}

TEST_F(Keeper, ForgettingRevokesAndFreesTheName) {
  init();
  open();
  const auto laptop = joined(token_for("laptop"));
  const auto alice = joined(token_for("alice", api::TokenRole::operator_));
  ASSERT_TRUE(ask(api::ForgetNode{"laptop"}));
  EXPECT_EQ(revoked_, std::set<std::string>{laptop.serial});
  // A person is nobody whom the fleet knows: only the certificate is taken.
  next_ = fail(ErrorCode::not_found, "no node alice");
  ASSERT_TRUE(ask(api::ForgetNode{"alice"}));
  EXPECT_EQ(revoked_, (std::set<std::string>{alice.serial, laptop.serial}));
  EXPECT_EQ(ask(api::ForgetNode{"nobody"}).error().code, ErrorCode::not_found);
  // What the fleet refuses to forget keeps its certificate.
  next_ = fail(ErrorCode::refused, "jobs have their home there");
  const auto home = joined(token_for("home"));
  EXPECT_EQ(ask(api::ForgetNode{"home"}).error().code, ErrorCode::refused);
  EXPECT_EQ(revoked_.count(home.serial), 0U);
  // By force it is put out before the fleet is asked.
  EXPECT_EQ(ask(api::ForgetNode{"home", true}).error().code, ErrorCode::refused);
  EXPECT_EQ(revoked_.count(home.serial), 1U);
  open();
  EXPECT_FALSE(token_for("laptop").empty());
}

TEST_F(Keeper, RenewalIsForLivingCertificatesOfThisFleet) {
  init();
  open();
  const auto laptop = joined(token_for("laptop"));
  const auto renew = [&](const std::optional<pki::CertificateInfo>& certificate) {
    const std::string request = pki::make_request(pki::make_key().value(), "x").value();
    return enrol("renew", to_value(http::RenewRequest{request}), certificate);
  };
  const auto renewed = renew(laptop);
  ASSERT_TRUE(renewed) << renewed.error().describe();
  const auto chain = from_value<http::RenewReply>(*renewed)->chain;
  EXPECT_EQ(pki::read_certificate(chain)->identity, laptop.identity);
  EXPECT_FALSE(renew({}));
  // Given out after the copy was made that this controller began with.
  pki::CertificateInfo unknown = laptop;
  unknown.serial = "41";
  EXPECT_TRUE(renew(unknown));
  ASSERT_TRUE(ask(api::ForgetNode{"laptop"}));
  EXPECT_EQ(revoked_.size(), 4U);
  EXPECT_EQ(revoked_.count("41"), 1U);
  EXPECT_FALSE(renew(laptop));
  EXPECT_FALSE(renew(unknown));
  EXPECT_FALSE(enrol("succession", Value::map(), unknown));
  // Whom not to believe is for everybody, those whose certificate is not believed included.
  const auto list = enrol("revocations", Value::map());
  ASSERT_TRUE(list);
  EXPECT_EQ(from_value<http::RevocationsReply>(*list)->serials.size(), 4U);
  EXPECT_FALSE(enrol("frobnicate", Value::map(), laptop));
}

TEST_F(Keeper, AViewerLooksAndEveryChangeIsWrittenDown) {
  init();
  open();
  EXPECT_TRUE(ask(api::ListJobs{}, false));
  EXPECT_TRUE(ask(api::ListTokens{}, false));
  EXPECT_EQ(passed_, 1);
  EXPECT_EQ(ask(api::StopJob{"train"}, false).error().code, ErrorCode::refused);
  EXPECT_EQ(ask(api::CreateToken{"eve", api::TokenRole::operator_}, false).error().code,
            ErrorCode::refused);
  EXPECT_EQ(passed_, 1);
  EXPECT_TRUE(ask(api::StopJob{"train"}));
  const std::string token = token_for("laptop");
  joined(token);
  ASSERT_TRUE(loop_.run_until([&] { return audit().size() >= 5; }, patience));
  const auto lines = audit();
  const auto text = [&](std::size_t line, const char* key) {
    return *lines.at(line).find(key)->as_text();
  };
  EXPECT_EQ(text(0, "what"), "stop");
  EXPECT_NE(text(0, "result").find("may look at the fleet"), std::string::npos);
  EXPECT_EQ(text(2, "result"), "ok");
  EXPECT_EQ(text(2, "who"), "alice@alice");
  EXPECT_EQ(text(2, "from"), "10.0.0.7:5");
  EXPECT_EQ(text(4, "what"), "join");
  EXPECT_EQ(text(4, "who"), "zed@laptop");
  const std::string whole = proc::read_file(state_ / "audit.log").value();
  EXPECT_EQ(whole.find("zed1:"), std::string::npos);
  EXPECT_EQ(mode_of(state_ / "audit.log"), 0600U);
}

TEST_F(Keeper, AChangeWhoseAskerLeavesIsWrittenDownToo) {
  init();
  open();
  keeper_->pass(
      api::StopJob{"train"}, {"alice@alice", "https", true, ""}, [](const auto&) {},
      [](const api::Request&, const api::Caller&, const http::Reply&) -> http::OnGone {
        return {};
      });
  ASSERT_TRUE(loop_.run_until([&] { return audit().size() == 1; }, patience));
  EXPECT_NE(audit()[0].find("result")->as_text()->find("left"), std::string::npos);
}

TEST_F(Keeper, AnotherMachineTakesTheAuthorityOver) {
  init();
  open();
  const auto laptop = joined(token_for("laptop"));
  ASSERT_TRUE(ask(api::ForgetNode{"laptop"}));
  const fs::path other = state_ / "other";
  std::ofstream(state_ / "cookie") << "one for all\n";
  fs::permissions(state_ / "cookie", fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(init_fleet({other, "second", {}, "wrong horse", state_ / "pki"}).error().code,
            ErrorCode::refused);
  const auto made = init_fleet({other, "second", {}, passphrase, state_ / "pki"});
  ASSERT_TRUE(made) << made.error().describe();
  EXPECT_EQ(*made, authority_);
  const IdentityFiles files(other);
  EXPECT_EQ(files.load_tls().value()->own()->identity.node, "zed_controller@second");
  EXPECT_EQ(files.load_registry()->revoked(), std::set<std::string>{laptop.serial});
  EXPECT_EQ(read_cookie(other / "cookie", false).value(), "one for all");
  // Without the registry whoever was revoked would be believed again.
  fs::remove(state_ / "pki/registry.json");
  const auto blind = init_fleet({state_ / "third", "third", {}, passphrase, state_ / "pki"});
  ASSERT_FALSE(blind);
  EXPECT_NE(blind.error().describe().find("believed again"), std::string::npos);
}

TEST_F(Keeper, OnlyTheSecondNodeIsGivenTheAuthority) {
  init();
  open();
  const auto laptop = joined(token_for("laptop"));
  const auto server = joined(token_for("beta"));
  EXPECT_EQ(succession(laptop).controller, "zed_controller@server");
  EXPECT_EQ(succession(laptop).second, "");
  second_ = SecondNode{"beta", "10.0.0.2"};
  EXPECT_EQ(succession(laptop).second_host, "10.0.0.2");
  EXPECT_FALSE(succession(laptop).authority);
  pki::CertificateInfo person = server;
  person.identity.role = pki::Role::operator_;
  EXPECT_FALSE(succession(person).authority);
  ASSERT_TRUE(succession(server).authority);
  EXPECT_FALSE(enrol("succession", Value::map()));
}

TEST_F(Keeper, ATakeoverGoesOnWithTheSecondNodesCopies) {
  init();
  open();
  const std::string laptop = chain_of(token_for("laptop"));
  const std::string key = pki::make_key().value();
  const std::string request = pki::make_request(key, "x").value();
  const auto reply = enrol("join", to_value(http::JoinRequest{token_for("beta"), request}));
  ASSERT_TRUE(reply);
  const auto beta = from_value<http::JoinReply>(*reply).value();
  // What the agent of the second node keeps.
  second_ = SecondNode{"beta", "10.0.0.2"};
  const fs::path agent = state_ / "agent", other = state_ / "other";
  const IdentityFiles files(agent);
  ASSERT_TRUE(files.save_roots(beta.roots));
  ASSERT_TRUE(files.save_identity({beta.chain, key}));
  TakeoverIdentity takeover{other, agent, "", {"10.0.0.2"}, (state_ / "words").string(), "", false};
  std::ofstream(state_ / "words") << passphrase << "\n";
  const auto early = take_over_identity(takeover);
  ASSERT_FALSE(early);
  EXPECT_NE(early.error().describe().find("--authority"), std::string::npos);
  const auto copy = succession(pki::read_certificate(beta.chain).value()).authority;
  ASSERT_TRUE(copy);
  ASSERT_TRUE(files.save_authority_copy(*copy, "one for all"));
  EXPECT_EQ(mode_of(files.authority_copy()), 0700U);

  const auto node = take_over_identity(takeover);
  ASSERT_TRUE(node) << node.error().describe();
  EXPECT_EQ(**node, "beta");
  const auto own = IdentityFiles(other).load_tls().value()->own();
  EXPECT_EQ(own->identity.node, "zed_controller@beta");
  EXPECT_EQ(read_cookie(other / "cookie", false).value(), "one for all");
  const auto registry = IdentityFiles(other).load_registry().value();
  EXPECT_TRUE(registry.is_live(pki::read_certificate(laptop)->serial));
  // Again, after a crash: what is there stays.
  ASSERT_TRUE(take_over_identity(takeover));
  EXPECT_EQ(IdentityFiles(other).load_tls().value()->own()->serial, own->serial);
}

TEST_F(Keeper, ARevokedIssuingCertificateTakesAllAlongThatItSigned) {
  init();
  open();
  const std::string laptop = chain_of(token_for("laptop"));
  const std::string waiting = token_for("waits");
  keeper_.reset();
  const std::string stolen = files_().load_issuing()->chain;
  const std::string former = proc::read_file(state_ / "pki/node.pem").value();
  ASSERT_TRUE(issue_anew(state_, passphrase, true));
  const pki::Trust trust{files_().load_roots().value(), files_().load_registry()->revoked(), ""};
  EXPECT_EQ(trust.revoked.count(pki::read_certificate(stolen)->serial), 1U);
  const auto refused = pki::verify(laptop, trust, wall_now());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().describe().find("revoked"), std::string::npos);
  EXPECT_FALSE(pki::verify(pki::split_pem(former)->chain, trust, wall_now()));
  open();
  // Its hash lay beside the key that is not trusted any more.
  EXPECT_EQ(join(waiting).error().code, ErrorCode::refused);
  const std::string anew = chain_of(token_for("laptop"));
  EXPECT_TRUE(pki::verify(anew, trust, wall_now()));
  const std::string own = proc::read_file(state_ / "pki/node.pem").value();
  EXPECT_TRUE(pki::verify(pki::split_pem(own)->chain, trust, wall_now()));
  // Whoever joins knows it from the first moment.
  const auto reply = join(token_for("third"));
  ASSERT_TRUE(reply);
  EXPECT_EQ(from_value<http::JoinReply>(*reply)->revoked, trust.revoked);
}

TEST_F(Keeper, WithoutAnAuthorityThereAreNoCertificates) {
  auto opened = DoorKeeper::open(loop_, state_, std::nullopt, {});
  ASSERT_TRUE(opened);
  keeper_ = std::move(*opened);
  EXPECT_EQ(join("zed1:x").error().code, ErrorCode::unsupported);
  EXPECT_TRUE(ask(api::StopJob{"train"}));
  EXPECT_EQ(passed_, 1);
}

TEST(Audit, LongArgumentsAreCutAndTextsLeftOut) {
  const Value arguments = Value::map().set("text", "secret").set("job", std::string(5000, 'x'));
  const std::string line = audit_line({{0}, "a\nb", "socket", "", "apply", arguments, "ok"});
  EXPECT_EQ(line.find("secret"), std::string::npos);
  EXPECT_LT(line.size(), 300U);
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
}

TEST(Joined, ListeningEverywhereIsReachedByTheAddressTowardsTheController) {
  EXPECT_EQ(reachable_address({"10.1.2.3", 4373}, {"127.0.0.1", 4371}), "10.1.2.3:4373");
  EXPECT_EQ(reachable_address({"0.0.0.0", 4373}, {"127.0.0.1", 4371}), "127.0.0.1:4373");
}

}  // namespace
}  // namespace zed::bin
