// Real processes, real supervisors. The test program is its own `zed-agent supervise`.

#include <gtest/gtest.h>

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
#include "proc/job_log.hpp"
#include "proc/job_socket.hpp"
#include "proc/process_tree.hpp"
#include "proc/supervisor.hpp"

namespace zed::proc {
namespace {

namespace fs = std::filesystem;

/// A folder that goes when the test ends.
class Scratch {
public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "zed-proc-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Scratch() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  fs::path operator/(const std::string& name) const { return path_ / name; }

private:
  fs::path path_;
};

std::string log_text(const fs::path& job) {
  std::string text;
  std::int64_t offset = 0;
  for (;;) {
    auto page = read_log(job / ".zed" / "log", offset);
    if (!page || page->end == offset) return text;
    for (const LogLine& line : page->lines)
      text += line.text + "\n";
    offset = page->end;
  }
}

/// One machine's attempts, driven on a loop of its own.
class Machine {
public:
  explicit Machine(const Scratch& scratch) : scratch_(scratch) {
    fs::create_directories(scratch_ / "job");
    fs::create_directories(scratch_ / "attempts");
    restart_agent();
  }

  /// A new run of the agent: what runs is adopted.
  void restart_agent() {
    attempts_.reset();
    AttemptHandlers handlers;
    handlers.started = [this](const JobId&, const Generation&) { started_ = true; };
    handlers.exited = [this](const JobId&, const Generation&, const ExitRecord& exit) {
      exit_ = exit;
    };
    handlers.frozen = [this](const JobId&, const Generation&, bool frozen) { frozen_ = frozen; };
    handlers.supervisor_lost = [this](const JobId&, const Generation&) { lost_ = true; };
    attempts_.emplace(loop_, workers_, fs::read_symlink("/proc/self/exe"), scratch_ / "attempts",
                      std::move(handlers));
    for (const auto& found : attempts_->find())
      attempts_->adopt(found);
  }

  void start(const std::string& shell, Millis grace = seconds(5),
             std::optional<Millis> time_left = {}, std::optional<Millis> lease = {}) {
    start_program({"/bin/sh", "-c", shell}, grace, time_left, lease);
  }

  void start_program(std::vector<std::string> argv, Millis grace = seconds(5),
                     std::optional<Millis> time_left = {}, std::optional<Millis> lease = {}) {
    Launch launch;
    Attempt& attempt = launch.request.attempt;
    attempt.job.bytes[0] = 7;
    attempt.dataset = DatasetName::parse("jobs/train").value();
    attempt.generation = {{1, {}}, 3};
    launch.request.argv = std::move(argv);
    launch.request.grace = grace;
    launch.request.time_left = time_left;
    launch.request.lease = lease;
    launch.directory = scratch_ / "job";
    launch.control_socket = scratch_ / "c.sock";
    launch.environment = {{"PATH", "/usr/bin:/bin"},
                          {"ZED_JOB_ID", attempt.job.str()},
                          {"ZED_GENERATION", attempt.generation.str()}};
    Status launched = fail(ErrorCode::timeout, "not launched");
    bool done = false;
    attempts_->launch(launch, [&](Status status) {
      launched = std::move(status);
      done = true;
    });
    ASSERT_TRUE(loop_.run_until([&] { return done; }, seconds(10)));
    ASSERT_TRUE(launched) << launched.error().describe();
    job_ = attempt.job;
    generation_ = attempt.generation;
  }

  void wait_for_log(const std::string& word) {
    ASSERT_TRUE(loop_.run_until(
        [&] { return log_text(scratch_ / "job").find(word) != std::string::npos || poll(); },
        seconds(20)))
        << log_text(scratch_ / "job");
  }
  std::string file(const std::string& name) const {
    std::ifstream stream((scratch_ / "job") / name);
    return std::string((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  }
  void wait_for_file(const std::string& name) { wait_for_file_to_change(name, ""); }
  void wait_for_file_to_change(const std::string& name, const std::string& from) {
    ASSERT_TRUE(loop_.run_until(
        [&] { return (!file(name).empty() && file(name) != from) || poll(); }, seconds(20)));
  }
  void wait_for_start() {
    ASSERT_TRUE(loop_.run_until([&] { return started_; }, seconds(10)));
  }
  ExitRecord wait_for_exit() {
    EXPECT_TRUE(loop_.run_until([&] { return exit_.has_value(); }, seconds(30)));
    return exit_.value_or(ExitRecord{});
  }
  void order(const Order& order) { EXPECT_TRUE(attempts_->order(job_, generation_, order)); }
  void wait_for_frozen(bool frozen) {
    ASSERT_TRUE(loop_.run_until([&] { return frozen_ == frozen; }, seconds(10)));
  }
  void stop(StopMode mode = StopMode::halt) { order(StopOrder{mode}); }
  pid_t supervisor() const {
    auto folder = AttemptFolder::of(scratch_ / "attempts", job_, generation_);
    return static_cast<pid_t>(folder.read_supervisor().value().pid);
  }
  std::vector<pid_t> remains() const {
    return processes_with_environment({"ZED_GENERATION=" + generation_.str()});
  }
  bool lost() const { return lost_; }
  std::string log() const { return log_text(scratch_ / "job"); }

private:
  /// Wakes the loop again soon: files do not announce themselves.
  bool poll() {
    wake_.start(Millis{10}, [] {});
    return false;
  }

  const Scratch& scratch_;
  net::Loop loop_;
  net::WorkerPool workers_{loop_, 2, 64};
  net::Timer wake_{loop_};
  std::optional<Attempts> attempts_;
  JobId job_;
  Generation generation_;
  bool started_ = false;
  bool lost_ = false;
  bool frozen_ = false;
  std::optional<ExitRecord> exit_;
};

struct Case {
  const char* shell;
  ExitRecord::Kind kind;
  const char* words;
};

TEST(Supervisor, SaysHowAJobEnded) {
  for (const Case& c :
       {Case{"exit 0", ExitRecord::Kind::success, "finished"},
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
  auto page = read_log(scratch / "job/.zed/log", -3);
  ASSERT_TRUE(page);
  ASSERT_GE(page->lines.size(), 2u);
  EXPECT_EQ(page->lines[page->lines.size() - 2].text, "the end");
}

TEST(JobLog, PutsLinesTogetherAcrossReadsAndKeepsTheSourcesApart) {
  Scratch scratch;
  auto log = JobLogWriter::open(scratch / "log").value();
  ASSERT_TRUE(log.append(LogSource::output, "hel", {1000}));
  ASSERT_TRUE(log.append(LogSource::error, "bad\n", {1500}));
  ASSERT_TRUE(log.append(LogSource::output, "lo\nmore", {2000}));
  auto page = read_log(scratch / "log", 0).value();
  ASSERT_EQ(page.lines.size(), 2u);
  EXPECT_EQ(page.lines[0], (LogLine{{1500}, true, "bad"}));
  EXPECT_EQ(page.lines[1], (LogLine{{2000}, false, "hello"}));
  ASSERT_TRUE(log.finish({3000}));
  auto rest = read_log(scratch / "log", page.end).value();
  ASSERT_EQ(rest.lines.size(), 1u);
  EXPECT_EQ(rest.lines[0].text, "more");
  EXPECT_EQ(read_log(scratch / "log", -1).value().lines.size(), 1u);
}

TEST(JobLog, DropsTheMiddleAndGoesOnCounting) {
  Scratch scratch;
  auto log = JobLogWriter::open(scratch / "log", {{1000}, {3000}}).value();
  for (int i = 0; i < 500; ++i)
    ASSERT_TRUE(log.append(LogSource::output, "line " + std::to_string(i) + "\n", {0}));
  EXPECT_EQ(read_log(scratch / "log", 0).value().lines[0].text, "line 0");
  EXPECT_EQ(read_log(scratch / "log", -1).value().lines[0].text, "line 499");
  auto gone = read_log(scratch / "log", 2000).value();
  EXPECT_GT(gone.offset, 2000);  // taken to the next line that is still there
}

TEST(JobLog, ATornLastLineIsEnded) {
  Scratch scratch;
  fs::create_directories(scratch / "log");
  std::ofstream(scratch / "log/00000000000000000000.log") << "torn";
  auto log = JobLogWriter::open(scratch / "log").value();
  ASSERT_TRUE(log.append(LogSource::output, "next\n", {0}));
  auto page = read_log(scratch / "log", 0).value();
  ASSERT_EQ(page.lines.size(), 2u);
  EXPECT_EQ(page.lines[1].text, "next");
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
  EXPECT_NE(job.ask(outside).find("leaves the job's folder"), std::string::npos);
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
