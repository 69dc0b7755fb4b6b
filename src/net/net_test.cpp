#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/beneath.hpp"
#include "net/connection.hpp"
#include "net/files.hpp"
#include "net/listener.hpp"
#include "net/loop.hpp"
#include "net/signals.hpp"
#include "net/socket.hpp"
#include "net/workers.hpp"

namespace zed::net {
namespace {

constexpr Millis patience = seconds(10);

struct Folder {
  Folder() {
    char name[] = "/tmp/zed-net-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

/// Both ends of a TCP connection over loopback.
struct Pair {
  explicit Pair(Loop& loop, Bytes max_queued = mebibytes(8)) {
    Fd accepted;
    Fd dialled;
    auto listener = Listener::tcp(loop, {"127.0.0.1", 0}, Exposure::loopback_only,
                                  [&](Fd fd) { accepted = std::move(fd); });
    EXPECT_TRUE(listener);
    connect_tcp(loop, listener->endpoint(), {}, [&](Result<Fd> fd) { dialled = std::move(*fd); });
    EXPECT_TRUE(loop.run_until([&] { return accepted && dialled; }, patience));
    server = Connection(loop, std::move(accepted), max_queued);
    client = Connection(loop, std::move(dialled), max_queued);
  }
  Connection server;
  Connection client;
};

Connection::Handlers collect(std::string& into, std::string* end = nullptr) {
  return {[&into](std::span<const std::uint8_t> bytes) {
            into.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
          },
          [end](Error error) {
            if (end != nullptr) *end = error.describe();
          },
          {}};
}

TEST(Loop, StopBeforeRunIsNotForgottenAndRunCanBeRepeated) {
  Loop loop;
  loop.stop();
  loop.run();
  int calls = 0;
  loop.post([&] {
    ++calls;
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(calls, 1);
}

TEST(Loop, PostNeverCallsInside) {
  Loop loop;
  bool called = false;
  loop.post([&] { called = true; });
  EXPECT_FALSE(called);
  EXPECT_TRUE(loop.run_until([&] { return called; }, patience));
}

TEST(Timer, FiresOnceAndCanBeStartedAgain) {
  Loop loop;
  Timer timer(loop);
  int first = 0;
  int second = 0;
  timer.start({0}, [&] { ++first; });
  EXPECT_TRUE(timer.pending());
  timer.start({0}, [&] { ++second; });
  EXPECT_TRUE(loop.run_until([&] { return second == 1; }, patience));
  EXPECT_FALSE(timer.pending());
  EXPECT_EQ(first, 0);
}

TEST(Timer, CancelledAfterItsTimeCameItStaysSilent) {
  Loop loop;
  Timer early(loop);
  Timer late(loop);
  bool late_fired = false;
  bool done = false;
  // Both are due in the same turn, so asio has queued the second when the first cancels it.
  early.start({1}, [&] { late.cancel(); });
  late.start({1}, [&] { late_fired = true; });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  Timer end(loop);
  end.start({5}, [&] { done = true; });
  EXPECT_TRUE(loop.run_until([&] { return done; }, patience));
  EXPECT_FALSE(late_fired);
}

TEST(Timer, MayBeDestroyedByItsOwnFunction) {
  Loop loop;
  auto timer = std::make_unique<Timer>(loop);
  bool fired = false;
  timer->start({0}, [&] {
    timer.reset();
    fired = true;
  });
  EXPECT_TRUE(loop.run_until([&] { return fired; }, patience));
}

TEST(Endpoint, ReadsAndWritesBothFamilies) {
  EXPECT_EQ(Endpoint::parse("127.0.0.1:4370")->str(), "127.0.0.1:4370");
  EXPECT_EQ(Endpoint::parse("[::1]:80")->host, "::1");
  EXPECT_EQ(Endpoint::parse("[::1]:80")->str(), "[::1]:80");
  for (const char* wrong : {"", "host", ":80", "::1:80", "a:65536", "a:-1", "a:", "a:8x"})
    EXPECT_FALSE(Endpoint::parse(wrong)) << wrong;
}

TEST(Exposure, OnlyLoopbackIsLoopback) {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "localhost", "::ffff:127.0.0.1"})
    EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "example.com", "",
                           "::ffff:10.0.0.1", "localhost.evil.example"})
    EXPECT_FALSE(is_loopback(host)) << host;
}

TEST(Exposure, PlainTcpRefusesToListenAndToConnectElsewhere) {
  Loop loop;
  auto listener = Listener::tcp(loop, {"0.0.0.0", 0}, Exposure::loopback_only, [](Fd) {});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, ErrorCode::refused);
  EXPECT_NE(listener.error().describe().find("0.0.0.0:0"), std::string::npos);
  EXPECT_TRUE(Listener::tcp(loop, {"0.0.0.0", 0}, Exposure::plain_everywhere, [](Fd) {}));

  std::optional<Error> error;
  connect_tcp(loop, {"192.0.2.1", 9}, {}, [&](Result<Fd> fd) { error = fd.error(); });
  EXPECT_TRUE(loop.run_until([&] { return error.has_value(); }, patience));
  EXPECT_EQ(error->code, ErrorCode::refused);
}

TEST(Listener, APortInUseIsBusyAndNamed) {
  Loop loop;
  auto first = Listener::tcp(loop, {"127.0.0.1", 0}, Exposure::loopback_only, [](Fd) {});
  ASSERT_TRUE(first);
  auto second = Listener::tcp(loop, first->endpoint(), Exposure::loopback_only, [](Fd) {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::busy);
  EXPECT_NE(second.error().describe().find(first->endpoint().str()), std::string::npos);
}

TEST(Connect, NobodyThereIsUnavailable) {
  Loop loop;
  Endpoint free_port;
  {
    auto listener = Listener::tcp(loop, {"127.0.0.1", 0}, Exposure::loopback_only, [](Fd) {});
    free_port = listener->endpoint();
  }
  std::optional<Error> error;
  connect_tcp(loop, free_port, {}, [&](Result<Fd> fd) { error = fd.error(); });
  EXPECT_FALSE(error) << "called inside connect_tcp";
  EXPECT_TRUE(loop.run_until([&] { return error.has_value(); }, patience));
  EXPECT_EQ(error->code, ErrorCode::unavailable);
}

TEST(Connection, CarriesBytesBothWaysAndTellsTheEnd) {
  Loop loop;
  Pair pair(loop);
  std::string at_server;
  std::string at_client;
  std::string end;
  pair.server.start(collect(at_server, &end));
  pair.client.start(collect(at_client));
  ASSERT_TRUE(pair.client.send("hello"));
  ASSERT_TRUE(pair.server.send("world"));
  EXPECT_TRUE(
      loop.run_until([&] { return at_server == "hello" && at_client == "world"; }, patience));
  pair.client.close();
  EXPECT_TRUE(loop.run_until([&] { return !end.empty(); }, patience));
  EXPECT_FALSE(pair.server.is_open());
  EXPECT_EQ(pair.server.send("x").error().code, ErrorCode::unavailable);
}

TEST(Connection, ASlowReceiverMakesTheSenderBusyNotBig) {
  Loop loop;
  Pair pair(loop, kibibytes(64));
  const std::string block(std::size_t{16} << 10, 'x');
  std::size_t accepted = 0;
  Status status;
  while (accepted < (std::size_t{64} << 20) && (status = pair.client.send(block)))
    accepted += block.size();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::busy);
  EXPECT_LE(pair.client.queued(), kibibytes(64));
  std::string received;
  bool drained = false;
  pair.client.start({[](std::span<const std::uint8_t>) {}, {}, [&] { drained = true; }});
  pair.server.start(collect(received));
  EXPECT_TRUE(loop.run_until([&] { return received.size() == accepted && drained; }, patience));
  EXPECT_EQ(pair.client.queued(), Bytes{0});
}

TEST(Connection, FinishDeliversWhatIsQueuedEvenIfTheHandleDies) {
  Loop loop;
  Pair pair(loop);
  const std::string much(std::size_t{4} << 20, 'y');
  ASSERT_TRUE(pair.client.send(much));
  pair.client.finish();
  EXPECT_FALSE(pair.client.is_open());
  pair.client = Connection();
  std::string received;
  std::string end;
  pair.server.start(collect(received, &end));
  EXPECT_TRUE(loop.run_until([&] { return !end.empty(); }, patience));
  EXPECT_EQ(received.size(), much.size());
}

TEST(Connection, APausedReceiverReadsNothing) {
  Loop loop;
  Pair pair(loop);
  std::string received;
  pair.server.start(collect(received));
  pair.server.pause();
  ASSERT_TRUE(pair.client.send("later"));
  EXPECT_FALSE(loop.run_until([&] { return !received.empty(); }, {30}));
  pair.server.resume();
  EXPECT_TRUE(loop.run_until([&] { return received == "later"; }, patience));
}

TEST(Connection, AHandlerMayDestroyItsConnection) {
  Loop loop;
  Pair pair(loop);
  auto server = std::make_unique<Connection>(std::move(pair.server));
  auto witness = std::make_shared<int>(0);
  server->start({[&server, witness](std::span<const std::uint8_t>) {
                   server.reset();
                   ++*witness;  // the closure is still whole
                 },
                 [](Error) { FAIL() << "no end is told after close()"; },
                 {}});
  ASSERT_TRUE(pair.client.send("x"));
  EXPECT_TRUE(loop.run_until([&] { return *witness == 1 && witness.use_count() == 1; }, patience));
}

TEST(Connection, AResetPeerIsToldByTheLoopNotBySend) {
  Loop loop;
  Pair pair(loop);
  std::string end;
  std::string ignored;
  pair.client.start(collect(ignored, &end));
  const linger now{1, 0};
  ::setsockopt(pair.server.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  pair.server.close();
  for (int i = 0; i < 3; ++i)
    (void)pair.client.send("x");  // no SIGPIPE either
  EXPECT_TRUE(end.empty());
  EXPECT_TRUE(loop.run_until([&] { return !end.empty(); }, patience));
}

TEST(UnixSocket, IsOursAloneAndNamesItsPeer) {
  Loop loop;
  Folder folder;
  const std::string path = folder.path + "/s";
  Fd accepted;
  auto listener = Listener::local(loop, path, [&](Fd fd) { accepted = std::move(fd); });
  ASSERT_TRUE(listener);
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  auto client = connect_unix(path);
  ASSERT_TRUE(client);
  EXPECT_TRUE(loop.run_until([&] { return bool(accepted); }, patience));
  auto peer = peer_credentials(accepted.get());
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->uid, ::getuid());
  EXPECT_EQ(peer->pid.value_or(::getpid()), ::getpid());
}

TEST(UnixSocket, ADeadFileIsReplacedALiveOneIsBusyAnotherThingStays) {
  Loop loop;
  Folder folder;
  const std::string path = folder.path + "/s";
  { ASSERT_TRUE(listen_unix(path)); }  // the file stays behind
  ASSERT_TRUE(std::filesystem::exists(path));
  {
    auto live = Listener::local(loop, path, [](Fd) {});
    ASSERT_TRUE(live);
    EXPECT_EQ(listen_unix(path).error().code, ErrorCode::busy);
  }
  EXPECT_FALSE(std::filesystem::exists(path)) << "the listener removes its file";
  std::ofstream(path) << "precious";
  EXPECT_EQ(listen_unix(path).error().code, ErrorCode::exists);
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(listen_unix(folder.path + std::string(200, 'x')).error().code, ErrorCode::invalid);
  EXPECT_EQ(connect_unix(folder.path + "/none").error().code, ErrorCode::not_found);
}

TEST(UnixSocket, ATcpSocketHasNoCredentials) {
  Loop loop;
  Pair pair(loop);
  EXPECT_FALSE(peer_credentials(pair.server.fd()));
}

TEST(Workers, RunElsewhereAndReportHere) {
  Loop loop;
  WorkerPool pool(loop, 2, 8);
  const auto here = std::this_thread::get_id();
  std::thread::id there;
  std::thread::id back;
  ASSERT_TRUE(pool.run<int>(
      [&] {
        there = std::this_thread::get_id();
        return 42;
      },
      [&](int answer) {
        EXPECT_EQ(answer, 42);
        back = std::this_thread::get_id();
      }));
  EXPECT_TRUE(loop.run_until([&] { return back == here; }, patience));
  EXPECT_NE(there, here);
}

TEST(Workers, AResultThatIsOnItsWayIsDroppedWithThePool) {
  Loop loop;
  std::atomic<bool> next_begun{false};
  int reported = 0;
  auto pool = std::make_unique<WorkerPool>(loop, 1, 2);
  ASSERT_TRUE(pool->post([] {}, [&] { ++reported; }));
  // One thread: when it begins the second, it has handed over the first.
  ASSERT_TRUE(pool->post([&] { next_begun = true; }, [&] { ++reported; }));
  while (!next_begun)
    std::this_thread::yield();
  pool.reset();
  bool over = false;
  loop.post([&] { over = true; });
  EXPECT_TRUE(loop.run_until([&] { return over; }, patience));
  EXPECT_EQ(reported, 0);
}

TEST(Workers, AFullQueueIsBusyAndDestructionDropsWhatWaits) {
  Loop loop;
  std::atomic<bool> release{false};
  std::atomic<bool> begun{false};
  std::atomic<int> worked{0};
  auto pool = std::make_unique<WorkerPool>(loop, 1, 2);
  const auto work = [&] {
    begun = true;
    while (!release)
      std::this_thread::yield();
    ++worked;
  };
  ASSERT_TRUE(pool->post(work, [] {}));
  while (!begun)
    std::this_thread::yield();
  ASSERT_TRUE(pool->post(work, [] {}));
  ASSERT_TRUE(pool->post(work, [] {}));
  EXPECT_EQ(pool->post(work, [] {}).error().code, ErrorCode::busy);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    release = true;
  });
  pool.reset();
  later.join();
  EXPECT_EQ(worked, 1);
}

TEST(Signals, ArriveOnTheLoopUntilUnwatched) {
  Loop loop;
  int got = 0;
  auto signals = Signals::watch(loop, {SIGUSR1}, [&](int number) { got = number; });
  ASSERT_TRUE(signals);
  ::raise(SIGUSR1);
  EXPECT_EQ(got, 0);
  EXPECT_TRUE(loop.run_until([&] { return got == SIGUSR1; }, patience));
}

// ---- files below a folder that others write to --------------------------------------------------

TEST(Beneath, OpensWhatIsThereAndNothingElse) {
  namespace fs = std::filesystem;
  Folder folder;
  const fs::path inside = fs::path(folder.path) / "inside";
  fs::create_directories(inside / "a/b");
  fs::create_directories(fs::path(folder.path) / "outside");
  std::ofstream(fs::path(folder.path) / "outside/secret") << "secret";
  std::ofstream(inside / "a/b/file") << "mine";
  fs::create_directory_symlink("../outside", inside / "out");
  fs::create_directory_symlink("a", inside / "in");
  fs::create_symlink("../../../outside/secret", inside / "a/b/link");
  ASSERT_EQ(::mkfifo((inside / "pipe").c_str(), 0600), 0);
  Fd at(::open(inside.c_str(), O_RDONLY | O_DIRECTORY));

  EXPECT_TRUE(open_file_beneath(at.get(), "a/b/file"));
  EXPECT_EQ(open_file_beneath(at.get(), "a/b/none").error().code, ErrorCode::not_found);
  for (const char* path : {"out/secret", "in/b/file", "a/b/link", "pipe", "a"}) {
    auto opened = open_file_beneath(at.get(), path);
    ASSERT_FALSE(opened) << path;
    EXPECT_EQ(opened.error().code, ErrorCode::io) << path;
  }
  EXPECT_FALSE(open_beneath(at.get(), "a/b/link", O_PATH));
  for (const char* path : {"", "/etc", "../outside", "a/../a", "a//b", "./a", "a/."}) {
    auto opened = open_beneath(at.get(), path, O_RDONLY);
    ASSERT_FALSE(opened) << path;
    EXPECT_EQ(opened.error().code, ErrorCode::invalid) << path;
  }
}

TEST(Beneath, MakesFoldersThroughNoLink) {
  namespace fs = std::filesystem;
  Folder folder;
  const fs::path inside = fs::path(folder.path) / "inside";
  fs::create_directories(inside);
  fs::create_directories(fs::path(folder.path) / "outside");
  Fd at(::open(inside.c_str(), O_RDONLY | O_DIRECTORY));
  EXPECT_TRUE(make_folder_beneath(at.get(), "x/y/z", 0755));
  EXPECT_TRUE(make_folder_beneath(at.get(), "x/y/z", 0755)) << "again";
  fs::create_directory_symlink("../outside", inside / "out");
  EXPECT_FALSE(make_folder_beneath(at.get(), "out/new", 0755));
  EXPECT_FALSE(fs::exists(fs::path(folder.path) / "outside/new"));
}

TEST(Files, AreWholeOrAsTheyWere) {
  namespace fs = std::filesystem;
  Folder folder;
  const fs::path path = fs::path(folder.path) / "record";
  EXPECT_EQ(read_file(path).error().code, ErrorCode::not_found);
  for (Endures endures : {Endures::processes, Endures::power_once_written, Endures::power}) {
    const std::string text(100'000, static_cast<char>('a' + static_cast<int>(endures)));
    ASSERT_TRUE(write_file(path, text, endures));
    EXPECT_EQ(read_file(path).value(), text);
    EXPECT_EQ(read_file(path, Bytes{99'999}).error().code, ErrorCode::invalid);
    EXPECT_EQ(fs::status(path).permissions(), fs::perms(0600));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()), 1);
  }
  EXPECT_EQ(write_file(path / "below a file", "x", Endures::power).error().code, ErrorCode::io);
}

}  // namespace
}  // namespace zed::net
