#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "beam/session.hpp"
#include "beam/test_terms.hpp"
#include "beam/wire.hpp"

namespace zed::beam {
namespace {

constexpr Instant start{1'000'000};

SessionOptions options_for(std::string name) {
  SessionOptions options;
  options.self = {std::move(name), 77, "secret"};
  options.random = [next = std::uint32_t{1}]() mutable { return next++; };
  options.next_process = [next = std::uint64_t{1}]() mutable { return ++next; };
  options.allows_rpc = [](std::string_view module, std::string_view function, std::size_t arity) {
    return module == "m" && function == "f" && arity == 1;
  };
  return options;
}

struct Shown {
  std::string operator()(const PeerNamed& e) const { return "named " + e.peer; }
  std::string operator()(const PeerUp& e) const { return "up " + e.peer.name; }
  std::string operator()(const Call& e) const { return "call " + e.to + " " + show(e.request); }
  std::string operator()(const Message& e) const {
    return "message " + e.to + " " + show(e.content);
  }
  std::string operator()(const RpcCall& e) const {
    return "rpc " + e.module + ":" + e.function + "/" + std::to_string(e.arguments.size());
  }
  std::string operator()(const ProcessDown& e) const { return "down " + show(e.process); }
  std::string operator()(const Ended& e) const {
    return "ended " + std::string(to_string(e.error.code));
  }
};
std::string shown(const std::vector<SessionEvent>& events) {
  std::string out;
  for (const SessionEvent& event : events)
    out += (out.empty() ? "" : "; ") + std::visit(Shown{}, event);
  return out;
}

/// A session that is up, and the other side of its wire as terms.
class Wire {
public:
  explicit Wire(SessionOptions options = options_for("zed@h"))
      : ours(Session::accept(std::move(options), start)),
        theirs(Session::dial(options_for("shell@h"), "zed@h", start)) {
    shake();
  }

  void shake() {
    give(theirs.take_output(start));
    (void)ours.answer(Verdict::ok);
    for (int i = 0; i < 3; ++i) {
      const std::string bytes = ours.take_output(start);
      (void)theirs.receive(bytes_of(bytes), start);
      give(theirs.take_output(start));
    }
    ZED_ASSERT(ours.is_up() && theirs.is_up());
  }

  std::vector<SessionEvent> give(const std::string& bytes, Instant now = start) {
    return ours.receive(bytes_of(bytes), now);
  }
  std::vector<SessionEvent> give(const Term& control, std::optional<Term> payload = {}) {
    std::string bytes;
    writer.append(bytes, control, payload);
    return give(bytes);
  }
  /// What we have sent, as control tuples and payloads.
  std::string sent(Instant now = start) {
    const std::string output = ours.take_output(now);
    auto bytes = bytes_of(output);
    std::string out;
    while (true) {
      auto event = reader.receive(bytes);
      EXPECT_TRUE(event);
      if (!event || !event->has_value()) return out;
      if (!out.empty()) out += "; ";
      if (std::holds_alternative<Tick>(**event)) out += "tick";
      if (auto* packet = std::get_if<Packet>(&**event)) {
        out += show(packet->control);
        if (packet->payload) out += " " + show(*packet->payload);
      }
    }
  }

  Session ours;
  Session theirs;
  FrameWriter writer{true};
  FrameReader reader;
};

const Pid caller{Atom{"shell@h"}, 90, 0, 5};
const Reference mark{Atom{"shell@h"}, 5, {1, 2, 3}, 3};
const Term alias_tag = ImproperList{{atom("alias"), mark}};
const Pid server{Atom{"zed@h"}, 1, 0, 77};

Term reg_send(std::string_view name) {
  return tuple({6, caller, atom(""), atom(name)});
}
Term gen_call(Term tag, Term request) {
  return tuple({atom("$gen_call"), tuple({caller, std::move(tag)}), std::move(request)});
}
Call call_in(const std::vector<SessionEvent>& events) {
  return std::get<Call>(events.at(0));
}

TEST(Session, ACallIsAnsweredByItsAliasWithItsTagVerbatim) {
  Wire wire;
  auto events = wire.give(reg_send("zed"), gen_call(alias_tag, atom("hi")));
  ASSERT_EQ(shown(events), "call zed hi");
  ASSERT_TRUE(wire.ours.reply(call_in(events), atom("ok")));
  EXPECT_EQ(wire.sent(), "{33,<zed@h.1.0>,#Ref<shell@h.1.2.3>} {[alias|#Ref<shell@h.1.2.3>],ok}");
}

TEST(Session, ALargeAnswerDoesNotDelayASmallOneToAnother) {
  Wire wire;
  auto large = wire.give(reg_send("zed"), gen_call(alias_tag, atom("large")));
  ASSERT_TRUE(wire.ours.reply(call_in(large), binary(std::string(900'000, 'x'))));
  Pid other = caller;
  other.id = 91;
  ASSERT_TRUE(wire.ours.send(other, atom("small")));
  const std::string first = wire.ours.take_output(start, std::size_t{128} << 10);
  EXPECT_LT(first.size(), std::size_t{256} << 10);
  EXPECT_NE(first.find("small"), std::string::npos);
  // To the process that waits for the large one, order is kept.
  ASSERT_TRUE(wire.ours.send(caller, atom("afterwards")));
  auto bytes = bytes_of(first);
  while (!bytes.empty())
    ASSERT_TRUE(wire.reader.receive(bytes));
  const std::string rest = wire.sent();
  EXPECT_LT(rest.find("alias"), rest.find("afterwards"));
}

TEST(Session, AWatchedProcessIsReportedDownOnce) {
  Wire wire;
  ASSERT_TRUE(wire.ours.watch(caller));
  EXPECT_EQ(wire.sent(), "{19,<zed@h.1.0>,<shell@h.90.0>,#Ref<zed@h.1.0.0>}");
  const Reference ours{Atom{"zed@h"}, 77, {1, 0, 0}, 3};
  const Term down = tuple({21, caller, server, ours, atom("normal")});
  EXPECT_EQ(shown(wire.give(down)), "down <shell@h.90.0>");
  EXPECT_EQ(shown(wire.give(down)), "");
  ASSERT_TRUE(wire.ours.watch(caller));
  wire.ours.unwatch(caller);
  EXPECT_EQ(wire.sent(), "{19,<zed@h.1.0>,<shell@h.90.0>,#Ref<zed@h.2.0.0>}; "
                         "{20,<zed@h.1.0>,<shell@h.90.0>,#Ref<zed@h.2.0.0>}");
}

TEST(Session, WatchesAreBounded) {
  auto options = options_for("zed@h");
  options.limits.max_monitors = 2;
  Wire wire(options);
  ASSERT_TRUE(wire.ours.watch(caller));
  ASSERT_TRUE(wire.ours.watch(caller));
  EXPECT_EQ(wire.ours.watch(caller).error().code, ErrorCode::busy);
}

TEST(Session, TagsOfOtherKindsAreAnsweredToo) {
  Wire wire;
  auto plain = wire.give(reg_send("zed"), gen_call(mark, atom("hi")));
  ASSERT_TRUE(wire.ours.reply(call_in(plain), 1));
  EXPECT_EQ(wire.sent(), "{2,'',<shell@h.90.0>} {#Ref<shell@h.1.2.3>,1}");
  auto labelled =
      wire.give(reg_send("zed"), gen_call(ImproperList{{alias_tag, atom("label")}}, atom("hi")));
  ASSERT_TRUE(wire.ours.reply(call_in(labelled), 1));
  EXPECT_EQ(wire.sent().find("{33,<zed@h.1.0>,#Ref<shell@h.1.2.3>}"), 0U);
}

TEST(Session, PingIsAnsweredYesAndUnknownNamesGetNothing) {
  Wire wire;
  EXPECT_EQ(shown(wire.give(reg_send("net_kernel"),
                            gen_call(alias_tag, tuple({atom("is_auth"), atom("shell@h")})))),
            "");
  EXPECT_NE(wire.sent().find(",yes}"), std::string::npos);
  EXPECT_EQ(shown(wire.give(reg_send("net_kernel"), gen_call(alias_tag, atom("stop")))), "");
  EXPECT_EQ(shown(wire.give(reg_send("init"), gen_call(alias_tag, atom("stop")))), "");
  EXPECT_EQ(shown(wire.give(reg_send("init"), tuple({atom("stop"), atom("stop")}))), "");
  EXPECT_EQ(wire.sent(), "");
}

TEST(Session, MessagesArriveByNameAndByPid) {
  Wire wire;
  EXPECT_EQ(shown(wire.give(reg_send("zed"), atom("a"))), "message zed a");
  EXPECT_EQ(shown(wire.give(tuple({2, atom(""), server}), atom("b"))), "message zed b");
  Pid stale = server;
  stale.creation = 76;
  EXPECT_EQ(shown(wire.give(tuple({2, atom(""), stale}), atom("c"))), "");
}

TEST(Session, MonitorsOfWhatIsNotThereAreAnsweredAtOnce) {
  Wire wire;
  (void)wire.give(tuple({19, caller, atom("nobody"), mark}));
  EXPECT_EQ(wire.sent(), "{21,nobody,<shell@h.90.0>,#Ref<shell@h.1.2.3>,noproc}");
  (void)wire.give(tuple({19, caller, atom("zed"), mark}));
  EXPECT_EQ(wire.sent(), "");
  wire.ours.say_goodbye(atom("shutdown"));
  EXPECT_EQ(wire.sent(), "{21,zed,<shell@h.90.0>,#Ref<shell@h.1.2.3>,shutdown}");
}

TEST(Session, ADemonitoredNameIsNotTold) {
  Wire wire;
  (void)wire.give(tuple({19, caller, server, mark}));
  (void)wire.give(tuple({20, caller, server, mark}));
  wire.ours.say_goodbye(atom("shutdown"));
  EXPECT_EQ(wire.sent(), "");
}

TEST(Session, LinksAreKeptBrokenAndAcknowledged) {
  Wire wire;
  Pid stranger = server;
  stranger.id = 99;
  (void)wire.give(tuple({1, caller, stranger}));
  EXPECT_EQ(wire.sent(), "{3,<zed@h.99.0>,<shell@h.90.0>,noproc}");
  (void)wire.give(tuple({1, caller, server}));
  (void)wire.give(tuple({35, 7, caller, server}));
  EXPECT_EQ(wire.sent(), "{36,7,<zed@h.1.0>,<shell@h.90.0>}");
  (void)wire.give(tuple({1, caller, server}));
  (void)wire.give(tuple({3, caller, server, atom("bye")}));
  wire.ours.say_goodbye(atom("shutdown"));
  EXPECT_EQ(wire.sent(), "");
}

TEST(Session, MonitorsAreBounded) {
  auto options = options_for("zed@h");
  options.limits.max_monitors = 2;
  Wire wire(options);
  for (std::uint32_t i = 0; i < 3; ++i) {
    Reference reference = mark;
    reference.ids[0] = i;
    (void)wire.give(tuple({19, caller, atom("zed"), reference}));
  }
  EXPECT_EQ(wire.sent(), "{21,zed,<shell@h.90.0>,#Ref<shell@h.2.2.3>,system_limit}");
}

std::vector<SessionEvent> erpc(Wire& wire, std::string_view module, Term arguments) {
  return wire.give(tuple({29, mark, caller, caller, tuple({atom("erpc"), atom("execute_call"), 4}),
                          list({atom("monitor")})}),
                   list({atom("tag"), atom(module), atom("f"), std::move(arguments)}));
}

TEST(Session, AnAllowedRemoteCallIsHandedOverAndAnswered) {
  Wire wire;
  auto events = erpc(wire, "m", list({1}));
  ASSERT_EQ(shown(events), "rpc m:f/1");
  EXPECT_EQ(wire.sent(), "{31,#Ref<shell@h.1.2.3>,<shell@h.90.0>,2,<zed@h.2.0>}");
  ASSERT_TRUE(wire.ours.return_value(std::get<RpcCall>(events[0]).id, atom("done")));
  EXPECT_EQ(wire.sent(), "{21,<zed@h.2.0>,<shell@h.90.0>,#Ref<shell@h.1.2.3>,{tag,return,done}}");
  EXPECT_EQ(wire.ours.return_value(std::get<RpcCall>(events[0]).id, 1).error().code,
            ErrorCode::not_found);
}

TEST(Session, RemoteCallsOffTheWhiteListAreUndef) {
  Wire wire;
  EXPECT_EQ(shown(erpc(wire, "os", list({1}))), "");
  EXPECT_NE(wire.sent().find("{tag,error,undef,[{os,f,[1],[]}]}"), std::string::npos);
  EXPECT_EQ(shown(erpc(wire, "m", list({1, 2}))), "") << "the arity is part of it";
  EXPECT_NE(wire.sent().find("undef"), std::string::npos);
  // Small integers come as bytes.
  EXPECT_EQ(shown(erpc(wire, "m", ByteList{"\x01"})), "rpc m:f/1");
  (void)wire.sent();
  EXPECT_EQ(shown(wire.give(
                tuple({29, mark, caller, caller, tuple({atom("os"), atom("cmd"), 1}), List{}}),
                list({binary("id")}))),
            "");
  EXPECT_EQ(wire.sent(), "{31,#Ref<shell@h.1.2.3>,<shell@h.90.0>,0,undef}");
  EXPECT_EQ(shown(erpc(wire, "m", atom("no list"))), "");
  EXPECT_NE(wire.sent().find("badarg"), std::string::npos);
}

TEST(Session, ACallerThatGaveUpFreesItsCall) {
  Wire wire;
  auto events = erpc(wire, "m", list({1}));
  (void)wire.sent();
  (void)wire.give(tuple({20, caller, Pid{Atom{"zed@h"}, 2, 0, 77}, mark}));
  EXPECT_FALSE(wire.ours.return_value(std::get<RpcCall>(events[0]).id, 1));
  EXPECT_EQ(wire.sent(), "");
}

TEST(Session, RemoteCallsAreBounded) {
  auto options = options_for("zed@h");
  options.limits.max_spawned = 1;
  Wire wire(options);
  (void)erpc(wire, "m", list({1}));
  (void)wire.sent();
  EXPECT_EQ(shown(erpc(wire, "m", list({1}))), "");
  EXPECT_NE(wire.sent().find("system_limit"), std::string::npos);
}

TEST(Session, TicksGoOutWhenQuietAndSilenceEndsIt) {
  Wire wire;
  EXPECT_EQ(wire.ours.next_deadline(), start + seconds(15));
  EXPECT_EQ(shown(wire.ours.on_time(start + seconds(14))), "");
  EXPECT_EQ(wire.sent(start + seconds(14)), "");
  (void)wire.ours.on_time(start + seconds(15));
  EXPECT_EQ(wire.sent(start + seconds(15)), "tick");
  EXPECT_EQ(wire.ours.next_deadline(), start + seconds(30));
  // A tick of the peer counts as life.
  (void)wire.give(std::string(4, '\0'), start + seconds(50));
  EXPECT_EQ(shown(wire.ours.on_time(start + seconds(109))), "");
  EXPECT_EQ(shown(wire.ours.on_time(start + seconds(110))), "ended timeout");
  EXPECT_TRUE(wire.ours.is_over());
  EXPECT_EQ(wire.ours.send("zed", 1).error().code, ErrorCode::unavailable);
}

TEST(Session, TrafficPutsOffTheTick) {
  Wire wire;
  ASSERT_TRUE(wire.ours.send("zed", 1));
  (void)wire.sent(start + seconds(10));
  (void)wire.ours.on_time(start + seconds(24));
  EXPECT_EQ(wire.sent(start + seconds(24)), "");
  (void)wire.ours.on_time(start + seconds(25));
  EXPECT_EQ(wire.sent(start + seconds(25)), "tick");
}

TEST(Session, ASilentHandshakeTimesOut) {
  auto session = Session::accept(options_for("zed@h"), start);
  EXPECT_EQ(session.next_deadline(), start + seconds(7));
  EXPECT_EQ(shown(session.on_time(start + Millis{6999})), "");
  EXPECT_EQ(shown(session.on_time(start + seconds(7))), "ended timeout");
}

TEST(Session, AFullQueueIsBusyAndWholeMessagesOnly) {
  auto options = options_for("zed@h");
  options.limits.max_output = 100'000;
  Wire wire(options);
  ASSERT_TRUE(wire.ours.send("zed", binary(std::string(60'000, 'x'))));
  EXPECT_EQ(wire.ours.send("zed", binary(std::string(60'000, 'y'))).error().code, ErrorCode::busy);
  ASSERT_TRUE(wire.ours.send("zed", atom("small")));
  const std::string sent = wire.sent();
  EXPECT_EQ(sent.find('y'), std::string::npos);
  EXPECT_NE(sent.find("small"), std::string::npos);
  EXPECT_EQ(wire.ours.send("zed", binary(std::string(2'000'000, 'x'))).error().code,
            ErrorCode::invalid);
}

TEST(Session, WhatThePeerWouldRefuseIsNotSent) {
  Wire wire;
  Term deep = atom("x");
  for (int i = 0; i < 200; ++i)
    deep = tuple({deep});
  EXPECT_EQ(wire.ours.send("zed", deep).error().code, ErrorCode::invalid);
  EXPECT_EQ(wire.ours.send("zed", list(std::vector<Term>(200'000, 1))).error().code,
            ErrorCode::invalid);
  EXPECT_FALSE(wire.ours.has_output());
}

TEST(Session, AnAnswerThatDoesNotFitStillEndsTheRemoteCall) {
  Wire wire;
  auto events = erpc(wire, "m", list({1}));
  (void)wire.sent();
  EXPECT_FALSE(
      wire.ours.return_value(std::get<RpcCall>(events[0]).id, binary(std::string(2'000'000, 'x'))));
  EXPECT_EQ(wire.sent(), "{21,<zed@h.2.0>,<shell@h.90.0>,#Ref<shell@h.1.2.3>,system_limit}");
}

TEST(Session, APeerThatAsksAndNeverReadsIsGivenUp) {
  auto options = options_for("zed@h");
  options.limits.max_output = 1000;
  Wire wire(options);
  std::string bytes;
  for (int i = 0; i < 50'000; ++i)
    wire.writer.append(bytes, tuple({19, caller, atom("nobody"), mark}), {});
  EXPECT_EQ(shown(wire.give(bytes)), "ended busy");
}

TEST(Session, MalformedControlMessagesEndIt) {
  for (const Term& control :
       {Term(1), tuple({}), tuple({atom("x")}), tuple({99}), tuple({19, caller}),
        tuple({19, caller, 5, mark}), tuple({35, -1, caller, server}),
        tuple({1, caller, atom("x")}), tuple({24, caller, server})}) {
    Wire wire;
    EXPECT_EQ(shown(wire.give(control)).find("ended"), 0U) << show(control);
  }
  Wire wire;
  EXPECT_EQ(shown(wire.give(reg_send("zed"))), "ended corrupt") << "no payload";
}

TEST(Session, WhatASpeakerOutOfTurnSaysEndsIt) {
  auto session = Session::accept(options_for("zed@h"), start);
  auto dialler = Session::dial(options_for("shell@h"), "zed@h", start);
  const std::string bytes = dialler.take_output(start) + "more";
  EXPECT_EQ(shown(session.receive(bytes_of(bytes), start)), "named shell@h; ended corrupt");
  EXPECT_EQ(shown(session.answer(Verdict::ok)), "");
}

RC_GTEST_PROP(SessionProperty, AnyControlMessageIsHandled, ()) {
  Wire wire;
  std::vector<Term> parts{Term(*rc::gen::inRange(0, 40))};
  const auto count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i) {
    parts.push_back(*rc::gen::oneOf(
        rc::gen::element<Term>(caller, server, mark, atom("zed"), List{}), arbitrary_term(2)));
  }
  const bool loaded = *rc::gen::arbitrary<bool>();
  (void)wire.give(tuple(std::move(parts)),
                  loaded ? std::optional<Term>(*arbitrary_term(2)) : std::nullopt);
  (void)wire.ours.on_time(start + seconds(1));
  wire.ours.say_goodbye(atom("shutdown"));
}

}  // namespace
}  // namespace zed::beam
