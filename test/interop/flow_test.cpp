// Large messages, slow readers, many at once: nobody waits for somebody else.
#include <gtest/gtest.h>

#include <csignal>

#include "fixture.hpp"

namespace zed::interop {
namespace {

TEST_F(Interop, ASmallAnswerOvertakesLargeOnes) {
  // Nine large answers wait for a shell that is stopped, 8 MB, more than the kernel takes; then
  // comes a small one to another of its processes. Without turns it would be the last to arrive.
  std::vector<beam::Call> large;
  std::optional<beam::Call> small;
  answer = [&](const beam::Call& call) {
    if (call.request.is_atom("large")) large.push_back(call);
    if (call.request.is_atom("small")) small = call;
    return true;
  };
  Child child(shell("shell", "S = self(), Ask = fun(What) -> spawn(fun() ->"
                             "   gen_server:call({zed,N}, What, 60000), S ! What end) end,"
                             " [Ask(large) || _ <- lists:seq(1, 9)], Ask(small),"
                             " Order = [receive What -> What end || _ <- lists:seq(1, 10)],"
                             " case lists:last(Order) of large -> overtakes; small -> waits end"));
  ASSERT_TRUE(loop.run_until([&] { return large.size() == 9 && small; }, patience));
  ::kill(-child.pid(), SIGSTOP);
  for (const beam::Call& call : large)
    EXPECT_TRUE(node->reply(call, binary(std::string(900'000, 'x'))));
  EXPECT_TRUE(node->reply(*small, atom("small")));
  ::kill(-child.pid(), SIGCONT);
  EXPECT_EQ(child.wait(loop, patience).output, "overtakes\n");
}

TEST_F(Interop, AReaderThatStopsIsRefusedAndOthersAreServed) {
  node.reset();
  beam::NodeOptions options;
  options.limits.tick = seconds(4);
  start(options);
  int refused = 0;
  std::vector<beam::Call> stuck;
  answer = [&](const beam::Call& call) {
    if (!call.request.is_atom("fill")) return false;
    stuck.push_back(call);
    return true;
  };
  Child slow(shell("slow", "[spawn(fun() -> catch gen_server:call({zed,N}, fill, infinity) end)"
                           " || _ <- lists:seq(1, 40)], timer:sleep(infinity)"));
  ASSERT_TRUE(loop.run_until([&] { return stuck.size() == 40; }, patience));
  ::kill(-slow.pid(), SIGSTOP);
  for (const beam::Call& call : stuck) {
    auto sent = node->reply(call, binary(std::string(900'000, 'x')));
    if (!sent && sent.error().code == ErrorCode::busy) ++refused;
  }
  EXPECT_GT(refused, 0) << "36 MB for one that does not read, and 8 MiB may wait";
  EXPECT_EQ(eval("gen_server:call({zed,N}, now)", "quick"), "{echo,now}");
  EXPECT_TRUE(loop.run_until([&] { return !node->is_up("slow@localhost"); }, seconds(20)));
  ::kill(-slow.pid(), SIGCONT);
}

TEST_F(Interop, ASenderIsNeverSuspendedBecauseItsAnswersWait) {
  // A BEAM process that sends to a full connection is suspended, and its time-outs with it: so we
  // read even while nothing of ours is read.
  answer = [&](const beam::Call& call) {
    if (!call.request.is_atom("big")) return false;
    (void)node->reply(call, binary(std::string(700'000, 'x')));
    return true;
  };
  EXPECT_EQ(eval("S = self(), B = binary:copy(<<1>>, 500000),"
                 " [spawn(fun() -> catch gen_server:call({zed,N}, big, 20000) end)"
                 "   || _ <- lists:seq(1, 10)],"
                 " [{zed,N} ! {flood, B} || _ <- lists:seq(1, 60)],"
                 " R = gen_server:call({zed,N}, still_here, 20000), R"),
            "{echo,still_here}");
  EXPECT_EQ(messages.size(), 60U);
}

TEST_F(Interop, AProcessThatIsWatchedIsReportedWhenItEnds) {
  beam::Pid watched;
  answer = [&](const beam::Call& call) {
    if (!call.request.is_atom("watch_me")) return false;
    watched = call.from;
    EXPECT_TRUE(node->watch(call.peer, call.from));
    (void)node->reply(call, atom("ok"));
    return true;
  };
  Child child(shell("shell", "spawn(fun() -> gen_server:call({zed,N}, watch_me),"
                             " receive {die, _} -> bye end end), timer:sleep(infinity)"));
  ASSERT_TRUE(loop.run_until([&] { return watched.id != 0; }, patience));
  EXPECT_TRUE(downs.empty());
  ASSERT_TRUE(node->send("shell@localhost", watched, tuple({atom("die"), 1})));
  EXPECT_TRUE(loop.run_until([&] { return downs.size() == 1; }, patience));
  // One that is gone already is reported at once.
  ASSERT_TRUE(node->watch("shell@localhost", watched));
  EXPECT_TRUE(loop.run_until([&] { return downs.size() == 2; }, patience));
  EXPECT_EQ(downs.back(), watched);
}

}  // namespace
}  // namespace zed::interop
