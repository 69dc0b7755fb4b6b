#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "beam/handshake.hpp"
#include "beam/wire.hpp"

namespace zed::beam {
namespace {

using Progress = Handshake::Progress;

Handshake::Identity identity(std::string name, std::string cookie = "secret") {
  return {std::move(name), 77, std::move(cookie)};
}
Handshake::Random counting(std::uint32_t from) {
  return [next = from]() mutable { return next++; };
}

/// Two handshakes that talk to one another, one byte at a time.
struct Talk {
  Handshake dialler = Handshake::dial(identity("a@h"), "b@h", counting(1000));
  Handshake accepter = Handshake::accept(identity("b@h"), counting(2000));
  Verdict verdict = Verdict::ok;
  std::vector<Handshake::Done> dialler_done;
  std::vector<Handshake::Done> accepter_done;
  std::optional<Error> dialler_error;
  std::optional<Error> accepter_error;
  std::string named;

  void run() {
    for (int round = 0; round < 10; ++round) {
      pump(dialler, accepter, accepter_done, accepter_error);
      pump(accepter, dialler, dialler_done, dialler_error);
    }
  }

private:
  void pump(Handshake& from, Handshake& to, std::vector<Handshake::Done>& done,
            std::optional<Error>& error) {
    const std::string bytes = from.take_output();
    for (std::uint8_t byte : bytes_of(bytes)) {
      if (error || !done.empty()) return;
      std::span<const std::uint8_t> one(&byte, 1);
      auto progress = to.receive(one);
      EXPECT_TRUE(one.empty() || !progress);
      if (!progress)
        error = progress.error();
      else if (auto* finished = std::get_if<Handshake::Done>(&*progress))
        done.push_back(*finished);
      else if (auto* peer = std::get_if<Handshake::Named>(&*progress)) {
        named = peer->peer;
        to.answer(verdict);
      }
    }
  }
};

TEST(Handshake, BothSidesAgree) {
  Talk talk;
  talk.run();
  ASSERT_EQ(talk.dialler_done.size(), 1U);
  ASSERT_EQ(talk.accepter_done.size(), 1U);
  EXPECT_EQ(talk.named, "a@h");
  EXPECT_EQ(talk.dialler_done[0].peer, (PeerInfo{"b@h", 77, flag::ours}));
  EXPECT_EQ(talk.accepter_done[0].peer, (PeerInfo{"a@h", 77, flag::ours}));
}

TEST(Handshake, AWrongCookieIsFoundByTheSideThatWasDialled) {
  Talk talk;
  talk.dialler = Handshake::dial(identity("a@h", "guess"), "b@h", counting(1000));
  talk.run();
  ASSERT_TRUE(talk.accepter_error);
  EXPECT_EQ(talk.accepter_error->code, ErrorCode::refused);
  EXPECT_NE(talk.accepter_error->message.find("cookie"), std::string::npos);
  EXPECT_TRUE(talk.dialler_done.empty());
}

TEST(Handshake, ADialledSideThatDoesNotKnowTheCookieIsFound) {
  // It cannot check ours and lets us in; our check of its answer must fail.
  auto dialler = Handshake::dial(identity("a@h"), "b@h", counting(1));
  std::string script;
  put(script, 3, 2);
  script += "sok";
  std::string challenge = "N";
  put(challenge, flag::ours, 8);
  put(challenge, 5, 4);
  put(challenge, 9, 4);
  put(challenge, 3, 2);
  challenge += "b@h";
  put(script, challenge.size(), 2);
  script += challenge;
  put(script, 17, 2);
  script += "a" + std::string(16, 'x');
  auto bytes = bytes_of(script);
  ASSERT_TRUE(dialler.receive(bytes));
  ASSERT_TRUE(dialler.receive(bytes));
  auto end = dialler.receive(bytes);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::refused);
}

TEST(Handshake, TheGreaterNameWinsWhenBothDial) {
  EXPECT_EQ(verdict_for("b@h", "a@h", Existing::dialling), Verdict::nok);
  EXPECT_EQ(verdict_for("a@h", "b@h", Existing::dialling), Verdict::ok_simultaneous);
  EXPECT_EQ(verdict_for("a@h", "b@h", Existing::up), Verdict::alive);
  EXPECT_EQ(verdict_for("a@h", "b@h", Existing::none), Verdict::ok);
}

TEST(Handshake, SimultaneousGoesOn) {
  Talk talk;
  talk.verdict = Verdict::ok_simultaneous;
  talk.run();
  EXPECT_EQ(talk.dialler_done.size(), 1U);
  EXPECT_EQ(talk.accepter_done.size(), 1U);
}

TEST(Handshake, NokIsBusyAndNotAllowedIsRefused) {
  Talk nok;
  nok.verdict = Verdict::nok;
  nok.run();
  EXPECT_EQ(nok.dialler_error->code, ErrorCode::busy);
  Talk refused;
  refused.verdict = Verdict::not_allowed;
  refused.run();
  EXPECT_EQ(refused.dialler_error->code, ErrorCode::refused);
  EXPECT_TRUE(refused.accepter_done.empty());
}

TEST(Handshake, AliveIsAnsweredTrueAndTakesOver) {
  Talk talk;
  talk.verdict = Verdict::alive;
  talk.run();
  EXPECT_EQ(talk.dialler_done.size(), 1U);
  EXPECT_EQ(talk.accepter_done.size(), 1U);
}

TEST(Handshake, AnotherNameAtThatAddressIsRefused) {
  Talk talk;
  talk.accepter = Handshake::accept(identity("c@h"), counting(1));
  talk.run();
  EXPECT_EQ(talk.dialler_error->code, ErrorCode::refused);
}

std::string name_message(char tag, std::uint64_t flags, const std::string& name) {
  std::string message(1, tag);
  put(message, flags, 8);
  put(message, 1, 4);
  put(message, name.size(), 2);
  message += name;
  std::string framed;
  put(framed, message.size(), 2);
  return framed + message;
}

Error refusal_of(const std::string& bytes) {
  auto accepter = Handshake::accept(identity("b@h"), counting(1));
  auto view = bytes_of(bytes);
  auto progress = accepter.receive(view);
  EXPECT_FALSE(progress);
  return progress ? Error{} : progress.error();
}

TEST(Handshake, OldAndIncapablePeersAreToldWhy) {
  EXPECT_EQ(refusal_of(name_message('n', flag::ours, "a@h")).code, ErrorCode::unsupported);
  EXPECT_EQ(refusal_of(name_message('N', flag::ours & ~flag::map_tag, "a@h")).code,
            ErrorCode::unsupported);
  EXPECT_EQ(refusal_of(name_message('N', flag::ours | flag::name_me, "h")).code,
            ErrorCode::unsupported);
}

TEST(Handshake, GarbageIsCutOffByItsFirstBytes) {
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\n").code, ErrorCode::corrupt);
  EXPECT_EQ(refusal_of("\xff\xff").code, ErrorCode::corrupt);
  EXPECT_EQ(refusal_of(std::string(2, '\0')).code, ErrorCode::corrupt);
  EXPECT_EQ(refusal_of(name_message('N', flag::ours, "no node's name")).code, ErrorCode::corrupt);
  EXPECT_EQ(
      refusal_of(
          name_message('N', flag::ours, std::string(200, 'x') + "@h").replace(15, 2, "\xff\xff"))
          .code,
      ErrorCode::corrupt);
}

TEST(Handshake, NodeNames) {
  for (const char* name : {"zed@server", "zed_controller@host-1", "a@h.example.org", "a@::1"})
    EXPECT_TRUE(is_node_name(name)) << name;
  for (const char* name : {"", "zed", "@h", "a@", "a@b@c", "a b@h", "a@h/..", "\n@h"})
    EXPECT_FALSE(is_node_name(name)) << name;
  EXPECT_FALSE(is_node_name("a@" + std::string(300, 'h')));
}

RC_GTEST_PROP(HandshakeProperty, AnyBytesEndInWaitingOrAnError, (const std::string& bytes)) {
  for (const bool dials : {true, false}) {
    auto handshake = dials ? Handshake::dial(identity("a@h"), "b@h", counting(1))
                           : Handshake::accept(identity("b@h"), counting(1));
    auto view = bytes_of(bytes);
    while (!view.empty()) {
      auto progress = handshake.receive(view);
      if (!progress || !std::holds_alternative<Handshake::Waiting>(*progress)) break;
    }
  }
}

}  // namespace
}  // namespace zed::beam
