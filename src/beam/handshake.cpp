#include "beam/handshake.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "beam/wire.hpp"

namespace zed::beam {
namespace {

/// The longest legal message is a challenge with a name of 255 bytes. A peer that announces more is
/// cut off before anything is stored.
constexpr std::size_t max_message = 1 + 8 + 4 + 4 + 2 + 255;
constexpr std::size_t max_name = 255;

bool is_name_part(std::string_view part, std::string_view also) {
  if (part.empty()) return false;
  return std::all_of(part.begin(), part.end(), [also](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || also.find(c) != std::string_view::npos;
  });
}

std::string_view text(Verdict verdict) {
  switch (verdict) {
  case Verdict::ok: return "ok";
  case Verdict::ok_simultaneous: return "ok_simultaneous";
  case Verdict::nok: return "nok";
  case Verdict::not_allowed: return "not_allowed";
  case Verdict::alive: return "alive";
  }
  return "not_allowed";
}

tl::unexpected<Error> malformed(std::string_view which) {
  return fail(ErrorCode::corrupt, "malformed handshake: " + std::string(which),
              "what connected may not be an Erlang node of OTP 25 or newer");
}

tl::unexpected<Error> wrong_cookie(const std::string& peer) {
  return fail(ErrorCode::refused, peer + " has another cookie",
              "give both sides the same cookie file");
}

Digest digest_in(std::span<const std::uint8_t> bytes) {
  Digest digest;
  std::copy(bytes.begin(), bytes.end(), digest.begin());
  return digest;
}

}  // namespace

bool is_node_name(std::string_view name) {
  const auto at = name.find('@');
  if (at == std::string_view::npos || name.size() > max_name) return false;
  return is_name_part(name.substr(0, at), "") && is_name_part(name.substr(at + 1), ".:");
}

Verdict verdict_for(const std::string& self, const std::string& peer, Existing existing) {
  switch (existing) {
  case Existing::none: return Verdict::ok;
  case Existing::up: return Verdict::alive;
  case Existing::dialling: return peer > self ? Verdict::ok_simultaneous : Verdict::nok;
  }
  return Verdict::not_allowed;
}

Handshake::Handshake(Identity self, Random random, State state)
    : self_(std::move(self)), random_(std::move(random)), state_(state) {}

Handshake Handshake::dial(Identity self, std::string peer, Random random) {
  Handshake handshake(std::move(self), std::move(random), State::await_status);
  handshake.peer_.name = std::move(peer);
  std::string name = "N";
  put(name, flag::ours, 8);
  put(name, handshake.self_.creation, 4);
  put(name, handshake.self_.name.size(), 2);
  handshake.send(name + handshake.self_.name);
  return handshake;
}

Handshake Handshake::accept(Identity self, Random random) {
  return Handshake(std::move(self), std::move(random), State::await_name);
}

void Handshake::send(std::string message) {
  put(output_, message.size(), self_.length_bytes);
  output_ += message;
}

std::string Handshake::take_output() {
  return std::exchange(output_, {});
}

Result<Handshake::Progress> Handshake::receive(std::span<const std::uint8_t>& bytes) {
  // While the owner decides, the peer has nothing to say; its bytes stay with the caller.
  if (state_ == State::await_answer) return Progress{Waiting{}};
  const auto take = [&](std::size_t until) {
    const std::size_t count = std::min(bytes.size(), until - std::min(until, partial_.size()));
    partial_ += string_of(bytes.first(count));
    bytes = bytes.subspan(count);
    return partial_.size() >= until;
  };
  const std::size_t head = self_.length_bytes;
  if (!take(head)) return Progress{Waiting{}};
  const auto size = static_cast<std::size_t>(get(bytes_of(partial_), 0, head));
  if (size == 0 || size > max_message)
    return malformed("a message of " + std::to_string(size) + " bytes");
  if (!take(head + size)) return Progress{Waiting{}};
  const std::string message = std::exchange(partial_, {});
  return on_message(bytes_of(message).subspan(head));
}

Result<Handshake::Progress> Handshake::on_message(std::span<const std::uint8_t> message) {
  switch (state_) {
  case State::await_name: return on_name(message);
  case State::await_insistence: return on_insistence(message);
  case State::await_reply: return on_reply(message);
  case State::await_status: return on_status(message);
  case State::await_challenge: return on_challenge(message);
  case State::await_ack: return on_ack(message);
  case State::await_answer:
  case State::over: break;
  }
  return malformed("a message after its end");
}

Status Handshake::adopt(std::uint64_t flags) {
  if (const std::uint64_t missing = flag::mandatory & ~flags; missing != 0)
    return fail(ErrorCode::unsupported,
                fmt::format("{} lacks the capabilities {:#x}", peer_.name, missing),
                "it must run OTP 25 or newer");
  peer_.flags = flags & flag::ours;
  return {};
}

Result<Handshake::Progress> Handshake::on_name(std::span<const std::uint8_t> message) {
  constexpr std::size_t fixed = 1 + 8 + 4 + 2;
  if (message[0] == 'n')
    return fail(ErrorCode::unsupported, "the peer speaks the handshake of OTP 22 or older",
                "it must run OTP 25 or newer");
  if (message[0] != 'N' || message.size() < fixed) return malformed("no name");
  const auto size = static_cast<std::size_t>(get(message, 13, 2));
  if (message.size() - fixed < size) return malformed("a name cut short");
  const std::uint64_t flags = get(message, 1, 8);
  peer_.name = string_of(message.subspan(fixed, size));
  peer_.creation = static_cast<std::uint32_t>(get(message, 9, 4));
  if ((flags & flag::name_me) != 0)
    return fail(ErrorCode::unsupported, "the peer asks for a name, and Zed gives none",
                "start it with a name of its own (-sname or -name)");
  if (!is_node_name(peer_.name)) return malformed("a node name that is none");
  ZED_CHECK(adopt(flags));
  state_ = State::await_answer;
  return Progress{Named{peer_.name}};
}

void Handshake::answer(Verdict verdict) {
  ZED_ASSERT(state_ == State::await_answer);
  send("s" + std::string(text(verdict)));
  switch (verdict) {
  case Verdict::ok:
  case Verdict::ok_simultaneous: return send_challenge();
  case Verdict::alive: state_ = State::await_insistence; return;
  case Verdict::nok:
  case Verdict::not_allowed: state_ = State::over; return;
  }
}

void Handshake::send_challenge() {
  challenge_ = random_();
  std::string challenge = "N";
  put(challenge, flag::ours, 8);
  put(challenge, challenge_, 4);
  put(challenge, self_.creation, 4);
  put(challenge, self_.name.size(), 2);
  send(challenge + self_.name);
  state_ = State::await_reply;
}

Result<Handshake::Progress> Handshake::on_insistence(std::span<const std::uint8_t> message) {
  const std::string said = string_of(message);
  if (said == "sfalse")
    return fail(ErrorCode::busy, peer_.name + " keeps the connection that it has");
  if (said != "strue") return malformed("no answer to alive");
  send_challenge();
  return Progress{Waiting{}};
}

Result<Handshake::Progress> Handshake::on_reply(std::span<const std::uint8_t> message) {
  if (message.size() != 1 + 4 + 16 || message[0] != 'r') return malformed("no challenge reply");
  const auto theirs = static_cast<std::uint32_t>(get(message, 1, 4));
  if (!same_digest(digest_in(message.subspan(5)), challenge_digest(self_.cookie, challenge_)))
    return wrong_cookie(peer_.name);
  const Digest digest = challenge_digest(self_.cookie, theirs);
  std::string ack = "a";
  ack.append(digest.begin(), digest.end());
  send(ack);
  state_ = State::over;
  return Progress{Done{peer_}};
}

Result<Handshake::Progress> Handshake::on_status(std::span<const std::uint8_t> message) {
  const std::string said = string_of(message);
  if (said == "sok" || said == "sok_simultaneous" || said == "salive") {
    // Alive: the peer still holds a connection of ours that we know nothing of, from before a
    // restart or a cut. We insist.
    if (said == "salive") send("strue");
    state_ = State::await_challenge;
    return Progress{Waiting{}};
  }
  if (said == "snok")
    return fail(ErrorCode::busy, peer_.name + " is connecting to this node itself");
  if (said == "snot_allowed")
    return fail(ErrorCode::refused, peer_.name + " does not allow " + self_.name,
                "it accepts only nodes of its cluster");
  return malformed("an unknown status");
}

Result<Handshake::Progress> Handshake::on_challenge(std::span<const std::uint8_t> message) {
  constexpr std::size_t fixed = 1 + 8 + 4 + 4 + 2;
  if (message.size() < fixed || message[0] != 'N') return malformed("no challenge");
  const auto size = static_cast<std::size_t>(get(message, 17, 2));
  if (message.size() - fixed < size) return malformed("a name cut short");
  const std::string name = string_of(message.subspan(fixed, size));
  if (name != peer_.name)
    return fail(ErrorCode::refused,
                "the node there is " + (is_node_name(name) ? name : "something else") + ", not " +
                    peer_.name,
                "check the address");
  peer_.creation = static_cast<std::uint32_t>(get(message, 13, 4));
  ZED_CHECK(adopt(get(message, 1, 8)));
  const auto theirs = static_cast<std::uint32_t>(get(message, 9, 4));
  challenge_ = random_();
  const Digest digest = challenge_digest(self_.cookie, theirs);
  std::string reply = "r";
  put(reply, challenge_, 4);
  reply.append(digest.begin(), digest.end());
  send(reply);
  state_ = State::await_ack;
  return Progress{Waiting{}};
}

Result<Handshake::Progress> Handshake::on_ack(std::span<const std::uint8_t> message) {
  if (message.size() != 1 + 16 || message[0] != 'a') return malformed("no challenge ack");
  if (!same_digest(digest_in(message.subspan(1)), challenge_digest(self_.cookie, challenge_)))
    return wrong_cookie(peer_.name);
  state_ = State::over;
  return Progress{Done{peer_}};
}

}  // namespace zed::beam
