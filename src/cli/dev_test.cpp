// zedctl dev with daemons that are stand-ins: starting, finding, killing, stopping, stale files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.hpp"
#include "cli/dev_processes.hpp"
#include "cli/testing.hpp"
#include "proc/launch.hpp"

namespace zed::cli {
namespace {

namespace fs = std::filesystem;
using testing::Child;
using ::testing::HasSubstr;
using testing::Outcome;
using testing::TempFolder;

constexpr const char* profile = R"({"schema":1,"controller":{"host":"b","lost_after":7},
  "nodes":[{"name":"a","pool":"tank","gpus":"rtx-4090"},{"name":"b","pool":"nvme","gpus":"x"}]})";

class Dev : public ::testing::Test {
protected:
  Dev() {
    // Hard links would do, were the temporary folder always on the same file system.
    fs::create_directory(folder_ / "bin");
    fs::copy_file(ZEDCTL, folder_ / "bin/zedctl");
    fs::copy_file(ZED_FAKE_DAEMON, folder_ / "bin/zed-controller");
    fs::copy_file(ZED_FAKE_DAEMON, folder_ / "bin/zed-agent");
    fs::create_directory(folder_ / "run");
    folder_.file("p.json", profile);
  }
  ~Dev() override { run({"dev", "down", "--dir", dir()}); }

  std::string dir() const { return (folder_ / "fleet").string(); }
  fs::path state(const std::string& node) const {
    return node == "controller" ? folder_ / "fleet/controller" : folder_ / "fleet/nodes" / node;
  }
  Outcome run(std::vector<std::string> arguments) const {
    Child::Options options;
    options.environment = {{"XDG_RUNTIME_DIR", (folder_ / "run").string()},
                           {"XDG_STATE_HOME", (folder_ / "state").string()},
                           {"PATH", "/usr/bin:/bin"}};
    return Child((folder_ / "bin/zedctl").string(), std::move(arguments), options).finish();
  }
  Outcome up() const { return run({"dev", "up", (folder_ / "p.json").string(), "--dir", dir()}); }
  std::optional<proc::ProcessIdentity> alive(const std::string& name) const {
    return running_in(state(name));
  }

  TempFolder folder_;
};

TEST_F(Dev, UpStartsEverythingAndZedctlFindsIt) {
  const Outcome started = up();
  ASSERT_EQ(started.status, 0) << started.err;
  EXPECT_THAT(started.out, HasSubstr("next: zedctl nodes"));
  EXPECT_TRUE(alive("controller") && alive("a") && alive("b"));
  const Outcome nodes = run({"nodes"});
  EXPECT_EQ(nodes.status, 0) << nodes.err;
  EXPECT_THAT(nodes.out, HasSubstr("a     up"));
  struct stat info {};
  ASSERT_EQ(::stat((folder_ / "fleet/cookie").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_EQ(info.st_size, 32);
  auto log = proc::read_file(folder_ / "fleet/log/a.log");
  ASSERT_TRUE(log);
  for (const char* word :
       {"name=a", "pool=tank", "store=dir", "gpus=rtx-4090", "controller=b@127.0.0.1:"})
    EXPECT_THAT(*log, HasSubstr(word));
  auto controller_log = proc::read_file(folder_ / "fleet/log/controller.log");
  ASSERT_TRUE(controller_log);
  EXPECT_THAT(*controller_log, HasSubstr("lost-after=7"));
}

TEST_F(Dev, UpAgainChangesNothing) {
  ASSERT_EQ(up().status, 0);
  const auto before = alive("a");
  const Outcome again = up();
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("already up"));
  EXPECT_EQ(alive("a"), before);
}

TEST_F(Dev, KillEndsOneMachineWholeAndUpBringsItBack) {
  fs::create_directories(state("a"));
  std::ofstream(state("a") / "job") << "";
  ASSERT_EQ(up().status, 0);
  // The supervisor, its shell and two sleeps, one with an empty environment.
  for (int i = 0; i < 500 && job_processes_of(state("a")).size() < 4; ++i)
    ::usleep(10'000);
  ASSERT_GE(job_processes_of(state("a")).size(), 4U);
  const auto jobs = job_processes_of(state("a"));
  const auto other = alive("b");
  const Outcome killed = run({"dev", "kill", "a"});
  EXPECT_EQ(killed.status, 0) << killed.err;
  EXPECT_FALSE(alive("a"));
  for (const auto& process : jobs)
    EXPECT_FALSE(proc::is_alive(process));
  EXPECT_EQ(alive("b"), other);
  EXPECT_THAT(run({"dev", "status"}).out, HasSubstr("not running"));
  fs::remove(state("a") / "job");
  EXPECT_EQ(run({"dev", "up", "--dir", dir()}).status, 0);
  EXPECT_TRUE(alive("a"));
  EXPECT_EQ(alive("b"), other);
}

TEST_F(Dev, KillKnowsItsMachines) {
  ASSERT_EQ(up().status, 0);
  const Outcome unknown = run({"dev", "kill", "contoller"});
  EXPECT_EQ(unknown.status, 4);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean controller?"));
  EXPECT_EQ(run({"dev", "kill", "controller"}).status, 0);
  EXPECT_FALSE(alive("controller"));
  EXPECT_TRUE(alive("a"));
}

TEST_F(Dev, DownEndsEvenTheDeafAndTheirJobs) {
  fs::create_directories(state("a"));
  std::ofstream(state("a") / "deaf") << "";
  std::ofstream(state("a") / "job") << "";
  ASSERT_EQ(up().status, 0);
  for (int i = 0; i < 500 && job_processes_of(state("a")).size() < 4; ++i)
    ::usleep(10'000);
  const auto jobs = job_processes_of(state("a"));
  const Outcome down = run({"dev", "down"});
  EXPECT_EQ(down.status, 0) << down.err;
  EXPECT_THAT(down.out, HasSubstr("stay in " + dir()));
  EXPECT_FALSE(alive("controller") || alive("a") || alive("b"));
  for (const auto& process : jobs)
    EXPECT_FALSE(proc::is_alive(process));
  EXPECT_EQ(run({"nodes"}).status, 1);
  EXPECT_THAT(run({"dev", "down", "--dir", dir()}).out, HasSubstr("nothing was running"));
}

TEST_F(Dev, ADaemonThatEndsSaysWhy) {
  fs::create_directories(state("b"));
  std::ofstream(state("b") / "fail") << "";
  const Outcome failed = up();
  EXPECT_EQ(failed.status, 1);
  EXPECT_THAT(failed.err, HasSubstr("port in use"));
  EXPECT_THAT(failed.err, HasSubstr("log/b.log"));
  EXPECT_FALSE(alive("controller") || alive("a") || alive("b"));
  EXPECT_EQ(run({"dev", "status", "--dir", dir()}).status, 4);
  EXPECT_EQ(run({"nodes"}).status, 1) << "zedctl goes to no half of a fleet";
  fs::remove(state("b") / "fail");
  EXPECT_EQ(up().status, 0);
}

TEST_F(Dev, OneThatCannotStartLeavesAFleetThatRunsAlone) {
  ASSERT_EQ(up().status, 0);
  ASSERT_EQ(run({"dev", "kill", "b"}).status, 0);
  std::ofstream(state("b") / "fail") << "";
  EXPECT_EQ(up().status, 1);
  EXPECT_TRUE(alive("controller") && alive("a"));
  EXPECT_EQ(run({"nodes"}).status, 0);
}

TEST_F(Dev, AStalePidFileIsNobody) {
  // Alive by number, but started at another time: the pid was given to someone else.
  auto identity = *proc::identity_of(::getpid());
  identity.start_ticks -= 1;
  fs::create_directories(state("a"));
  std::ofstream(state("a") / "pid.json") << to_json(to_value(identity));
  EXPECT_FALSE(alive("a"));
  identity.start_ticks += 1;
  identity.boot = "another boot";
  std::ofstream(state("a") / "pid.json") << to_json(to_value(identity));
  EXPECT_FALSE(alive("a"));
  for (const char* text : {"", "{", "[]", R"({"boot":"x","pid":-1})", R"({"pid":1})"}) {
    std::ofstream(state("a") / "pid.json") << text;
    EXPECT_FALSE(alive("a")) << text;
  }
  ASSERT_EQ(up().status, 0);
  EXPECT_TRUE(alive("a"));
}

TEST_F(Dev, AnotherProfileIsRefusedWhileOneRuns) {
  ASSERT_EQ(up().status, 0);
  folder_.file("other.json", R"({"nodes":[{"name":"c","gpus":"rtx-4090"}]})");
  const Outcome other = run({"dev", "up", (folder_ / "other.json").string(), "--dir", dir()});
  EXPECT_EQ(other.status, 5);
  EXPECT_TRUE(alive("a"));
}

TEST_F(Dev, NothingThereIsNotFound) {
  EXPECT_EQ(run({"dev", "status"}).status, 4);
  EXPECT_EQ(run({"dev", "down"}).status, 4);
  EXPECT_EQ(run({"dev", "up", "/nonexistent.json"}).status, 4);
}

TEST_F(Dev, ARuntimeFolderOfOthersIsNotTrusted) {
  fs::create_directory(folder_ / "run/zed-dev");
  ::chmod((folder_ / "run/zed-dev").c_str(), 0777);
  EXPECT_EQ(up().status, 5);
}

TEST_F(Dev, JsonNamesEveryProcess) {
  ASSERT_EQ(up().status, 0);
  auto value = parse_json(run({"dev", "status", "--json"}).out);
  ASSERT_TRUE(value);
  ASSERT_NE(value->find("processes"), nullptr);
  EXPECT_EQ(value->find("processes")->as_list()->size(), 3U);
}

}  // namespace
}  // namespace zed::cli
