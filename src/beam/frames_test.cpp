#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "beam/frames.hpp"
#include "beam/test_terms.hpp"
#include "beam/wire.hpp"

namespace zed::beam {
namespace {

/// Everything that the bytes hold, shown; "!" and the error's code at the end if they break.
std::string read_all(FrameReader& reader, std::string_view text) {
  std::string out;
  auto bytes = bytes_of(text);
  while (true) {
    auto event = reader.receive(bytes);
    if (!event) return out + "!" + std::string(to_string(event.error().code));
    if (!event->has_value()) return out;
    if (std::holds_alternative<Tick>(**event)) out += "tick ";
    if (auto* packet = std::get_if<Packet>(&**event)) {
      out += show(packet->control, 40);
      if (packet->payload) out += show(*packet->payload, 40);
      out += ' ';
    }
  }
}
std::string read_all(std::string_view text) {
  FrameReader reader;
  return read_all(reader, text);
}

std::string framed(const std::string& body) {
  std::string out;
  put(out, body.size(), 4);
  return out + body;
}
std::string first(std::uint64_t sequence, std::uint64_t number, const std::string& data) {
  std::string body = "\x83\x45";
  put(body, sequence, 8);
  put(body, number, 8);
  put(body, 0, 1);
  return framed(body + data);
}
std::string next(std::uint64_t sequence, std::uint64_t number, const std::string& data) {
  std::string body = "\x83\x46";
  put(body, sequence, 8);
  put(body, number, 8);
  return framed(body + data);
}
std::string bare(const Term& term) {
  std::string out;
  encode_to(out, term);
  return out;
}

TEST(Frames, TicksAndMessagesByTheByte) {
  std::string bytes;
  FrameWriter writer(true);
  bytes += FrameWriter::tick();
  writer.append(bytes, tuple({1}), {});
  writer.append(bytes, tuple({2}), atom("hello"));
  FrameWriter old(false);
  old.append(bytes, tuple({3}), atom("old"));
  old.append(bytes, tuple({4}), {});
  const std::string expected = "tick {1} {2}hello {3}old {4} ";
  EXPECT_EQ(read_all(bytes), expected);
  FrameReader reader;
  std::string piecewise;
  for (char c : bytes)
    piecewise += read_all(reader, std::string_view(&c, 1));
  EXPECT_EQ(piecewise, expected);
}

TEST(Frames, FragmentsOfSeveralMessagesInterleave) {
  const std::string a = bare(tuple({1})) + bare(binary("aaaa"));
  const std::string b = bare(tuple({2})) + bare(binary("bbbb"));
  EXPECT_EQ(read_all(first(7, 3, a.substr(0, 4)) + first(8, 2, b.substr(0, 5)) +
                     next(7, 2, a.substr(4, 3)) + framed("") + next(8, 1, b.substr(5)) +
                     next(7, 1, a.substr(7))),
            "tick {2}<<\"bbbb\">> {1}<<\"aaaa\">> ");
  EXPECT_EQ(read_all(first(7, 1, a)), "{1}<<\"aaaa\">> ");
}

TEST(Frames, BrokenOnesEndTheConnection) {
  const std::string a = bare(tuple({1}));
  for (const std::string& bytes : {
           framed("x"),
           framed("\x83\x44"),
           framed("\x83\x44\x01" + a),
           framed("\x83\x99\x01"),
           framed(std::string("\x83\x44\x00", 3) + a + a + a),
           framed("\x83\x45" + std::string(5, 'x')),
           framed("\x83\x46" + std::string(5, 'x')),
           first(1, 0, a),
           first(1, 2, "h") + first(1, 2, "h"),
           next(9, 1, "x"),
           first(1, 3, "h") + next(1, 1, "x"),
           first(1, 3, "h") + next(1, 2, ""),
           framed("p"),
           framed("p\x83j\x83j\x83j"),
       }) {
    EXPECT_EQ(read_all(bytes), "!corrupt") << testing::PrintToString(bytes);
  }
}

TEST(Frames, AnAnnouncedLengthIsRefusedBeforeItsBytesCome) {
  EXPECT_EQ(read_all("\xff\xff\xff\xff"), "!invalid");
  EXPECT_EQ(read_all(std::string("\x00\x11\x00\x00", 4)), "!invalid");
}

TEST(Frames, ManyFragmentsNeverHoldMoreThanTheCaps) {
  FrameLimits limits;
  limits.max_message = 1000;
  limits.max_fragments = 2500;
  limits.max_fragmented_messages = 4;
  const std::string data(900, 'x');
  {
    FrameReader reader(limits);
    EXPECT_EQ(read_all(reader, first(1, 9, data)), "");
    EXPECT_EQ(read_all(reader, next(1, 8, data)), "!invalid") << "one message beyond its cap";
  }
  {
    FrameReader reader(limits);
    EXPECT_EQ(read_all(reader, first(1, 9, data) + first(2, 9, data)), "");
    EXPECT_EQ(read_all(reader, first(3, 9, data)), "!invalid") << "all together";
  }
  {
    FrameReader reader(limits);
    for (std::uint64_t i = 0; i < 4; ++i)
      EXPECT_EQ(read_all(reader, first(i, 9, "")), "");
    EXPECT_EQ(read_all(reader, first(9, 9, "")), "!invalid") << "too many at once";
  }
  {
    // A whole message gives its memory back.
    FrameReader reader(limits);
    const std::string message = bare(tuple({1})) + bare(binary(std::string(900, 'y')));
    for (std::uint64_t i = 0; i < 10; ++i)
      EXPECT_NE(
          read_all(reader, first(i, 2, message.substr(0, 500)) + next(i, 1, message.substr(500)))
              .find("{1}"),
          std::string::npos);
  }
}

RC_GTEST_PROP(FramesProperty, WhatIsWrittenIsReadBackInAnyPieces, ()) {
  const bool fragments = *rc::gen::arbitrary<bool>();
  FrameWriter writer(fragments);
  std::string bytes;
  std::string expected;
  const auto count = *rc::gen::inRange(1, 4);
  for (int i = 0; i < count; ++i) {
    const Term control = tuple({i});
    const Term payload = tuple(
        {*arbitrary_term(2), binary(std::string(*rc::gen::inRange<std::size_t>(0, 200'000), 'x'))});
    writer.append(bytes, control, payload);
    expected += show(control, 40) + show(payload, 40) + " ";
  }
  FrameReader reader;
  std::string seen;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto piece = *rc::gen::inRange<std::size_t>(1, 70'000);
    seen += read_all(reader, std::string_view(bytes).substr(at, piece));
    at += piece;
  }
  RC_ASSERT(seen == expected);
}

RC_GTEST_PROP(FramesProperty, AnyBytesEndInWaitingOrAnError, (const std::string& bytes)) {
  FrameReader reader;
  read_all(reader, bytes);
  FrameReader framing;
  read_all(framing, framed("\x83" + bytes) + framed(bytes));
}

}  // namespace
}  // namespace zed::beam
