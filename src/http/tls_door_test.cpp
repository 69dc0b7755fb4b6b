// The door for other machines: TLS, certificates or tokens, roles, enrolment.

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <sys/socket.h>

#include "http/enrol.hpp"
#include "http/server.hpp"
#include "net/socket.hpp"
#include "pki/authority.hpp"
#include "pki/testing.hpp"

namespace zed::http {
namespace {

namespace fs = std::filesystem;
using pki::Role;
using pki::TestFleet;

constexpr Millis patience = seconds(20);

class TlsDoor : public testing::Test {
protected:
  TlsDoor() {
    std::string pattern = (fs::temp_directory_path() / "zed-door-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    ServerOptions options;
    options.socket_path = (folder_ / "s").string();
    TcpDoor door;
    door.endpoint = {"127.0.0.1", 0};
    door.token = std::string(32, 'o');
    door.view_token = std::string(32, 'v');
    door.tls = fleet_.tls("server", Role::controller);
    // As the real one: the answer comes when it is on the disk.
    door.enrol = [this](const Enrolment& enrolment, const Reply& reply) {
      loop_.post([this, enrolment, reply] { enrol(enrolment, reply); });
    };
    options.tcp = door;
    server_ = Server::open(loop_, options,
                           [this](const api::Request&, const api::Caller& caller,
                                  const Reply& reply) -> OnGone {
                             callers_.push_back(caller);
                             reply(to_value(api::JobsReply{}));
                             return {};
                           })
                  .value();
  }
  ~TlsDoor() override {
    server_.reset();
    fs::remove_all(folder_);
  }

  /// A small controller: one token, one issuer.
  void enrol(const Enrolment& enrolment, const Reply& reply) {
    enrolled_from_ = enrolment.certificate ? enrolment.certificate->identity.node : "nobody";
    if (enrolment.step == "revocations") return reply(to_value(RevocationsReply{{"41", "42"}}));
    const pki::Identity who{"zed@laptop", Role::agent};
    const auto asked = from_value<JoinRequest>(enrolment.body);
    if (enrolment.step == "join" && asked->token != token_.str())
      return reply(fail(ErrorCode::refused, "this token is not known here"));
    const std::string chain =
        fleet_.sign(asked->request, enrolment.step == "join" ? answer_as_ : who);
    if (enrolment.step == "renew") return reply(to_value(RenewReply{chain}));
    reply(to_value(JoinReply{chain, fleet_.root(), "zed_controller@server", 4371, "cookie"}));
  }

  RemoteDoor door(std::shared_ptr<const net::Tls> tls) {
    return {{"127.0.0.1", server_->tcp_endpoint().port}, std::move(tls)};
  }

  /// Blocking work beside the loop.
  template <class Work> auto beside(Work work) -> decltype(work()) {
    std::optional<decltype(work())> result;
    bool done = false;
    std::thread thread([&] {
      result.emplace(work());
      loop_.post([&done] { done = true; });
    });
    EXPECT_TRUE(loop_.run_until([&] { return done; }, patience));
    thread.join();
    return std::move(*result);
  }

  Result<std::string> ask(std::shared_ptr<const net::Tls> tls) {
    return beside([this, tls] {
      ClientOptions options;
      options.remote = door(tls);
      options.time_limit = seconds(5);
      Client client(std::move(options));
      auto first = client.call_text("jobs", Value::map());
      // On the same connection, if it stays.
      return first ? client.call_text("jobs", Value::map()) : first;
    });
  }

  /// Over TLS without certificate, by hand.
  std::string say(const std::string& request) {
    return beside([this, request]() -> std::string {
      auto socket = net::dial_tcp({"127.0.0.1", server_->tcp_endpoint().port},
                                  net::Exposure::loopback_only, seconds(5));
      net::TlsSession tls(fleet_.anonymous(), net::TlsSide::client);
      std::string answer, wire(16384, '\0');
      bool sent = false;
      ::fcntl(socket->get(), F_SETFL, 0);
      for (;;) {
        if (tls.is_open() && !std::exchange(sent, true))
          (void)tls.write({reinterpret_cast<const std::uint8_t*>(request.data()), request.size()});
        const std::string out = tls.take_output();
        if (!out.empty()) (void)!::send(socket->get(), out.data(), out.size(), MSG_NOSIGNAL);
        const ssize_t n = ::recv(socket->get(), wire.data(), wire.size(), 0);
        if (n <= 0) return answer;
        tls.feed({reinterpret_cast<const std::uint8_t*>(wire.data()), static_cast<std::size_t>(n)});
        std::array<std::uint8_t, 16384> plain{};
        for (;;) {
          auto got = tls.read(plain);
          if (!got) return answer;
          if (*got == 0) break;
          answer.append(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(*got));
        }
      }
    });
  }
  std::string post(const std::string& path, const std::string& headers) {
    return say("POST " + path +
               " HTTP/1.1\r\nHost: server:" + std::to_string(server_->tcp_endpoint().port) +
               "\r\nConnection: close\r\nContent-Length: 2\r\n" + headers + "\r\n{}");
  }

  net::Loop loop_;
  fs::path folder_;
  TestFleet fleet_;
  pki::JoinToken token_{{"zed@laptop", Role::agent}, fleet_.authority(), std::string(32, 'a')};
  pki::Identity answer_as_ = token_.identity;
  std::unique_ptr<Server> server_;
  std::vector<api::Caller> callers_;
  std::string enrolled_from_;
};

TEST_F(TlsDoor, ACertificateSaysWhoAsksAndWhatItMay) {
  ASSERT_TRUE(ask(fleet_.tls("alice", Role::operator_)));
  ASSERT_EQ(callers_.size(), 2U);
  EXPECT_EQ(callers_[0].who, "alice@alice");
  EXPECT_EQ(callers_[0].door, "https");
  EXPECT_TRUE(callers_[0].may_change);
  EXPECT_EQ(callers_[0].from.substr(0, 10), "127.0.0.1:");
  ASSERT_TRUE(ask(fleet_.tls("bob", Role::viewer)));
  EXPECT_FALSE(callers_.back().may_change);
}

TEST_F(TlsDoor, MachinesAndStrangersAreNoCallers) {
  const TestFleet rogue;
  EXPECT_FALSE(ask(fleet_.tls("laptop", Role::agent)));
  EXPECT_FALSE(ask(fleet_.anonymous()));
  EXPECT_FALSE(ask(rogue.tls("alice", Role::operator_)));
  EXPECT_FALSE(ask(fleet_.with_chain_of(rogue, "alice", Role::operator_)));
  EXPECT_FALSE(ask(fleet_.expired("alice", Role::operator_)));
  EXPECT_TRUE(callers_.empty());
  EXPECT_TRUE(ask(fleet_.tls("alice", Role::operator_)));
}

TEST_F(TlsDoor, TokensDoInsteadOfACertificate) {
  EXPECT_NE(post("/v1/jobs", "").find("401"), std::string::npos);
  EXPECT_NE(post("/v1/jobs", "Authorization: Bearer " + std::string(32, 'x') + "\r\n").find("401"),
            std::string::npos);
  EXPECT_NE(post("/v1/jobs", "Authorization: Bearer " + std::string(32, 'o') + "\r\n").find("200"),
            std::string::npos);
  EXPECT_TRUE(callers_.back().may_change);
  EXPECT_NE(post("/v1/jobs", "Authorization: Bearer " + std::string(32, 'v') + "\r\n").find("200"),
            std::string::npos);
  EXPECT_FALSE(callers_.back().may_change);
  EXPECT_EQ(callers_.back().who, "viewer token");
}

TEST_F(TlsDoor, HostAndOriginAreChecked) {
  const std::string good = "Authorization: Bearer " + std::string(32, 'o') + "\r\n";
  const std::string port = std::to_string(server_->tcp_endpoint().port);
  EXPECT_NE(post("/v1/jobs", good + "Origin: https://evil.example\r\n").find("403"),
            std::string::npos);
  EXPECT_NE(post("/v1/jobs", good + "Origin: http://server:" + port + "\r\n").find("403"),
            std::string::npos);
  EXPECT_NE(post("/v1/jobs", good + "Origin: https://server:" + port + "\r\n").find("200"),
            std::string::npos);
  EXPECT_NE(say("POST /v1/jobs HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n" + good +
                "Content-Length: 2\r\n\r\n{}")
                .find("403"),
            std::string::npos);
}

TEST_F(TlsDoor, AMachineJoinsWithAToken) {
  const auto joined = beside([&] { return join(door(nullptr).endpoint, token_); });
  ASSERT_TRUE(joined) << joined.error().describe();
  EXPECT_EQ(enrolled_from_, "nobody");
  EXPECT_EQ(pki::read_certificate(joined->identity.chain)->identity, token_.identity);
  EXPECT_EQ(joined->roots, fleet_.root());
  EXPECT_EQ(joined->controller, "zed_controller@server");
  EXPECT_EQ(joined->cookie, "cookie");
}

TEST_F(TlsDoor, ATokenGoesToNobodyButItsFleet) {
  const TestFleet other;
  pki::JoinToken token = token_;
  token.authority = other.authority();
  const auto joined = beside([&] { return join(door(nullptr).endpoint, token); });
  ASSERT_FALSE(joined);
  EXPECT_NE(joined.error().describe().find("another certificate authority"), std::string::npos)
      << joined.error().describe();
  EXPECT_EQ(enrolled_from_, "");
}

TEST_F(TlsDoor, WhatComesBackMustBeWhatTheTokenPromised) {
  answer_as_ = {"zed@server", Role::agent};
  const auto joined = beside([&] { return join(door(nullptr).endpoint, token_); });
  ASSERT_FALSE(joined);
  EXPECT_NE(joined.error().describe().find("zed@server"), std::string::npos);
  token_.secret = std::string(32, 'b');
  const pki::JoinToken wrong{token_.identity, token_.authority, std::string(32, 'c')};
  EXPECT_FALSE(beside([&] { return join(door(nullptr).endpoint, wrong); }));
}

TEST_F(TlsDoor, RenewsAndTellsWhoIsRevoked) {
  const auto tls = fleet_.tls("laptop", Role::agent);
  const auto renewed = beside([&] { return renew(door(tls)); });
  ASSERT_TRUE(renewed) << renewed.error().describe();
  EXPECT_EQ(enrolled_from_, "zed@laptop");
  EXPECT_NE(pki::read_certificate(renewed->chain)->serial, tls->own()->serial);
  const auto serials = beside([&] { return revocations(door(tls)); });
  ASSERT_TRUE(serials);
  EXPECT_EQ(*serials, (std::set<std::string>{"41", "42"}));
}

TEST_F(TlsDoor, OnlyAControllerIsSpokenTo) {
  ServerOptions options;
  options.socket_path = (folder_ / "other").string();
  TcpDoor door;
  door.endpoint = {"127.0.0.1", 0};
  door.token = std::string(32, 'o');
  door.tls = fleet_.tls("laptop", Role::agent);
  options.tcp = door;
  server_ = Server::open(loop_, options, {}).value();
  const auto answer = ask(fleet_.tls("alice", Role::operator_));
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().describe().find("no controller"), std::string::npos)
      << answer.error().describe();
}

}  // namespace
}  // namespace zed::http
