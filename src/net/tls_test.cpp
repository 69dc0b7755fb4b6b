#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "net/connection.hpp"
#include "net/listener.hpp"
#include "net/tls_gate.hpp"
#include "pki/testing.hpp"

namespace zed::net {
namespace {

using pki::Role;
using pki::TestFleet;

constexpr Millis patience = seconds(10);

/// A listener and a dialled socket, as plain descriptors.
std::pair<Fd, Fd> sockets(Loop& loop) {
  Fd accepted, dialled;
  auto listener = Listener::tcp(loop, {"127.0.0.1", 0}, Exposure::loopback_only,
                                [&](Fd fd) { accepted = std::move(fd); });
  connect_tcp(loop, listener->endpoint(), {}, [&](Result<Fd> fd) { dialled = std::move(*fd); });
  EXPECT_TRUE(loop.run_until([&] { return accepted && dialled; }, patience));
  return {std::move(accepted), std::move(dialled)};
}

/// One side of a connection, and what happened to it.
struct Side {
  void start(Loop& loop, Fd fd, TlsEnd end, Bytes queue = mebibytes(8)) {
    end.check = [this](const pki::CertificateInfo* peer) -> Status {
      ++checks;
      if (peer != nullptr) who = peer->identity.node;
      return verdict;
    };
    connection = Connection(loop, std::move(fd), std::move(end), queue);
    connection.start(
        {[this](std::span<const std::uint8_t> bytes) { got.append(bytes.begin(), bytes.end()); },
         [this](const Error& error) { ended = error.describe(); }, [this] { ++drained; }});
  }
  Connection connection;
  Status verdict;
  std::string got, who, ended;
  int checks = 0, drained = 0;
};

struct Meeting {
  Meeting(std::shared_ptr<const Tls> server_tls, std::shared_ptr<const Tls> client_tls,
          TlsPeer peer = TlsPeer::must_show_certificate) {
    auto [accepted, dialled] = sockets(loop);
    server.start(loop, std::move(accepted), {std::move(server_tls), TlsSide::server, peer, {}});
    client.start(loop, std::move(dialled), {std::move(client_tls), TlsSide::client, {}, {}});
  }
  bool until(const std::function<bool()>& done) { return loop.run_until(done, patience); }
  Loop loop;
  Side server, client;
};

std::string sample(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i)
    text[i] = static_cast<char>(i * 131 >> 3);
  return text;
}

TEST(Tls, BothSidesKnowTheOther) {
  const TestFleet fleet;
  Meeting meeting(fleet.tls("server", Role::controller), fleet.tls("laptop", Role::agent));
  ASSERT_TRUE(meeting.client.connection.send("hello"));
  ASSERT_TRUE(meeting.server.connection.send("welcome"));
  EXPECT_TRUE(meeting.until([&] {
    return meeting.server.got == "hello" && meeting.client.got == "welcome";
  })) << meeting.server.ended
      << meeting.client.ended;
  EXPECT_EQ(meeting.server.who, "zed@laptop");
  EXPECT_EQ(meeting.client.who, "zed_controller@server");
  EXPECT_EQ(meeting.client.connection.queued(), Bytes{0});
}

TEST(Tls, CarriesMuchBothWaysAndEndsCleanly) {
  const TestFleet fleet;
  Meeting meeting(fleet.tls("server", Role::controller), fleet.tls("laptop", Role::agent));
  const std::string much = sample(3'000'000);
  ASSERT_TRUE(meeting.client.connection.send(much));
  ASSERT_TRUE(meeting.server.connection.send(much));
  ASSERT_TRUE(
      meeting.until([&] { return meeting.server.got == much && meeting.client.got == much; }));
  ASSERT_TRUE(meeting.client.connection.send("last words"));
  meeting.client.connection.finish();
  EXPECT_TRUE(meeting.until([&] { return !meeting.server.ended.empty(); }));
  EXPECT_TRUE(meeting.server.got.ends_with("last words"));
  EXPECT_NE(meeting.server.ended.find("the other side closed"), std::string::npos);
}

TEST(Tls, WhatWaitsForTheHandshakeIsBounded) {
  const TestFleet fleet;
  Loop loop;
  auto [accepted, dialled] = sockets(loop);
  Side client;
  client.start(loop, std::move(dialled), {fleet.tls("a", Role::agent), TlsSide::client, {}, {}},
               kibibytes(64));
  EXPECT_TRUE(client.connection.send(std::string(50'000, 'x')));
  EXPECT_EQ(client.connection.send(std::string(50'000, 'x')).error().code, ErrorCode::busy);
}

TEST(Tls, ACertificateThatIsNotBelievedEndsItOnBothSides) {
  const TestFleet ours;
  const TestFleet rogue;
  struct Row {
    std::shared_ptr<const Tls> client;
    std::string_view server_says;
  };
  for (const Row& row : std::vector<Row>{
           {rogue.tls("laptop", Role::agent), ""},
           {ours.expired("laptop", Role::agent), "was valid until"},
           {ours.with_chain_of(rogue, "laptop", Role::agent), "another fleet"},
           {ours.anonymous(), "did not return a certificate"},
       }) {
    Meeting meeting(ours.tls("server", Role::controller), row.client);
    ASSERT_TRUE(meeting.client.connection.send("never to be seen"));
    EXPECT_TRUE(meeting.until(
        [&] { return !meeting.server.ended.empty() && !meeting.client.ended.empty(); }));
    EXPECT_NE(meeting.server.ended.find(row.server_says), std::string::npos)
        << meeting.server.ended;
    EXPECT_EQ(meeting.server.got, "");
    EXPECT_EQ(meeting.server.checks, 0);
  }
}

TEST(Tls, ARogueServerIsRefused) {
  const TestFleet ours;
  const TestFleet rogue;
  Meeting meeting(rogue.tls("server", Role::controller), ours.tls("laptop", Role::agent));
  EXPECT_TRUE(meeting.until([&] { return !meeting.client.ended.empty(); }));
  EXPECT_NE(meeting.client.ended.find("another fleet"), std::string::npos) << meeting.client.ended;
}

TEST(Tls, RevokedIsRefusedFromTheNextConnectionOn) {
  const TestFleet fleet;
  auto server = fleet.tls("server", Role::controller);
  const auto client = fleet.tls("laptop", Role::agent);
  server->revoke({client->own()->serial});
  Meeting meeting(server, client);
  EXPECT_TRUE(meeting.until([&] { return !meeting.server.ended.empty(); }));
  EXPECT_NE(meeting.server.ended.find("revoked"), std::string::npos) << meeting.server.ended;
  EXPECT_TRUE(meeting.until([&] { return !meeting.client.ended.empty(); }));
  EXPECT_NE(meeting.client.ended.find("revoked"), std::string::npos) << meeting.client.ended;
}

TEST(Tls, TheOwnersVerdictEndsItBeforeAByteIsSeen) {
  const TestFleet fleet;
  Meeting meeting(fleet.tls("server", Role::controller), fleet.tls("laptop", Role::agent));
  meeting.server.verdict = fail(ErrorCode::refused, "not today");
  ASSERT_TRUE(meeting.client.connection.send("never to be seen"));
  // All in one packet with the client's last message of the handshake, its end included.
  meeting.client.connection.finish();
  EXPECT_TRUE(meeting.until([&] { return !meeting.server.ended.empty(); }));
  EXPECT_EQ(meeting.server.got, "");
}

TEST(Tls, APlaintextClientIsRefused) {
  const TestFleet fleet;
  for (const std::string& noise :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100'000, '\xff'), sample(70'000)}) {
    Loop loop;
    auto [accepted, dialled] = sockets(loop);
    Side server;
    server.start(loop, std::move(accepted),
                 {fleet.tls("server", Role::controller), TlsSide::server, {}, {}});
    Connection client(loop, std::move(dialled));
    client.start({[](std::span<const std::uint8_t>) {}, [](const Error&) {}, {}});
    ASSERT_TRUE(client.send(noise));
    EXPECT_TRUE(loop.run_until([&] { return !server.ended.empty(); }, patience));
    EXPECT_EQ(server.checks, 0);
  }
}

TEST(Tls, RenewedIdentityCountsForTheNextConnection) {
  const TestFleet fleet;
  auto server = fleet.tls("server", Role::controller);
  const std::string before = server->own()->serial;
  ASSERT_TRUE(server->replace(fleet.identity("server", Role::controller)));
  EXPECT_NE(server->own()->serial, before);
  EXPECT_FALSE(server->replace({fleet.identity("server", Role::controller).chain,
                                fleet.identity("server", Role::controller).key}));
  Meeting meeting(server, fleet.tls("laptop", Role::agent));
  ASSERT_TRUE(meeting.client.connection.send("hello"));
  EXPECT_TRUE(meeting.until([&] { return meeting.server.got == "hello"; }));
}

TEST(Tls, ReleasedGoesOnElsewhere) {
  const TestFleet fleet;
  Meeting meeting(fleet.tls("server", Role::controller), fleet.tls("laptop", Role::agent));
  ASSERT_TRUE(meeting.client.connection.send("hello"));
  ASSERT_TRUE(meeting.until([&] { return meeting.server.got == "hello"; }));
  meeting.server.connection.pause();
  auto released = meeting.server.connection.release();
  ASSERT_TRUE(released);
  EXPECT_FALSE(meeting.server.connection.is_open());
  const std::string_view text = "from a thread";
  ASSERT_TRUE(
      released->tls->write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
  Connection plain(meeting.loop, std::move(released->socket));
  ASSERT_TRUE(plain.send(released->tls->take_output()));
  EXPECT_TRUE(meeting.until([&] { return meeting.client.got == text; }));
}

/// A gate, and behind it an echo over the plain ends.
struct Gate {
  explicit Gate(std::shared_ptr<const Tls> tls, TlsGateOptions options = {})
      : gate(loop, std::move(tls), options,
             [this](Fd fd, const std::optional<pki::CertificateInfo>& peer, const Endpoint&) {
               who.push_back(peer ? peer->identity.node : "nobody");
               auto plain = std::make_shared<Connection>(loop, std::move(fd));
               plain->start({[raw = plain.get()](std::span<const std::uint8_t> bytes) {
                               (void)raw->send(std::string(bytes.begin(), bytes.end()));
                             },
                             [](const Error&) {},
                             {}});
               echoes.push_back(std::move(plain));
             }) {}
  Fd dial() {
    auto [accepted, dialled] = sockets(loop);
    gate.accept(std::move(accepted));
    return std::move(dialled);
  }
  Loop loop;
  std::vector<std::shared_ptr<Connection>> echoes;
  std::vector<std::string> who;
  TlsGate gate;
};

TEST(TlsGate, PassesBytesBothWaysAndKnowsWhoIsThere) {
  const TestFleet fleet;
  TlsGateOptions options;
  options.peer = TlsPeer::may_show_certificate;
  Gate gate(fleet.tls("server", Role::controller), options);
  Side known, unknown;
  known.start(gate.loop, gate.dial(),
              {fleet.tls("alice", Role::operator_), TlsSide::client, {}, {}});
  unknown.start(gate.loop, gate.dial(), {fleet.anonymous(), TlsSide::client, {}, {}});
  const std::string much = sample(2'000'000);
  ASSERT_TRUE(known.connection.send(much));
  ASSERT_TRUE(unknown.connection.send("hello"));
  EXPECT_TRUE(
      gate.loop.run_until([&] { return known.got == much && unknown.got == "hello"; }, patience));
  EXPECT_EQ(std::set<std::string>(gate.who.begin(), gate.who.end()),
            (std::set<std::string>{"alice@alice", "nobody"}));
  gate.echoes.clear();
  EXPECT_TRUE(gate.loop.run_until([&] { return !known.ended.empty() && !unknown.ended.empty(); },
                                  patience));
}

TEST(TlsGate, SilentAndSlowClientsAreBoundedWhileHonestOnesGoOn) {
  const TestFleet fleet;
  TlsGateOptions options;
  options.most_strangers = 8;
  options.handshake = Millis{200};
  Gate gate(fleet.tls("server", Role::controller), options);
  std::vector<std::unique_ptr<Side>> silent;
  for (int i = 0; i < 20; ++i) {
    silent.push_back(std::make_unique<Side>());
    Side& side = *silent.back();
    side.connection = Connection(gate.loop, gate.dial());
    side.connection.start({[](std::span<const std::uint8_t>) {},
                           [&side](const Error& error) { side.ended = error.describe(); },
                           {}});
    (void)side.connection.send("\x16\x03\x01");
  }
  const auto all_gone = [&] {
    return std::all_of(silent.begin(), silent.end(),
                       [](const auto& side) { return !side->ended.empty(); });
  };
  EXPECT_TRUE(gate.loop.run_until(all_gone, patience));
  Side honest;
  honest.start(gate.loop, gate.dial(), {fleet.tls("b", Role::agent), TlsSide::client, {}, {}});
  ASSERT_TRUE(honest.connection.send("hello"));
  EXPECT_TRUE(gate.loop.run_until([&] { return honest.got == "hello"; }, patience));
}

TEST(TlsGate, DropsWhoIsRevokedMeanwhile) {
  const TestFleet fleet;
  Gate gate(fleet.tls("server", Role::controller));
  const auto tls = fleet.tls("laptop", Role::agent);
  Side client;
  client.start(gate.loop, gate.dial(), {tls, TlsSide::client, {}, {}});
  ASSERT_TRUE(client.connection.send("hello"));
  ASSERT_TRUE(gate.loop.run_until([&] { return client.got == "hello"; }, patience));
  gate.gate.drop({"00"});
  gate.gate.drop({tls->own()->serial});
  EXPECT_TRUE(gate.loop.run_until([&] { return !client.ended.empty(); }, patience));
}

}  // namespace
}  // namespace zed::net
