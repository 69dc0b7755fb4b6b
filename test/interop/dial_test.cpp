// Who dials whom: our node dials a real shell, both dial at once, and what a shell needs on its
// command line.
#include <gtest/gtest.h>

#include <algorithm>

#include "beam/epmd.hpp"
#include "fixture.hpp"
#include "relay.hpp"

namespace zed::interop {
namespace {

class Dial : public Interop {
protected:
  /// Connects our node to the shell `name` at a port; the outcome's error, or "up".
  std::string dial(const std::string& name, std::uint16_t port) {
    std::optional<Status> outcome;
    node->connect(name + "@localhost", {"127.0.0.1", port}, seconds(10),
                  [&outcome](Status status) { outcome = std::move(status); });
    EXPECT_TRUE(loop.run_until([&] { return outcome.has_value(); }, seconds(20)));
    if (!outcome) return "nothing";
    return *outcome ? "up" : std::string(to_string(outcome->error().code));
  }
  bool is_ready(const Child& shell) {
    return loop.run_until([&] { return shell.output().find("up\n") != std::string::npos; },
                          patience);
  }
};

TEST_F(Dial, OurNodeDialsAShellAndIsHiddenThere) {
  const std::uint16_t port = free_port();
  Child shell(listener("waiting", port,
                       "register(here, self()), receive {say, X} -> io:format(\"~p ~p~n\", [X, "
                       "nodes(hidden)]) end"));
  ASSERT_TRUE(is_ready(shell));
  ASSERT_EQ(dial("waiting", port), "up");
  EXPECT_EQ(log, "+waiting@localhost");
  EXPECT_TRUE(node->send("waiting@localhost", tuple({atom("say"), atom("hello")}), "here"));
  EXPECT_EQ(shell.wait(loop, patience).output, "up\nhello [zed@localhost]\n");
}

TEST_F(Dial, ADialWithAnotherCookieOrToAnotherNameIsRefused) {
  const std::uint16_t port = free_port();
  auto argv = listener("waiting", port, "timer:sleep(infinity)");
  Child shell(argv);
  ASSERT_TRUE(is_ready(shell));
  EXPECT_EQ(dial("somebody", port), "refused");
  node.reset();
  beam::NodeOptions options;
  start(options);
  *std::find(argv.begin(), argv.end(), "secret") = "other";
  const std::uint16_t other_port = free_port();
  *std::find(argv.begin(), argv.end(), std::to_string(port)) = std::to_string(other_port);
  Child stranger(argv);
  ASSERT_TRUE(is_ready(stranger));
  // OTP says nothing to a wrong digest; it hangs up.
  EXPECT_EQ(dial("waiting", other_port), "unavailable");
  EXPECT_EQ(log, "");
}

TEST_F(Dial, ARestartedNodeOfOursTakesItsNameBack) {
  // OTP answers `alive` to the second life until its first connection is known to be gone.
  const std::uint16_t port = free_port();
  Child shell(listener("waiting", port, "timer:sleep(infinity)"));
  ASSERT_TRUE(is_ready(shell));
  Relay relay(loop, {"127.0.0.1", port});
  relay.open();
  ASSERT_EQ(dial("waiting", relay.port()), "up");
  // A second node of the same name dials while the first still holds its connection.
  auto first = std::move(node);
  start({});
  EXPECT_EQ(dial("waiting", port), "up");
}

/// Our attempt is on its way and held back when the shell's arrives. The greater name's goes on.
TEST_F(Dial, WhenBothDialAtOnceTheGreaterNamesAttemptGoesOn) {
  for (const bool shell_is_greater : {true, false}) {
    const std::string name = shell_is_greater ? "zzz" : "aaa";
    node.reset();
    beam::NodeOptions options;
    start(options);
    log.clear();
    // The shell dials us at our port; it cannot listen there, so our own attempt goes nowhere until
    // the relay opens.
    Relay relay(loop, node->endpoint());
    std::optional<Status> ours;
    node->connect(name + "@localhost", {"127.0.0.1", relay.port()}, seconds(30),
                  [&ours](Status status) { ours = std::move(status); });
    ASSERT_TRUE(loop.run_until([&] { return relay.accepted() == 1; }, patience));
    Child shell(this->shell(name, "net_adm:ping(N)"));
    const std::string pinged = shell.wait(loop, patience).output;
    if (shell_is_greater) {
      EXPECT_EQ(pinged, "pong\n") << "ok_simultaneous";
      ASSERT_TRUE(ours.has_value());
      EXPECT_TRUE(*ours) << "what the shell opened counts";
      EXPECT_EQ(log.substr(0, 14), "+zzz@localhost");
    } else {
      EXPECT_NE(pinged.find("pang"), std::string::npos) << "nok: ours goes on; " << pinged;
      EXPECT_EQ(log, "");
    }
  }
}

/// The other half: it is the shell that has to decide.
TEST_F(Dial, AShellThatIsDiallingAnswersOurAttemptByTheSameRule) {
  if (!is_installed("epmd")) GTEST_SKIP() << "epmd is not installed";
  const std::uint16_t epmd_port = free_port();
  Child epmd({"epmd", "-port", std::to_string(epmd_port), "-address", "127.0.0.1"});
  for (const bool shell_is_greater : {true, false}) {
    const std::string name = shell_is_greater ? "zzz" : "aaa";
    node.reset();
    beam::NodeOptions options;
    start(options);
    // To the shell our node is at the relay, which holds its attempt back.
    Relay relay(loop, node->endpoint());
    auto registration =
        std::make_unique<beam::EpmdRegistration>(loop, "zed", relay.port(), epmd_port);
    ASSERT_TRUE(loop.run_until([&] { return registration->is_registered(); }, seconds(20)));
    const std::uint16_t port = free_port();
    Child shell({"env", "ERL_EPMD_PORT=" + std::to_string(epmd_port), "erl", "-noshell", "-sname",
                 name + "@localhost", "-setcookie", "secret", "-start_epmd", "false", "-kernel",
                 "inet_dist_use_interface", "{127,0,0,1}", "inet_dist_listen_min",
                 std::to_string(port), "inet_dist_listen_max", std::to_string(port), "-eval",
                 "io:format(\"~p\", [net_adm:ping(zed@localhost)]), halt(0)."});
    ASSERT_TRUE(loop.run_until([&] { return relay.accepted() == 1; }, patience)) << shell.output();
    std::optional<Status> ours;
    node->connect(name + "@localhost", {"127.0.0.1", port}, seconds(20),
                  [&ours](Status status) { ours = std::move(status); });
    if (shell_is_greater) {
      // It answers `nok`: its own attempt, which the relay has, is the one that counts.
      loop.run_until([&] { return ours.has_value(); }, seconds(1));
      EXPECT_FALSE(ours.has_value()) << "ours waits for what the peer's comes to";
      relay.open();
    }
    ASSERT_TRUE(loop.run_until([&] { return ours.has_value(); }, patience));
    EXPECT_TRUE(*ours) << name << ": " << (*ours ? "" : ours->error().describe());
    EXPECT_EQ(shell.wait(loop, patience).output, "pong") << name;
  }
}

TEST_F(Dial, AShellOnOurMachineMustNotListenOnOurPort) {
  auto argv = shell("shell", "net_adm:ping(N)");
  argv.erase(std::find(argv.begin(), argv.end(), "-dist_listen"),
             std::find(argv.begin(), argv.end(), "-eval"));
  const Outcome without = Child(argv).wait(loop, patience);
  EXPECT_NE(without.output.find("eaddrinuse"), std::string::npos) << without.output;
  EXPECT_EQ(eval("net_adm:ping(N)"), "pong") << "with -dist_listen false";
}

TEST_F(Dial, LongNamesWantAFullHostName) {
  auto argv = shell("shell", "net_adm:ping(N)");
  *std::find(argv.begin(), argv.end(), "-sname") = "-name";
  const Outcome long_name = Child(argv).wait(loop, patience);
  EXPECT_NE(long_name.output.find("illegal"), std::string::npos) << long_name.output;
}

}  // namespace
}  // namespace zed::interop
