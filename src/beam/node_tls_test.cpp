// Nodes beneath TLS: who gets in, and who is kept out while the others go on.
#include <gtest/gtest.h>

#include <unistd.h>

#include "beam/node.hpp"
#include "net/socket.hpp"
#include "pki/testing.hpp"

namespace zed::beam {
namespace {

using pki::Role;
using pki::TestFleet;

constexpr Millis patience = seconds(20);

struct Host {
  Host(net::Loop& owner, const std::string& name, std::shared_ptr<const net::Tls> tls,
       NodeOptions options = {})
      : loop(owner) {
    options.name = name;
    options.cookie = "secret";
    options.listen.port = 0;
    options.tls = std::move(tls);
    NodeHandlers handlers;
    handlers.admit = [](const std::string&) { return true; };
    handlers.on_up = [this](const std::string& peer) { log += "+" + peer; };
    handlers.on_down = [this](const std::string& peer, const Error&) { log += "-" + peer; };
    handlers.on_message = [this](const Message& m) { received.push_back(show(m.content)); };
    handlers.on_refused = [this](const net::Endpoint&, const Error& why) {
      refused.push_back(why.describe());
    };
    node = Node::start(loop, std::move(options), std::move(handlers)).value();
  }

  Status connect(const std::string& peer, const net::Endpoint& at) {
    std::optional<Status> outcome;
    node->connect(peer, at, seconds(5), [&](Status status) { outcome = std::move(status); });
    EXPECT_TRUE(loop.run_until([&] { return outcome.has_value(); }, patience));
    return *outcome;
  }
  Status connect(const Host& other) { return connect(other.node->name(), other.node->endpoint()); }

  net::Loop& loop;
  std::string log;
  std::vector<std::string> received, refused;
  std::unique_ptr<Node> node;
};

struct Cluster {
  net::Loop loop;
  TestFleet fleet;
  Host controller{loop, "zed_controller@two", fleet.tls("two", Role::controller)};

  /// One more message from the agent arrives.
  void expect_goes_on(Host& agent) {
    const std::size_t before = controller.received.size();
    ASSERT_TRUE(agent.node->send("zed_controller@two", atom("alive")));
    EXPECT_TRUE(loop.run_until([&] { return controller.received.size() > before; }, patience));
  }
  void expect_refused(const std::string& why) {
    EXPECT_TRUE(loop.run_until([&] { return !controller.refused.empty(); }, patience));
    ASSERT_FALSE(controller.refused.empty());
    EXPECT_NE(controller.refused.back().find(why), std::string::npos) << controller.refused.back();
    controller.refused.clear();
  }
};

TEST(NodeTls, TalksAndKnowsTheCertificate) {
  Cluster c;
  Host agent(c.loop, "zed@one", c.fleet.tls("one", Role::agent));
  ASSERT_TRUE(agent.connect(c.controller));
  EXPECT_TRUE(c.loop.run_until([&] { return c.controller.node->is_up("zed@one"); }, patience));
  ASSERT_TRUE(agent.node->send("zed_controller@two", binary(std::string(900'000, 'x'))));
  ASSERT_TRUE(c.controller.node->send("zed@one", atom("welcome")));
  EXPECT_TRUE(c.loop.run_until(
      [&] { return agent.received.size() + c.controller.received.size() == 2; }, patience));
  ASSERT_NE(c.controller.node->certificate_of("zed@one"), nullptr);
  EXPECT_EQ(c.controller.node->certificate_of("zed@one")->identity.role, Role::agent);
  EXPECT_EQ(c.controller.node->certificate_of("zed@nobody"), nullptr);
  EXPECT_EQ(c.controller.node->address_of("zed@one")->host, "127.0.0.1");
  EXPECT_FALSE(c.controller.node->address_of("zed@nobody"));
}

TEST(NodeTls, TheHandshakesNameMustBeTheCertificates) {
  Cluster c;
  Host honest(c.loop, "zed@one", c.fleet.tls("one", Role::agent));
  ASSERT_TRUE(honest.connect(c.controller));
  Host liar(c.loop, "zed@one", c.fleet.tls("three", Role::agent));
  EXPECT_FALSE(liar.connect(c.controller));
  c.expect_refused("zed@three");
  EXPECT_EQ(honest.log, "+zed_controller@two");
  c.expect_goes_on(honest);
}

TEST(NodeTls, ADialledNodeMustShowItsOwnCertificate) {
  Cluster c;
  Host imposter(c.loop, "zed_controller@three", c.fleet.tls("four", Role::agent));
  Host agent(c.loop, "zed@one", c.fleet.tls("one", Role::agent));
  const auto status = agent.connect("zed_controller@three", imposter.node->endpoint());
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().describe().find("zed@four"), std::string::npos)
      << status.error().describe();
}

TEST(NodeTls, StrangersAreRefused) {
  Cluster c;
  const TestFleet rogue;
  Host honest(c.loop, "zed@one", c.fleet.tls("one", Role::agent));
  ASSERT_TRUE(honest.connect(c.controller));
  const auto refuses = [&](std::shared_ptr<net::Tls> tls, const std::string& why) {
    Host stranger(c.loop, "zed@three", std::move(tls));
    EXPECT_FALSE(stranger.connect(c.controller));
    c.expect_refused(why);
    c.expect_goes_on(honest);
  };
  refuses(rogue.tls("three", Role::agent), "");
  refuses(c.fleet.with_chain_of(rogue, "three", Role::agent), "another fleet");
  refuses(c.fleet.expired("three", Role::agent), "valid until");
  refuses(c.fleet.anonymous(), "certificate");
  refuses(nullptr, "");  // plain
}

TEST(NodeTls, WhoIsRevokedIsDroppedAndStaysOut) {
  Cluster c;
  auto tls = c.fleet.tls("two", Role::controller);
  Host controller(c.loop, "zed_controller@two", tls);
  const auto agent_tls = c.fleet.tls("one", Role::agent);
  Host agent(c.loop, "zed@one", agent_tls);
  ASSERT_TRUE(agent.connect(controller));
  ASSERT_TRUE(c.loop.run_until([&] { return controller.node->is_up("zed@one"); }, patience));
  const std::set<std::string> revoked{agent_tls->own()->serial};
  tls->revoke(revoked);
  controller.node->drop_revoked(revoked);
  EXPECT_EQ(controller.log, "+zed@one-zed@one");
  EXPECT_TRUE(
      c.loop.run_until([&] { return agent.log.ends_with("-zed_controller@two"); }, patience));
  EXPECT_FALSE(agent.connect(controller));
}

TEST(NodeTls, AFloodOfSilentAndGarbageConnectionsKeepsNobodyOut) {
  net::Loop loop;
  const TestFleet fleet;
  NodeOptions options;
  options.max_strangers = 50;
  Host controller(loop, "zed_controller@two", fleet.tls("two", Role::controller), options);
  Host early(loop, "zed@one", fleet.tls("one", Role::agent));
  ASSERT_TRUE(early.connect(controller));
  std::vector<net::Fd> flood;
  for (int i = 0; i < 400; ++i) {
    auto fd = net::dial_tcp(controller.node->endpoint(), net::Exposure::loopback_only, seconds(5));
    ASSERT_TRUE(fd);
    // Every other one sends the beginning of something.
    const std::string words =
        i % 4 == 1 ? std::string("\x16\x03\x01\x02", 4) : "GET / HTTP/1.1\r\n";
    if (i % 2 == 1) (void)!::write(fd->get(), words.data(), words.size());
    flood.push_back(std::move(*fd));
    if (i % 20 == 0) loop.run_until([] { return false; }, Millis{1});
  }
  Host late(loop, "zed@three", fleet.tls("three", Role::agent));
  EXPECT_TRUE(late.connect(controller));
  ASSERT_TRUE(early.node->send("zed_controller@two", atom("alive")));
  ASSERT_TRUE(late.node->send("zed_controller@two", atom("alive")));
  EXPECT_TRUE(loop.run_until([&] { return controller.received.size() == 2; }, patience));
  EXPECT_EQ(controller.log, "+zed@one+zed@three");
}

TEST(NodeTls, AClientThatGoesSilentInTheHandshakeIsDroppedInTime) {
  net::Loop loop;
  const TestFleet fleet;
  NodeOptions options;
  options.limits.handshake = Millis{300};
  Host controller(loop, "zed_controller@two", fleet.tls("two", Role::controller), options);
  auto fd = net::dial_tcp(controller.node->endpoint(), net::Exposure::loopback_only, seconds(5));
  ASSERT_TRUE(fd);
  EXPECT_TRUE(loop.run_until([&] { return !controller.refused.empty(); }, patience));
}

}  // namespace
}  // namespace zed::beam
