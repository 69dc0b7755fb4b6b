// Erlang's own TLS distribution (-proto_dist inet_tls) against ours, both ways, and what either
// side refuses.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "beam/node.hpp"
#include "erl.hpp"
#include "net/socket.hpp"
#include "pki/testing.hpp"

namespace zed::interop {
namespace {

namespace fs = std::filesystem;
using pki::Role;
using pki::TestFleet;

constexpr Millis patience = seconds(60);
const std::string controller = "zed_controller@localhost";

class TlsInterop : public testing::Test {
protected:
  void SetUp() override {
    if (!is_installed("erl")) GTEST_SKIP() << "erl is not installed: apt-get install erlang-base";
    char pattern[] = "/tmp/zed-interop-XXXXXX";
    folder = ::mkdtemp(pattern);
    beam::NodeOptions options;
    options.name = controller;
    options.cookie = "secret";
    options.listen = {"127.0.0.1", 0};
    options.tls = tls;
    beam::NodeHandlers handlers;
    handlers.admit = [](const std::string&) { return true; };
    handlers.on_up = [this](const std::string& peer) { log += "+" + peer; };
    handlers.on_call = [this](const beam::Call& call) {
      (void)node->reply(call, beam::tuple({beam::atom("echo"), call.request}));
    };
    handlers.on_message = [this](const beam::Message& m) { messages.push_back(show(m.content)); };
    handlers.on_refused = [this](const net::Endpoint&, const Error& why) {
      refused += why.describe() + "\n";
    };
    node = beam::Node::start(loop, std::move(options), std::move(handlers)).value();
  }
  void TearDown() override { fs::remove_all(folder); }

  /// The options file for a shell that shows `identity` and believes `roots`.
  std::string options_for(const net::TlsIdentity& identity, const std::string& roots) {
    std::ofstream(folder / "own.pem") << identity.chain << identity.key;
    std::ofstream(folder / "ca.pem") << roots;
    const std::string own = (folder / "own.pem").string();
    const std::string common = "{certfile, \"" + own + "\"}, {keyfile, \"" + own +
                               "\"}, {cacertfile, \"" + (folder / "ca.pem").string() +
                               "\"}, {verify, verify_peer}, {versions, ['tlsv1.3']}";
    std::ofstream(folder / "tls.conf")
        << "[{server, [" << common << ", {fail_if_no_peer_cert, true}]}, {client, [" << common
        << "]}].\n";
    return (folder / "tls.conf").string();
  }

  std::vector<std::string> shell(const std::string& name, const std::string& options,
                                 std::uint16_t port, bool listens, const std::string& expression) {
    std::vector<std::string> argv = {"erl",
                                     "-noshell",
                                     "-proto_dist",
                                     "inet_tls",
                                     "-ssl_dist_optfile",
                                     options,
                                     "-sname",
                                     name,
                                     "-setcookie",
                                     "secret",
                                     "-start_epmd",
                                     "false",
                                     "-erl_epmd_port",
                                     std::to_string(port)};
    if (!listens) argv.insert(argv.end(), {"-dist_listen", "false"});
    argv.insert(argv.end(), {"-eval", "N = '" + controller + "', R = (fun() -> " + expression +
                                          " end)(), io:format(\"~0tp~n\", [R]), halt(0)."});
    return argv;
  }

  /// What the expression gives in a shell that dials us.
  std::string eval(const std::string& name, const net::TlsIdentity& identity,
                   const std::string& roots, const std::string& expression) {
    Child child(
        shell(name, options_for(identity, roots), node->endpoint().port, false, expression));
    return child.wait(loop, patience).output;
  }
  std::string ping(const std::string& name, const net::TlsIdentity& identity,
                   const std::string& roots) {
    return eval(name, identity, roots, "net_adm:ping(N)");
  }

  net::Loop loop;
  TestFleet fleet;
  std::shared_ptr<net::Tls> tls = fleet.tls("localhost", Role::controller);
  fs::path folder;
  std::string log, refused;
  std::vector<std::string> messages;
  std::unique_ptr<beam::Node> node;
};

TEST_F(TlsInterop, AShellDialsUs) {
  const auto alice = fleet.identity("alice@localhost", Role::operator_);
  const std::string said = eval(
      "alice@localhost", alice, fleet.root(),
      "pong = net_adm:ping(N), Big = binary:copy(<<7>>, 500000),"
      " {echo, Big} = gen_server:call({zed, N}, Big), gen_server:call({zed, N}, {hello, [1.5]})");
  EXPECT_EQ(said, "{echo,{hello,[1.5]}}\n") << refused;
  EXPECT_EQ(log, "+alice@localhost");
}

TEST_F(TlsInterop, WeDialAShell) {
  auto socket = net::listen_tcp({"127.0.0.1", 0}, net::Exposure::loopback_only);
  const std::uint16_t port = net::local_endpoint(socket->get())->port;
  socket = net::Fd();
  const auto alice = fleet.identity("alice@localhost", Role::operator_);
  Child child(shell("alice@localhost", options_for(alice, fleet.root()), port, true,
                    "register(zed, self()), io:format(\"ready~n\"),"
                    " receive {hello, X} -> {zed, N} ! {welcome, X}, timer:sleep(500), X end"));
  ASSERT_TRUE(
      loop.run_until([&] { return child.output().find("ready") != std::string::npos; }, patience))
      << child.output();
  std::optional<Status> connected;
  node->connect("alice@localhost", {"127.0.0.1", port}, seconds(10),
                [&](Status status) { connected = std::move(status); });
  ASSERT_TRUE(loop.run_until([&] { return connected.has_value(); }, patience));
  ASSERT_TRUE(*connected) << connected->error().describe();
  ASSERT_TRUE(node->send("alice@localhost", beam::tuple({beam::atom("hello"), 42})));
  EXPECT_TRUE(loop.run_until([&] { return !messages.empty(); }, patience)) << child.output();
  EXPECT_EQ(messages, std::vector<std::string>{"{welcome,42}"});
}

TEST_F(TlsInterop, WeDialNoShellUnderAnothersName) {
  auto socket = net::listen_tcp({"127.0.0.1", 0}, net::Exposure::loopback_only);
  const std::uint16_t port = net::local_endpoint(socket->get())->port;
  socket = net::Fd();
  const auto bob = fleet.identity("bob@localhost", Role::operator_);
  Child child(shell("alice@localhost", options_for(bob, fleet.root()), port, true,
                    "io:format(\"ready~n\"), timer:sleep(infinity)"));
  ASSERT_TRUE(
      loop.run_until([&] { return child.output().find("ready") != std::string::npos; }, patience));
  std::optional<Status> connected;
  node->connect("alice@localhost", {"127.0.0.1", port}, seconds(10),
                [&](Status status) { connected = std::move(status); });
  ASSERT_TRUE(loop.run_until([&] { return connected.has_value(); }, patience));
  ASSERT_FALSE(*connected);
  EXPECT_NE(connected->error().describe().find("bob@localhost"), std::string::npos)
      << connected->error().describe();
}

TEST_F(TlsInterop, AShellWithAWrongCertificateIsRefused) {
  const TestFleet rogue;
  const auto alice = fleet.identity("alice@localhost", Role::operator_);
  // Of another fleet; of this one, but in another's name; one that believes another; expired;
  // revoked, itself or who signed it.
  EXPECT_EQ(
      ping("alice@localhost", rogue.identity("alice@localhost", Role::operator_), fleet.root())
          .find("pong"),
      std::string::npos);
  EXPECT_NE(refused.find("another fleet"), std::string::npos) << refused;
  refused.clear();
  EXPECT_EQ(ping("zed@localhost", alice, fleet.root()).find("pong"), std::string::npos);
  EXPECT_NE(refused.find("its certificate is that of alice@localhost"), std::string::npos)
      << refused;
  refused.clear();
  EXPECT_EQ(ping("alice@localhost", alice, rogue.root()).find("pong"), std::string::npos);
  EXPECT_NE(refused.find("does not believe"), std::string::npos) << refused;
  refused.clear();
  EXPECT_EQ(ping("alice@localhost", fleet.expired_identity("alice@localhost", Role::operator_),
                 fleet.root())
                .find("pong"),
            std::string::npos);
  EXPECT_NE(refused.find("valid until"), std::string::npos) << refused;
  refused.clear();
  tls->revoke({fleet.issuer()});
  EXPECT_EQ(ping("alice@localhost", alice, fleet.root()).find("pong"), std::string::npos);
  EXPECT_NE(refused.find("issuing certificate"), std::string::npos) << refused;
  refused.clear();
  tls->revoke({pki::read_certificate(alice.chain)->serial});
  EXPECT_EQ(ping("alice@localhost", alice, fleet.root()).find("pong"), std::string::npos);
  EXPECT_NE(refused.find("revoked"), std::string::npos) << refused;
  EXPECT_EQ(log, "");
}

TEST_F(TlsInterop, APlainShellIsRefusedAndTheNextOneWelcome) {
  Child plain({"erl", "-noshell", "-sname", "alice@localhost", "-setcookie", "secret",
               "-start_epmd", "false", "-erl_epmd_port", std::to_string(node->endpoint().port),
               "-dist_listen", "false", "-eval",
               "io:format(\"~p\", [net_adm:ping('" + controller + "')]), halt(0)."});
  EXPECT_EQ(plain.wait(loop, patience).output.find("pong"), std::string::npos);
  EXPECT_EQ(
      ping("alice@localhost", fleet.identity("alice@localhost", Role::operator_), fleet.root()),
      "pong\n");
}

}  // namespace
}  // namespace zed::interop
