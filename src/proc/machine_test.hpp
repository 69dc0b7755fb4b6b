#pragma once
// A machine's attempts for the tests of this room: real processes, real supervisors. The test
// program is its own `zed-agent supervise`.

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "net/socket.hpp"
#include "proc/attempts.hpp"
#include "proc/job_log.hpp"
#include "proc/job_user.hpp"
#include "proc/process_tree.hpp"
#include "proc/setup_folder.hpp"

namespace zed::proc {

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

inline std::string log_text(const fs::path& job) {
  std::string text;
  std::int64_t offset = 0;
  for (;;) {
    auto page = read_log(job, offset);
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

  // Of jobs that start from now on:
  std::optional<JobUser> user;      ///< none: as we are
  std::optional<env::Setup> setup;  ///< its key is "key"
  std::uint64_t counter = 3;        ///< of their generation

  /// A new run of the agent: what runs is adopted.
  void restart_agent() {
    attempts_.reset();
    setting_up_ = false;
    AttemptHandlers handlers;
    handlers.setting_up = [this](const JobId&, const Generation&) { setting_up_ = true; };
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
    attempt.generation = {{1, {}}, counter};
    exit_.reset();
    started_ = setting_up_ = false;
    launch.request.argv = std::move(argv);
    launch.request.grace = grace;
    launch.request.time_left = time_left;
    launch.request.lease = lease;
    launch.directory = scratch_ / "job";
    if (user) {
      launch.uid = user->uid;
      launch.gid = user->gid;
      net::Fd folder(::open(launch.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      ASSERT_TRUE(give_to(folder.get(), *user));
    }
    launch.control_socket = scratch_ / ("c" + std::to_string(counter) + ".sock");
    launch.environment = {{"PATH", "/usr/bin:/bin"},
                          {"ZED_JOB_ID", attempt.job.str()},
                          {"ZED_GENERATION", attempt.generation.str()}};
    if (setup) {
      launch.request.setup = setup;
      launch.setup_folder = scratch_ / "setup/key";
      ASSERT_TRUE(make_setup_folder(launch.setup_folder, user));
      std::string& path = launch.environment["PATH"];
      path = setup_search_path(launch.setup_folder, path);
      launch.environment["ZED_SETUP_DIR"] = launch.setup_folder + "/files";
    }
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
  void wait_for_setup() {
    ASSERT_TRUE(loop_.run_until([&] { return setting_up_; }, seconds(10)));
  }
  bool has_started() const { return started_; }
  ExitRecord wait_for_exit() {
    EXPECT_TRUE(loop_.run_until([&] { return exit_.has_value(); }, seconds(30)));
    return exit_.value_or(ExitRecord{});
  }
  void forget() { attempts_->forget(job_, generation_); }
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
  bool setting_up_ = false;
  bool lost_ = false;
  bool frozen_ = false;
  std::optional<ExitRecord> exit_;
};

}  // namespace zed::proc
