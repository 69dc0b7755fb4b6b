// A real `erl` (and `iex`) as a peer of beam::Node, without epmd. What docs/beam.md promises of
// BEAM shells is a test here.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include "fixture.hpp"

namespace zed::interop {
namespace {

TEST_F(Interop, PingIsPongAndTheNodeIsHidden) {
  EXPECT_EQ(eval("{net_adm:ping(N), nodes(), nodes(hidden)}"), "{pong,[],[zed@localhost]}");
  EXPECT_EQ(log, "+shell@localhost-shell@localhost");
}

TEST_F(Interop, AGenServerCallIsAnsweredWithWhatItSaid) {
  EXPECT_EQ(eval("gen_server:call({zed,N}, {zed,1,models,list,[]})"),
            "{echo,{zed,1,models,list,[]}}");
  EXPECT_EQ(calls, std::vector<std::string>{"{zed,1,models,list,[]}"});
}

TEST_F(Interop, EveryKindOfTermSurvivesTheRoundTrip) {
  EXPECT_EQ(
      eval(
          "T = [0, 255, 256, -1, 2147483647, -2147483648, 1 bsl 40, -(1 bsl 40), 1 bsl 63,"
          " -(1 bsl 63), (1 bsl 64) - 1, 1 bsl 200, 1.5, -0.0, atom, 'Grüße', <<\"bin\">>, <<5:3>>,"
          " \"abc\", [0,1,2], [a|b], {}, {1,{2}}, #{a => 1, <<\"b\">> => [2]}, self(), make_ref(),"
          " fun lists:map/2, fun(X) -> X + N end, lists:duplicate(300, x),"
          " list_to_tuple(lists:seq(1, 300)), <<0:80000>>, [], hd(erlang:ports())],"
          " {echo, Back} = gen_server:call({zed,N}, T), Back =:= T"),
      "true");
}

TEST_F(Interop, ManyCallsAtOnceAreEachAnswered) {
  EXPECT_EQ(eval("S = self(), [spawn(fun() -> S ! {I, gen_server:call({zed,N}, I)} end)"
                 " || I <- lists:seq(1, 500)],"
                 " lists:usort([receive {I, {echo, I}} -> ok end || I <- lists:seq(1, 500)])"),
            "[ok]");
}

TEST_F(Interop, ALateReplyVanishesInsteadOfLandingInTheMailbox) {
  Child child(shell("shell",
                    "{'EXIT', {timeout, _}} = (catch gen_server:call({zed,N}, later, 100)),"
                    " {echo, now} = gen_server:call({zed,N}, now),"
                    " timer:sleep(100), process_info(self(), messages)"));
  ASSERT_TRUE(loop.run_until([&] { return calls.size() == 2; }, patience));
  ASSERT_TRUE(later);
  EXPECT_TRUE(node->reply(*later, atom("too_late")));
  EXPECT_EQ(child.wait(loop, patience).output, "{messages,[]}\n");
}

TEST_F(Interop, MessagesAndCastsArrive) {
  EXPECT_EQ(eval("{zed,N} ! {hello, \"abc\"}, gen_server:cast({zed,N}, x), {nobody,N} ! lost,"
                 " gen_server:call({zed,N}, done)"),
            "{echo,done}");
  EXPECT_EQ(messages, (std::vector<std::string>{"{hello,\"abc\"}", "{'$gen_cast',x}"}));
}

TEST_F(Interop, LargeMessagesTravelAsFragmentsBothWays) {
  EXPECT_EQ(eval("B = binary:copy(<<7>>, 900000), {echo, B} = gen_server:call({zed,N}, B),"
                 " byte_size(gen_server:call({zed,N}, big))"),
            "900000");
}

TEST_F(Interop, FragmentsOfSeveralSendersInterleave) {
  EXPECT_EQ(
      eval("S = self(), [spawn(fun() -> B = binary:copy(<<I>>, 300000),"
           " {echo, B} = gen_server:call({zed,N}, B, 60000), S ! ok end) || I <- lists:seq(1, 8)],"
           " [receive ok -> ok end || _ <- lists:seq(1, 8)], fine"),
      "fine");
}

TEST_F(Interop, AMessageBeyondTheCapEndsTheConnectionAtOnce) {
  EXPECT_EQ(eval("B = binary:copy(<<7>>, 3000000),"
                 " {'EXIT', {{nodedown, N}, _}} = (catch gen_server:call({zed,N}, B, 20000)),"
                 " gen_server:call({zed,N}, again)"),
            "{echo,again}");
}

TEST_F(Interop, RpcRunsTheWhiteListOnly) {
  EXPECT_EQ(eval("rpc:call(N, 'Elixir.Zed', list, [\"vram\"])"), "{ok,\"vram\"}");
  EXPECT_EQ(eval("erpc:call(N, 'Elixir.Zed', list, [[1,2]], 5000)"), "{ok,[1,2]}");
  EXPECT_EQ(eval("element(2, rpc:call(N, os, cmd, [\"id\"]))"),
            "{'EXIT',{undef,[{os,cmd,[\"id\"],[]}]}}");
  EXPECT_EQ(eval("try erpc:call(N, os, cmd, [\"id\"]) catch C:{E, undef, _} -> {C, E} end"),
            "{error,exception}");
  EXPECT_EQ(
      eval("try erpc:call(N, 'Elixir.Zed', list, [fail]) catch C:{E, badarg, _} -> {C, E} end"),
      "{error,exception}");
}

TEST_F(Interop, AWatchedNameThatIsNotThereIsNoproc) {
  EXPECT_EQ(eval("R = erlang:monitor(process, {nobody,N}),"
                 " receive {'DOWN', R, process, {nobody,N}, Why} -> Why end"),
            "noproc");
  EXPECT_EQ(eval("catch gen_server:call({nobody,N}, x)"),
            "{'EXIT',{noproc,{gen_server,call,[{nobody,zed@localhost},x]}}}");
}

TEST_F(Interop, OurEndReachesMonitors) {
  EXPECT_EQ(eval("R = erlang:monitor(process, {zed,N}), {zed,N} ! hello,"
                 " (catch gen_server:call({zed,N}, die)),"
                 " receive {'DOWN', R, process, {zed,N}, Why} -> Why after 5000 -> nothing end"),
            "shutdown");
}

TEST_F(Interop, ASpawnOfAnythingElseIsUndef) {
  EXPECT_EQ(eval("R = spawn_request(N, os, cmd, [\"id\"], [monitor]),"
                 " receive {spawn_reply, R, error, Why} -> Why end"),
            "undef");
}

TEST_F(Interop, AWrongCookieIsRefused) {
  EXPECT_NE(eval("net_adm:ping(N)", "shell", "wrong").find("pang"), std::string::npos);
  EXPECT_EQ(log, "");
}

TEST_F(Interop, ANameThatIsNotAdmittedIsRefused) {
  EXPECT_NE(eval("net_adm:ping(N)", "stranger").find("pang"), std::string::npos);
  EXPECT_EQ(log, "");
}

TEST_F(Interop, ARestartedShellTakesItsOldConnectionOver) {
  Child first(shell("shell", "net_adm:ping(N), timer:sleep(infinity)"));
  ASSERT_TRUE(loop.run_until([&] { return node->is_up("shell@localhost"); }, patience));
  // Stopped, it neither answers nor closes: to us the old connection is still up.
  ::kill(-first.pid(), SIGSTOP);
  EXPECT_EQ(eval("net_adm:ping(N)"), "pong");
  EXPECT_EQ(log, "+shell@localhost-shell@localhost+shell@localhost-shell@localhost");
}

TEST_F(Interop, AKilledShellIsDownAtOnce) {
  Child child(shell("shell", "net_adm:ping(N), timer:sleep(infinity)"));
  ASSERT_TRUE(loop.run_until([&] { return node->is_up("shell@localhost"); }, patience));
  ::kill(-child.pid(), SIGKILL);
  EXPECT_TRUE(loop.run_until([&] { return !node->is_up("shell@localhost"); }, seconds(5)));
}

/// A node in a process of its own, to be killed.
class Victim {
public:
  Victim() {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) live(pipe[1]);
    ::close(pipe[1]);
    if (::read(pipe[0], &port, sizeof port) != sizeof port) std::abort();
    ::close(pipe[0]);
  }
  ~Victim() { kill(); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  std::uint16_t port = 0;

private:
  [[noreturn]] static void live(int report) {
    net::Loop loop;
    beam::NodeHandlers handlers;
    handlers.admit = [](const std::string&) { return true; };
    beam::NodeOptions options;
    options.name = "zed@localhost";
    options.cookie = "secret";
    options.listen = {"127.0.0.1", 0};
    auto node = beam::Node::start(loop, options, handlers);
    const std::uint16_t own_port = node ? (*node)->endpoint().port : std::uint16_t{0};
    if (::write(report, &own_port, sizeof own_port) == sizeof own_port) loop.run();
    ::_exit(1);
  }
  pid_t pid_ = -1;
};

TEST_F(Interop, OurDeathByKillIsNodedownAndNoconnectionWithinMilliseconds) {
  Victim victim;
  auto argv = shell("shell", "pong = net_adm:ping(N), monitor_node(N, true),"
                             " R = erlang:monitor(process, {zed,N}), io:format(\"up~n\"),"
                             " receive {'DOWN', R, process, {zed,N}, Why} -> ok end,"
                             " receive {nodedown, N} -> {Why, nodedown} end");
  *std::find(argv.begin(), argv.end(), std::to_string(node->endpoint().port)) =
      std::to_string(victim.port);
  Child child(argv);
  ASSERT_TRUE(loop.run_until([&] { return child.output() == "up\n"; }, patience));
  victim.kill();
  EXPECT_EQ(child.wait(loop, seconds(5)).output, "up\n{noconnection,nodedown}\n");
}

TEST_F(Interop, LinksToOurProcessesEndWithThemAndUnlinkingIsAcknowledged) {
  EXPECT_EQ(
      eval(
          "process_flag(trap_exit, true),"
          " Start = fun() -> R = spawn_request(N, erpc, execute_call,"
          "   [tag, 'Elixir.Zed', list, [hold]], []), receive {spawn_reply, R, ok, P} -> P end end,"
          " A = Start(), B = Start(), link(A), link(B), unlink(B),"
          " M = erlang:monitor(process, B), {zed,N} ! release,"
          " receive {'EXIT', A, Why} -> ok end,"
          " receive {'DOWN', M, process, B, normal} -> ok end,"
          " receive Other -> Other after 200 -> ok end,"
          " link(A), receive {'EXIT', A, Late} -> {Why, Late} end"),
      "{normal,noproc}");
}

TEST_F(Interop, EpmdIsToldAndToldAgainWhenItComesBack) {
  if (!is_installed("epmd")) GTEST_SKIP() << "epmd is not installed";
  node.reset();
  beam::NodeOptions options;
  options.epmd = beam::Epmd::register_if_running;
  options.epmd_port = free_port();
  const std::string port = std::to_string(options.epmd_port);
  // Nobody is there yet: the node starts nevertheless.
  start(options);
  const std::vector<std::string> ping = {
      "env",          "ERL_EPMD_PORT=" + port,
      "erl",          "-noshell",
      "-sname",       "shell@localhost",
      "-setcookie",   "secret",
      "-start_epmd",  "false",
      "-dist_listen", "false",
      "-eval",        "io:format(\"~p\", [net_adm:ping('zed@localhost')]), halt(0)."};
  for (int life = 0; life < 2; ++life) {
    Child epmd({"epmd", "-port", port, "-address", "127.0.0.1"});
    EXPECT_TRUE(loop.run_until([&] { return known_to_epmd(port); }, seconds(20)));
    EXPECT_EQ(Child(ping).wait(loop, patience).output, "pong") << "life " << life;
  }
}

TEST_F(Interop, AStoppedShellIsDroppedAtTheTickTimeOut) {
  node.reset();
  beam::NodeOptions options;
  options.limits.tick = seconds(2);
  start(options);
  Child child(
      shell("shell", "net_kernel:set_net_ticktime(2), net_adm:ping(N), timer:sleep(infinity)"));
  ASSERT_TRUE(loop.run_until([&] { return node->is_up("shell@localhost"); }, patience));
  ::kill(-child.pid(), SIGSTOP);
  EXPECT_TRUE(loop.run_until([&] { return !node->is_up("shell@localhost"); }, seconds(10)));
  ::kill(-child.pid(), SIGCONT);
}

TEST_F(Interop, TicksKeepAQuietConnectionUp) {
  node.reset();
  beam::NodeOptions options;
  options.limits.tick = seconds(2);
  start(options);
  auto argv = shell("shell", "net_adm:ping(N), timer:sleep(5000), nodes(hidden)");
  argv.insert(argv.begin() + 1, {"-kernel", "net_ticktime", "2"});
  Child child(argv);
  EXPECT_EQ(child.wait(loop, patience).output, "[zed@localhost]\n");
}

TEST_F(Interop, ElixirCallsUsAsItCallsItsOwn) {
  if (!is_installed("elixir")) GTEST_SKIP() << "elixir is not installed";
  const std::string port = std::to_string(node->endpoint().port);
  Child child(
      {"elixir", "--sname", "ex@localhost", "--cookie", "secret", "--erl",
       "-start_epmd false -erl_epmd_port " + port + " -dist_listen false", "-e",
       "n = :zed@localhost\n"
       "true = Node.connect(n)\n"
       ":pong = Node.ping(n)\n"
       "IO.inspect({Node.list(:hidden), GenServer.call({:zed, n}, {:zed, 1, Jobs, :list,"
       " [gpu: \"A100\"]}), :rpc.call(n, Zed, :list, [\"x\"]), :erpc.call(n, Zed, :list, [:y])},"
       " width: :infinity)"});
  EXPECT_EQ(child.wait(loop, patience).output,
            "{[:zed@localhost], {:echo, {:zed, 1, Jobs, :list, [gpu: \"A100\"]}}, {:ok, \"x\"},"
            " {:ok, :y}}\n");
}

}  // namespace
}  // namespace zed::interop
