// Real processes, real supervisors. The test program is its own `zed-agent supervise`.

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <map>

#include "base/log.hpp"
#include "base/text.hpp"
#include "net/socket.hpp"
#include "proc/attempts.hpp"
#include "proc/exit_words.hpp"
#include "proc/job_cgroup.hpp"
#include "proc/job_log.hpp"
#include "proc/job_socket.hpp"
#include "proc/job_user.hpp"
#include "proc/machine_test.hpp"
#include "proc/process_tree.hpp"
#include "proc/supervisor.hpp"

namespace zed::proc {
namespace {

struct Case {
  const char* shell;
  ExitRecord::Kind kind;
  const char* words;
};

TEST(Supervisor, SaysHowAJobEnded) {
  for (const Case& c :
       {Case{"exit 0", ExitRecord::Kind::success, "succeeded"},
        Case{"exit 3", ExitRecord::Kind::exit_code, "exit code 3"},
        Case{"kill -SEGV $$", ExitRecord::Kind::signal, "killed by signal 11 (segmentation fault)"},
        Case{"kill -KILL $$", ExitRecord::Kind::signal, "killed by signal 9 (killed)"}}) {
    Scratch scratch;
    Machine machine(scratch);
    machine.start(c.shell);
    ExitRecord exit = machine.wait_for_exit();
    EXPECT_EQ(exit.kind, c.kind) << c.shell;
    EXPECT_TRUE(exit.words.starts_with(c.words)) << exit.words;
  }
}

TEST(Supervisor, NothingIsLeftOfAnAttemptThatIsForgotten) {
  Scratch scratch;
  Machine machine(scratch);
  machine.start("exit 0");
  machine.forget();
  EXPECT_FALSE(std::filesystem::is_empty(scratch / "attempts")) << "its end is not known yet";
  machine.wait_for_exit();
  machine.forget();
  EXPECT_TRUE(std::filesystem::is_empty(scratch / "attempts"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "c3.sock"));
}

TEST(Supervisor, AProgramThatIsNotThereIsAnExitWithWords) {
  Scratch scratch;
  Machine machine(scratch);
  machine.start_program({"/no/such/program"});
  ExitRecord exit = machine.wait_for_exit();
  EXPECT_EQ(exit.kind, ExitRecord::Kind::start_failed);
  EXPECT_NE(exit.words.find("/no/such/program"), std::string::npos) << exit.words;
  EXPECT_NE(exit.words.find("No such file"), std::string::npos) << exit.words;
}

TEST(Supervisor, AStopWithGraceLetsTheJobTidyUp) {
  Scratch scratch;
  Machine machine(scratch);
  machine.start("trap 'echo tidy; exit 0' TERM; echo ready; while :; do sleep 0.05; done");
  machine.wait_for_log("ready");
  machine.stop();
  ExitRecord exit = machine.wait_for_exit();
  EXPECT_EQ(exit.kind, ExitRecord::Kind::stopped);
  EXPECT_EQ(exit.words, "stopped on request (exit code 0)");
  EXPECT_NE(machine.log().find("tidy"), std::string::npos);
}

TEST(Supervisor, AJobThatIgnoresTheStopIsKilledAfterTheGrace) {
  Scratch scratch;
  Machine machine(scratch);
  machine.start("trap '' TERM; echo ready; while :; do sleep 0.05; done", Millis{200});
  machine.wait_for_log("ready");
  machine.stop(StopMode::cancel);
  ExitRecord exit = machine.wait_for_exit();
  EXPECT_EQ(exit.kind, ExitRecord::Kind::cancelled);
  EXPECT_NE(exit.words.find("signal 9"), std::string::npos) << exit.words;
}

TEST(Supervisor, WhatAJobForkedTwiceEndsWithIt) {
  Scratch scratch;
  Machine machine(scratch);
  machine.start("(setsid sh -c 'trap \"\" TERM; echo hidden; sleep 1000' &) ; sleep 0.3; exit 0",
                Millis{200});
  machine.wait_for_log("hidden");
  EXPECT_EQ(machine.wait_for_exit().kind, ExitRecord::Kind::success);
  EXPECT_TRUE(machine.remains().empty());
}

TEST(Supervisor, OutlivesTheAgentAndIsAdopted) {
  Scratch scratch;
  Machine machine(scratch);
  machine.start("for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.1; done; exit 5");
  machine.wait_for_log("line 2");
  machine.restart_agent();
  EXPECT_EQ(machine.wait_for_exit().code, 5);
  for (int i = 1; i <= 8; ++i)
    EXPECT_NE(machine.log().find("line " + std::to_string(i)), std::string::npos);
}

TEST(Supervisor, KilledItselfTakesItsJobAndEverythingForkedAlong) {
  Scratch scratch;
  Machine machine(scratch);
  machine.start("(setsid sh -c 'sleep 1000' &) ; echo ready; sleep 1000");
  machine.wait_for_log("ready");
  ::kill(machine.supervisor(), SIGKILL);
  EXPECT_EQ(machine.wait_for_exit().kind, ExitRecord::Kind::supervisor_lost);
  EXPECT_TRUE(machine.lost());
  EXPECT_TRUE(machine.remains().empty());
}

TEST(Supervisor, KeepsTheTimeLimitAndTheLease) {
  {
    Scratch scratch;
    Machine machine(scratch);
    machine.start("sleep 1000", Millis{200}, Millis{300});
    EXPECT_EQ(machine.wait_for_exit().kind, ExitRecord::Kind::timed_out);
  }
  Scratch scratch;
  Machine machine(scratch);
  machine.start("sleep 1000", Millis{200}, {}, Millis{300});
  EXPECT_EQ(machine.wait_for_exit().kind, ExitRecord::Kind::stopped);
}

TEST(Supervisor, AFrozenJobWritesNothingUntilItIsThawed) {
  Scratch scratch;
  Machine machine(scratch);
  machine.start("i=0; while :; do i=$((i+1)); echo $i > count; done");
  machine.wait_for_file("count");
  machine.order(FreezeOrder{true});
  machine.wait_for_frozen(true);
  std::string before = machine.file("count");
  machine.order(FreezeOrder{true});  // a round trip later
  EXPECT_EQ(machine.file("count"), before);
  machine.order(FreezeOrder{false});
  machine.wait_for_frozen(false);
  machine.wait_for_file_to_change("count", before);
  machine.stop();
  machine.wait_for_exit();
}

TEST(Supervisor, AFrozenJobCanStillBeStopped) {
  Scratch scratch;
  Machine machine(scratch);
  machine.start("echo ready; sleep 1000", Millis{300});
  machine.wait_for_log("ready");
  machine.order(FreezeOrder{true});
  machine.stop();
  EXPECT_EQ(machine.wait_for_exit().kind, ExitRecord::Kind::stopped);
}

TEST(Supervisor, BoundsALogWithoutLineBreaks) {
  Scratch scratch;
  Machine machine(scratch);
  machine.start("head -c 200000000 /dev/zero; echo; echo the end");
  EXPECT_EQ(machine.wait_for_exit().kind, ExitRecord::Kind::success);
  std::uintmax_t size = 0;
  for (const auto& entry : fs::directory_iterator(scratch / "job/.zed/log"))
    size += entry.file_size();
  EXPECT_LT(size, std::uintmax_t{80} << 20);
  auto page = read_log(scratch / "job", -3);
  ASSERT_TRUE(page);
  ASSERT_GE(page->lines.size(), 2u);
  EXPECT_EQ(page->lines[page->lines.size() - 2].text, "the end");
}

TEST(JobLog, PutsLinesTogetherAcrossReadsAndKeepsTheSourcesApart) {
  Scratch scratch;
  fs::create_directories(scratch / "job");
  auto log = JobLogWriter::open(scratch / "job").value();
  ASSERT_TRUE(log.append(LogSource::output, "hel", {1000}));
  ASSERT_TRUE(log.append(LogSource::error, "bad\n", {1500}));
  ASSERT_TRUE(log.append(LogSource::output, "lo\nmore", {2000}));
  auto page = read_log(scratch / "job", 0).value();
  ASSERT_EQ(page.lines.size(), 2u);
  EXPECT_EQ(page.lines[0], (LogLine{{1500}, true, "bad"}));
  EXPECT_EQ(page.lines[1], (LogLine{{2000}, false, "hello"}));
  ASSERT_TRUE(log.finish({3000}));
  auto rest = read_log(scratch / "job", page.end).value();
  ASSERT_EQ(rest.lines.size(), 1u);
  EXPECT_EQ(rest.lines[0].text, "more");
  EXPECT_EQ(read_log(scratch / "job", -1).value().lines.size(), 1u);
  // Numbers that nobody means are answered, too.
  auto beyond = read_log(scratch / "job", INT64_MAX - 1).value();
  EXPECT_TRUE(beyond.lines.empty());
  EXPECT_EQ(beyond.end, INT64_MAX - 1);
  EXPECT_EQ(read_log(scratch / "job", INT64_MIN).value().lines.size(), 3u);
}

TEST(JobLog, DropsTheMiddleAndGoesOnCounting) {
  Scratch scratch;
  fs::create_directories(scratch / "job");
  auto log = JobLogWriter::open(scratch / "job", {{1000}, {3000}}).value();
  for (int i = 0; i < 500; ++i)
    ASSERT_TRUE(log.append(LogSource::output, "line " + std::to_string(i) + "\n", {0}));
  EXPECT_EQ(read_log(scratch / "job", 0).value().lines[0].text, "line 0");
  EXPECT_EQ(read_log(scratch / "job", -1).value().lines[0].text, "line 499");
  auto gone = read_log(scratch / "job", 2000).value();
  EXPECT_GT(gone.offset, 2000);  // taken to the next line that is still there
}

TEST(JobLog, ATornLastLineIsEnded) {
  Scratch scratch;
  fs::create_directories(scratch / "job/.zed/log");
  std::ofstream(scratch / "job/.zed/log/00000000000000000000.log") << "torn";
  auto log = JobLogWriter::open(scratch / "job").value();
  ASSERT_TRUE(log.append(LogSource::output, "next\n", {0}));
  auto page = read_log(scratch / "job", 0).value();
  ASSERT_EQ(page.lines.size(), 2u);
  EXPECT_EQ(page.lines[1].text, "next");
}

TEST(JobLog, FollowsNoLinkThatAJobPutThere) {
  const std::string first = "00000000000000000000.log";
  Scratch scratch;
  fs::create_directories(scratch / "job");
  fs::create_directories(scratch / "outside/log");
  std::ofstream(scratch / "outside/secret") << "secret\n";

  fs::create_directory_symlink(scratch / "outside", scratch / "job/.zed");
  EXPECT_EQ(JobLogWriter::open(scratch / "job").error().code, ErrorCode::io);
  EXPECT_EQ(read_log(scratch / "job", 0).error().code, ErrorCode::io);
  EXPECT_TRUE(fs::is_empty(scratch / "outside/log"));

  fs::remove(scratch / "job/.zed");
  fs::create_directories(scratch / "job/.zed");
  fs::create_directory_symlink(scratch / "outside/log", scratch / "job/.zed/log");
  EXPECT_EQ(JobLogWriter::open(scratch / "job").error().code, ErrorCode::io);
  EXPECT_TRUE(fs::is_empty(scratch / "outside/log"));

  // A segment that is a link is none: its place is taken, its target is left alone and never shown.
  fs::remove(scratch / "job/.zed/log");
  fs::create_directories(scratch / "job/.zed/log");
  fs::create_symlink(scratch / "outside/secret", scratch / "job/.zed/log" / first);
  EXPECT_EQ(read_log(scratch / "job", 0).error().code, ErrorCode::not_found);
  auto log = JobLogWriter::open(scratch / "job").value();
  ASSERT_TRUE(log.append(LogSource::output, "mine\n", {0}));
  std::ifstream secret(scratch / "outside/secret");
  std::string text;
  std::getline(secret, text, '\0');
  EXPECT_EQ(text, "secret\n");
  EXPECT_EQ(read_log(scratch / "job", 0).value().lines.at(0).text, "mine");
}

TEST(JobLog, StaysInItsFolderWhateverTheJobDoesToTheName) {
  Scratch scratch;
  fs::create_directories(scratch / "job");
  fs::create_directories(scratch / "outside/log");
  auto log = JobLogWriter::open(scratch / "job", {{100}, {3000}}).value();
  ASSERT_TRUE(log.append(LogSource::output, "one\n", {0}));
  fs::rename(scratch / "job/.zed", scratch / "job/moved");
  fs::create_directory_symlink(scratch / "outside", scratch / "job/.zed");
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(log.append(LogSource::output, "and many more lines\n", {0}));
  EXPECT_TRUE(fs::is_empty(scratch / "outside/log"));
  EXPECT_FALSE(fs::is_empty(scratch / "job/moved/log"));
}

// ---- control groups -----------------------------------------------------------------------------

TEST(Supervisor, EndsWhatShedItsEnvironmentAndItsSession) {
  if (auto group = JobCgroup::make("test"); !group || !group->remove())
    GTEST_SKIP() << "this machine lets us make no cgroup";
  Scratch scratch;
  Machine machine(scratch);
  machine.start("setsid env -i /bin/sh -c 'trap \"\" TERM HUP; echo $$ > child; "
                "while :; do sleep 0.2; done' & while [ ! -s child ]; do sleep 0.05; done; "
                "cat /proc/self/cgroup > group; echo ready; wait");
  machine.wait_for_file("group");
  EXPECT_NE(machine.file("group").find("zed-job-"), std::string::npos);
  const pid_t child = static_cast<pid_t>(std::stol(machine.file("child")));
  ASSERT_EQ(::kill(child, 0), 0);
  ::kill(machine.supervisor(), SIGKILL);
  EXPECT_EQ(machine.wait_for_exit().kind, ExitRecord::Kind::supervisor_lost);
  EXPECT_TRUE(machine.lost());
  EXPECT_FALSE(identity_of(child)) << "it was still there when the GPU was offered again";
}

TEST(JobCgroup, IsNoneOfAnybodyElses) {
  for (const char* path : {"/", "/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/tmp/zed-job-x",
                           "/sys/fs/cgroup/unified/../zed-job-x", "zed-job-x", ""})
    EXPECT_FALSE(JobCgroup::find(path)) << path;
}

// ---- whose processes a job's are ----------------------------------------------------------------

TEST(JobUser, IsNeverRootAndMustExist) {
  EXPECT_EQ(find_job_user("root").error().code, ErrorCode::refused);
  auto none = find_job_user("zed-no-such-user");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::not_found);
  EXPECT_NE(none.error().hint.find("useradd"), std::string::npos);
  if (::geteuid() == 0) {
    EXPECT_EQ(user_of_jobs("root").error().code, ErrorCode::refused);
    EXPECT_EQ(user_of_jobs("nobody").value()->uid, find_job_user("nobody")->uid);
  } else {
    EXPECT_FALSE(user_of_jobs(std::nullopt).value());
    EXPECT_EQ(user_of_jobs("nobody").error().code, ErrorCode::refused);
  }
}

TEST(JobUser, GetsTheFolderAndNothingBeyondIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  auto user = find_job_user("nobody");
  if (!user) GTEST_SKIP() << "this machine has no user nobody";
  Scratch scratch;
  fs::create_directories(scratch / "job/sub");
  std::ofstream(scratch / "job/sub/file") << "x";
  std::ofstream(scratch / "outside") << "x";
  std::ofstream(scratch / "linked") << "x";
  fs::create_symlink(scratch / "outside", scratch / "job/link");
  fs::create_hard_link(scratch / "linked", scratch / "job/hard");
  net::Fd folder(::open((scratch / "job").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(give_to(folder.get(), *user));
  auto owner = [](const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    return status.st_uid;
  };
  for (const char* given : {"job", "job/sub", "job/sub/file", "job/link"})
    EXPECT_EQ(owner(scratch / given), user->uid) << given;
  for (const char* kept : {"outside", "linked", "job/hard"})
    EXPECT_EQ(owner(scratch / kept), 0U) << kept;
}

TEST(Supervisor, RunsAJobOfARootAgentAsItsUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  auto user = find_job_user("nobody");
  if (!user) GTEST_SKIP() << "this machine has no user nobody";
  Scratch scratch;
  fs::permissions(scratch / ".", fs::perms(0711));
  Machine machine(scratch);
  machine.user = *user;
  machine.start("echo uid $(id -u) groups $(id -G); echo mine > file; "
                "kill -9 $PPID && echo killed the supervisor; exit 0");
  EXPECT_EQ(machine.wait_for_exit().kind, ExitRecord::Kind::success);
  const std::string log = log_text(scratch / "job");
  EXPECT_NE(log.find("uid " + std::to_string(user->uid) + " groups " + std::to_string(user->gid)),
            std::string::npos)
      << log;
  EXPECT_EQ(log.find("killed the supervisor"), std::string::npos);
  EXPECT_EQ(machine.file("file"), "mine\n");
}

TEST(JobPath, StaysInsideTheJobsFolder) {
  Scratch scratch;
  fs::create_directories(scratch / "job/ckpt");
  std::ofstream(scratch / "job/ckpt/a") << "x";
  fs::create_symlink("/etc", scratch / "job/link");
  EXPECT_TRUE(check_job_path(scratch / "job", "ckpt/a"));
  EXPECT_EQ(check_job_path(scratch / "job", "ckpt/b").error().code, ErrorCode::not_found);
  for (const char* path : {"../job/ckpt/a", "/etc/passwd", "ckpt/../../x", "link/passwd"})
    EXPECT_EQ(check_job_path(scratch / "job", path).error().code, ErrorCode::invalid) << path;
}

/// A job's end of ZED_SOCKET, blocking.
class JobEnd {
public:
  JobEnd(net::Loop& loop, const std::string& path)
      : loop_(loop), socket_(net::connect_unix(path).value()) {}
  std::string ask(const std::string& line) {
    EXPECT_EQ(::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(line.size()));
    std::string reply;
    loop_.run_until(
        [&] {
          char buffer[4096];
          ssize_t n = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
          if (n > 0) reply.append(buffer, static_cast<std::size_t>(n));
          wake_.start(Millis{5}, [] {});
          return reply.find('\n') != std::string::npos || n == 0;
        },
        seconds(5));
    return reply;
  }
  bool is_closed() {
    bool closed = false;
    loop_.run_until(
        [&] {
          char byte = 0;
          const ssize_t n = ::recv(socket_.get(), &byte, 1, MSG_DONTWAIT);
          closed = n == 0 || (n < 0 && errno == ECONNRESET);
          wake_.start(Millis{5}, [] {});
          return closed;
        },
        seconds(5));
    return closed;
  }

private:
  net::Loop& loop_;
  net::Timer wake_{loop_};
  net::Fd socket_;
};

TEST(JobSocket, ReadsRequestsAndRefusesGarbage) {
  Scratch scratch;
  fs::create_directories(scratch / "job");
  std::ofstream(scratch / "job/a.npz") << "x";
  net::Loop loop;
  std::uint64_t next = 0;
  std::optional<env::CheckpointRequest> asked;
  std::unique_ptr<JobSocket> socket;
  JobSocketHandlers handlers;
  handlers.connected = [](std::uint64_t) {};
  handlers.disconnected = [](std::uint64_t) {};
  handlers.stopped = [](std::uint64_t) {};
  handlers.checkpoint = [&](std::uint64_t connection, env::CheckpointRequest request) {
    asked = std::move(request);
    env::CheckpointReply reply;
    reply.number = asked->number;
    reply.seq = 15;
    Snapshot snapshot;
    snapshot.name = "epoch-15";
    reply.result = snapshot;
    socket->answer(connection, reply);
  };
  Generation generation{{1, {}}, 3};
  socket = JobSocket::open(
               loop, scratch / "j.sock", std::nullopt,
               [&] {
                 JobGreeting greeting;
                 greeting.job = "train";
                 greeting.generation = generation;
                 greeting.checkpoint = "epoch-14";
                 greeting.directory = scratch / "job";
                 return greeting;
               },
               next, std::move(handlers))
               .value();
  JobEnd job(loop, scratch / "j.sock");
  std::string g = "\"generation\":\"" + generation.str() + "\"";
  EXPECT_NE(job.ask("{\"v\":1,\"op\":\"hello\"," + g + "}\n").find("\"epoch-14\""),
            std::string::npos);
  // Each closes its connection, and more of them than connections are allowed harm nobody.
  for (int i = 0; i < 10; ++i)
    for (const auto& [garbage, answer] : std::map<std::string, std::string>{
             {"\x01\x02garbage\n", "\"ok\":false"},
             {std::string(70'000, 'x') + "\n", "longer than"},
             {"{\"v\":2,\"op\":\"hello\"," + g + "}\n", "\\\"v\\\":1"},
             {"17\n", "\\\"v\\\":1"}}) {
      JobEnd vandal(loop, scratch / "j.sock");
      EXPECT_NE(vandal.ask(garbage).find(answer), std::string::npos) << garbage.substr(0, 40);
      EXPECT_TRUE(vandal.is_closed());
    }
  std::string request = "{\"v\":1,\"op\":\"checkpoint\"," + g +
                        ",\"request\":7,\"deadline_ms\":99,\"epoch\":15,\"metrics\":{\"loss\":0.5,"
                        "\"bad\":\"NaN\"},\"paths\":[\"a.npz\"]}\n";
  EXPECT_NE(job.ask(request).find("\"snapshot\":\"epoch-15\""), std::string::npos);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->number, 7u);
  EXPECT_EQ(asked->metrics.at("loss"), 0.5);
  std::string outside = "{\"v\":1,\"op\":\"checkpoint\"," + g +
                        ",\"request\":8,\"deadline_ms\":99,\"paths\":[\"../../etc/passwd\"]}\n";
  const std::string refused = job.ask(outside);
  EXPECT_NE(refused.find("leaves the job's folder\""), std::string::npos) << refused;
  EXPECT_NE(refused.find("\"hint\":\"paths of a checkpoint"), std::string::npos) << refused;
  for (const char* number : {"0", "-1", "9007199254740992", "7.5"})
    EXPECT_NE(job.ask("{\"v\":1,\"op\":\"checkpoint\"," + g + ",\"request\":" + number +
                      ",\"deadline_ms\":99}\n")
                  .find("\"ok\":false"),
              std::string::npos)
        << number;
  EXPECT_EQ(asked->number, 7u);
}

}  // namespace
}  // namespace zed::proc

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "supervise") {
    zed::configure_log("supervisor", zed::LogLevel::info);
    return zed::proc::supervise(zed::proc::AttemptFolder(argv[2]));
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
