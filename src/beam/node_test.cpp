#include <gtest/gtest.h>

#include "beam/node.hpp"
#include "net/connection.hpp"
#include "net/socket.hpp"

namespace zed::beam {
namespace {

constexpr Millis patience = seconds(20);

struct Host {
  net::Loop& loop;
  std::string log;
  std::vector<std::string> received;
  std::vector<Error> refused;
  std::vector<Call> calls;
  std::unique_ptr<Node> node;

  Host(net::Loop& owner, const std::string& name, NodeOptions options = {}) : loop(owner) {
    options.name = name;
    if (options.cookie.empty()) options.cookie = "secret";
    options.listen.port = options.listen.port == 4370 ? std::uint16_t{0} : options.listen.port;
    NodeHandlers handlers;
    handlers.admit = [](const std::string& peer) { return peer.rfind("stranger", 0) != 0; };
    handlers.on_up = [this](const std::string& peer) { log += "+" + peer; };
    handlers.on_down = [this](const std::string& peer, const Error&) { log += "-" + peer; };
    handlers.on_message = [this](Message m) { received.push_back(show(m.content)); };
    handlers.on_refused = [this](const net::Endpoint&, const Error& why) {
      refused.push_back(why);
    };
    auto started = Node::start(loop, std::move(options), std::move(handlers));
    if (!started) ADD_FAILURE() << started.error().describe();
    node = std::move(*started);
  }

  /// Connects and waits for the outcome.
  Status connect(const Host& other, Millis deadline = seconds(5)) {
    return connect(other.node->name(), other.node->endpoint(), deadline);
  }
  Status connect(const std::string& peer, const net::Endpoint& at, Millis deadline = seconds(5)) {
    std::optional<Status> outcome;
    node->connect(peer, at, deadline, [&](Status status) { outcome = std::move(status); });
    EXPECT_FALSE(outcome) << "called inside connect()";
    EXPECT_TRUE(loop.run_until([&] { return outcome.has_value(); }, patience));
    return *outcome;
  }
};

TEST(Node, TwoNodesTalkAndNoticeTheEnd) {
  net::Loop loop;
  Host agent(loop, "zed@one");
  Host controller(loop, "zed_controller@two");
  ASSERT_TRUE(agent.connect(controller));
  EXPECT_TRUE(loop.run_until([&] { return controller.node->is_up("zed@one"); }, patience));
  ASSERT_TRUE(agent.node->send("zed_controller@two", atom("hello")));
  ASSERT_TRUE(controller.node->send("zed@one", tuple({atom("welcome"), 1})));
  EXPECT_TRUE(loop.run_until(
      [&] { return agent.received.size() + controller.received.size() == 2; }, patience));
  EXPECT_EQ(controller.received.at(0), "hello");
  EXPECT_EQ(agent.received.at(0), "{welcome,1}");
  EXPECT_EQ(agent.node->peers(), std::vector<std::string>{"zed_controller@two"});
  controller.node.reset();
  EXPECT_TRUE(loop.run_until([&] { return agent.log == "+zed_controller@two-zed_controller@two"; },
                             patience));
  EXPECT_EQ(agent.node->send("zed_controller@two", atom("x")).error().code, ErrorCode::unavailable);
}

TEST(Node, MessagesKeepTheirOrderLargeOnesToo) {
  net::Loop loop;
  Host agent(loop, "zed@one");
  Host controller(loop, "zed_controller@two");
  ASSERT_TRUE(agent.connect(controller));
  for (int i = 0; i < 200; ++i) {
    const std::size_t size = i % 50 == 0 ? 300'000 : 3;
    ASSERT_TRUE(agent.node->send("zed_controller@two", tuple({i, binary(std::string(size, 'x'))})));
  }
  EXPECT_TRUE(loop.run_until([&] { return controller.received.size() == 200; }, patience));
  for (std::size_t i = 0; i < 200; ++i)
    EXPECT_EQ(controller.received[i].find("{" + std::to_string(i) + ","), 0U);
}

TEST(Node, AWrongCookieIsRefusedOnBothSides) {
  net::Loop loop;
  NodeOptions other;
  other.cookie = "guess";
  Host agent(loop, "zed@one", other);
  Host controller(loop, "zed_controller@two");
  EXPECT_FALSE(agent.connect(controller));
  EXPECT_TRUE(loop.run_until([&] { return !controller.refused.empty(); }, patience));
  EXPECT_EQ(controller.refused[0].code, ErrorCode::refused);
  EXPECT_NE(controller.refused[0].describe().find("zed@one"), std::string::npos);
  EXPECT_EQ(agent.log + controller.log, "");
}

TEST(Node, ANameNotAdmittedIsToldSo) {
  net::Loop loop;
  Host stranger(loop, "stranger@one");
  Host controller(loop, "zed_controller@two");
  auto status = stranger.connect(controller);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::refused);
  EXPECT_NE(status.error().describe().find("zed_controller@two"), std::string::npos);
}

TEST(Node, NobodyThereAndSomebodyElseThere) {
  net::Loop loop;
  Host agent(loop, "zed@one");
  Host controller(loop, "zed_controller@two");
  const net::Endpoint at = controller.node->endpoint();
  auto other = agent.connect("zed_controller@three", at);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().describe().find("zed_controller@two"), std::string::npos);
  controller.node.reset();
  EXPECT_EQ(agent.connect("zed_controller@two", at).error().code, ErrorCode::unavailable);
  EXPECT_EQ(agent.connect("zed_controller@two", {"192.0.2.1", 4371}).error().code,
            ErrorCode::refused);
  EXPECT_EQ(agent.connect("nonsense", at).error().code, ErrorCode::invalid);
}

TEST(Node, ASilentListenerMeetsTheDeadlineAndNobodyElseWaits) {
  net::Loop loop;
  Host agent(loop, "zed@one");
  Host controller(loop, "zed_controller@two");
  auto silent = net::listen_tcp({"127.0.0.1", 0}, net::Exposure::loopback_only);
  ASSERT_TRUE(silent);
  std::optional<Status> outcome;
  agent.node->connect("zed_controller@three", *net::local_endpoint(silent->get()), {300},
                      [&](Status status) { outcome = std::move(status); });
  ASSERT_TRUE(agent.connect(controller));
  EXPECT_FALSE(outcome);
  EXPECT_TRUE(loop.run_until([&] { return outcome.has_value(); }, patience));
  EXPECT_EQ(outcome->error().code, ErrorCode::timeout);
}

TEST(Node, BothDialAtOnceAndOneConnectionComesOfIt) {
  net::Loop loop;
  for (int round = 0; round < 10; ++round) {
    Host a(loop, "zed@a");
    Host b(loop, "zed@b");
    int done = 0;
    const auto count = [&](Status status) {
      EXPECT_TRUE(status) << status.error().describe();
      ++done;
    };
    a.node->connect("zed@b", b.node->endpoint(), seconds(5), count);
    b.node->connect("zed@a", a.node->endpoint(), seconds(5), count);
    EXPECT_TRUE(loop.run_until([&] { return done == 2; }, patience));
    ASSERT_TRUE(a.node->send("zed@b", atom("x")));
    EXPECT_TRUE(loop.run_until([&] { return b.received.size() == 1; }, patience));
    EXPECT_EQ(a.log, "+zed@b");
    EXPECT_EQ(b.log, "+zed@a");
  }
}

TEST(Node, ASecondAttemptWhileOneIsUnderWayIsExists) {
  net::Loop loop;
  Host agent(loop, "zed@one");
  Host controller(loop, "zed_controller@two");
  std::optional<Status> first;
  agent.node->connect("zed_controller@two", controller.node->endpoint(), seconds(5),
                      [&](Status status) { first = std::move(status); });
  EXPECT_EQ(agent.connect(controller).error().code, ErrorCode::exists);
  EXPECT_TRUE(loop.run_until([&] { return first.has_value(); }, patience));
  EXPECT_TRUE(*first);
  EXPECT_TRUE(agent.connect(controller)) << "already connected is success";
}

TEST(Node, ARestartedPeerTakesOverOnlyWithTheCookie) {
  net::Loop loop;
  Host controller(loop, "zed_controller@two");
  auto first = std::make_unique<Host>(loop, "zed@one");
  ASSERT_TRUE(first->connect(controller));
  EXPECT_TRUE(loop.run_until([&] { return controller.node->is_up("zed@one"); }, patience));

  NodeOptions thief_options;
  thief_options.cookie = "guess";
  Host thief(loop, "zed@one", thief_options);
  EXPECT_FALSE(thief.connect(controller));
  EXPECT_TRUE(controller.node->is_up("zed@one"));
  EXPECT_EQ(controller.log, "+zed@one");

  Host second(loop, "zed@one");
  ASSERT_TRUE(second.connect(controller));
  EXPECT_TRUE(
      loop.run_until([&] { return controller.log == "+zed@one-zed@one+zed@one"; }, patience));
  EXPECT_TRUE(loop.run_until([&] { return !first->node->is_up("zed_controller@two"); }, patience));
  ASSERT_TRUE(controller.node->send("zed@one", atom("for_the_second")));
  EXPECT_TRUE(loop.run_until([&] { return second.received.size() == 1; }, patience));
}

TEST(Node, ASlowReceiverIsBusyAndTheRestArrives) {
  net::Loop loop;
  NodeOptions options;
  options.limits.max_output = 400'000;
  Host agent(loop, "zed@one", options);
  Host controller(loop, "zed_controller@two");
  ASSERT_TRUE(agent.connect(controller));
  const Term block = binary(std::string(100'000, 'x'));
  std::size_t accepted = 0;
  Status status;
  while (accepted < 1000 && (status = agent.node->send("zed_controller@two", block)))
    ++accepted;
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::busy);
  EXPECT_TRUE(loop.run_until([&] { return controller.received.size() == accepted; }, patience));
  EXPECT_TRUE(agent.node->send("zed_controller@two", block));
}

TEST(Node, GarbageAndFloodsOfConnectionsDoNotHarmOthers) {
  net::Loop loop;
  NodeOptions options;
  options.max_connections = 8;
  Host controller(loop, "zed_controller@two", options);
  Host agent(loop, "zed@one");
  ASSERT_TRUE(agent.connect(controller));
  std::vector<net::Connection> flood;
  int answered = 0;
  for (int i = 0; i < 20; ++i) {
    net::connect_tcp(loop, controller.node->endpoint(), {}, [&](Result<net::Fd> fd) {
      ++answered;
      if (!fd) return;
      flood.emplace_back(loop, std::move(*fd));
      (void)flood.back().send("GET / HTTP/1.1\r\n\r\n");
    });
  }
  EXPECT_TRUE(loop.run_until([&] { return answered == 20; }, patience));
  EXPECT_TRUE(loop.run_until([&] { return controller.refused.size() >= 7; }, patience));
  ASSERT_TRUE(agent.node->send("zed_controller@two", atom("still_here")));
  EXPECT_TRUE(loop.run_until([&] { return controller.received.size() == 1; }, patience));
}

TEST(Node, HandlersMayDestroyTheNode) {
  net::Loop loop;
  Host agent(loop, "zed@one");
  std::unique_ptr<Node> fragile;
  bool down = false;
  NodeHandlers handlers;
  handlers.admit = [](const std::string&) { return true; };
  handlers.on_message = [&](const Message&) { fragile.reset(); };
  handlers.on_down = [&](const std::string&, const Error&) { down = true; };
  NodeOptions options;
  options.name = "zed_controller@two";
  options.cookie = "secret";
  options.listen.port = 0;
  fragile = std::move(*Node::start(loop, options, handlers));
  ASSERT_TRUE(agent.connect("zed_controller@two", fragile->endpoint()));
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(agent.node->send("zed_controller@two", atom("die")));
  EXPECT_TRUE(loop.run_until([&] { return !agent.node->is_up("zed_controller@two"); }, patience));
  EXPECT_EQ(fragile, nullptr);
  EXPECT_FALSE(down);
}

TEST(Node, WhatCannotStartSaysWhy) {
  net::Loop loop;
  NodeOptions options;
  options.name = "zed";
  options.cookie = "secret";
  EXPECT_EQ(Node::start(loop, options, {}).error().code, ErrorCode::invalid);
  options.name = "zed@one";
  options.cookie = "";
  EXPECT_EQ(Node::start(loop, options, {}).error().code, ErrorCode::invalid);
  options.cookie = "secret";
  options.listen = {"0.0.0.0", 0};
  EXPECT_EQ(Node::start(loop, options, {}).error().code, ErrorCode::refused);
  Host holder(loop, "zed@two");
  options.listen = holder.node->endpoint();
  auto busy = Node::start(loop, options, {});
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, ErrorCode::busy);
  EXPECT_NE(busy.error().describe().find(options.listen.str()), std::string::npos);
}

TEST(Node, TicksKeepAQuietPairUp) {
  net::Loop loop;
  NodeOptions options;
  options.limits.tick = {200};
  Host a(loop, "zed@a", options);
  Host b(loop, "zed@b", options);
  ASSERT_TRUE(a.connect(b));
  EXPECT_FALSE(loop.run_until([&] { return a.log.size() > 6 || b.log.size() > 6; }, {700}));
}

}  // namespace
}  // namespace zed::beam
