// What a job's `setup` does before it, and when it need not be done again.

#include "proc/setup_folder.hpp"

#include <sys/stat.h>

#include "proc/machine_test.hpp"

namespace zed::proc {
namespace {

env::Setup setup_of(const std::string& command, Millis timeout = seconds(30)) {
  env::Setup setup;
  setup.command = command;
  setup.node = "0123456789abcdef";
  setup.timeout = timeout;
  return setup;
}

/// How often a setup that ends in `counted` ran.
constexpr char counted[] = "; echo once >> $ZED_SETUP_DIR/count";
std::size_t runs(const Scratch& scratch) {
  std::ifstream file(scratch / "setup/key/files/count");
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line);)
    ++lines;
  return lines;
}

ExitRecord run(Machine& machine, const std::string& shell) {
  ++machine.counter;
  machine.start(shell);
  return machine.wait_for_exit();
}

TEST(Setup, RunsBeforeTheJobAndOnceOnly) {
  Scratch scratch;
  Machine machine(scratch);
  machine.setup = setup_of(std::string("echo preparing") + counted);
  EXPECT_EQ(run(machine, "echo training").kind, ExitRecord::Kind::success);
  const std::string log = machine.log();
  EXPECT_LT(log.find("zed: setup: echo preparing"), log.find("\npreparing")) << log;
  EXPECT_LT(log.find("\npreparing"), log.find("\ntraining")) << log;
  EXPECT_EQ(run(machine, "echo again").kind, ExitRecord::Kind::success);
  EXPECT_NE(machine.log().find("zed: setup was done before on this node"), std::string::npos);
  EXPECT_EQ(runs(scratch), 1U);
}

TEST(Setup, ThatLeavesNothingInTheFolderIsDoneForAllJobs) {
  Scratch scratch;
  Machine machine(scratch);
  machine.setup = setup_of(std::string("touch came; rm came") + counted);
  run(machine, "true");
  fs::remove_all(scratch / "job");  // another job's folder
  fs::create_directories(scratch / "job");
  run(machine, "true");
  EXPECT_EQ(runs(scratch), 1U);
}

TEST(Setup, ThatLeavesFilesInTheFolderIsDoneForThatFolderAsItIsThen) {
  Scratch scratch;
  Machine machine(scratch);
  machine.setup = setup_of(std::string("echo program > built") + counted);
  run(machine, "cat built");
  run(machine, "cat built");
  EXPECT_EQ(runs(scratch), 1U);
  fs::remove_all(scratch / "job");  // another job's, or this one's rolled back to its beginning
  fs::create_directories(scratch / "job");
  EXPECT_EQ(run(machine, "cat built").kind, ExitRecord::Kind::success);
  EXPECT_EQ(runs(scratch), 2U);
  machine.setup->node = "another node, where the folder came to";
  run(machine, "cat built");
  EXPECT_EQ(runs(scratch), 3U);
}

TEST(Setup, ItsFailureIsTheJobsAndItRunsAgain) {
  Scratch scratch;
  Machine machine(scratch);
  machine.setup = setup_of("echo no network >&2; exit 7");
  for (int attempt = 0; attempt < 2; ++attempt) {
    const ExitRecord exit = run(machine, "echo trained > result");
    EXPECT_EQ(exit.kind, ExitRecord::Kind::exit_code);
    EXPECT_EQ(exit.words, "setup: exit code 7");
    EXPECT_EQ(exit.ran, Millis{0});
  }
  EXPECT_EQ(machine.file("result"), "");
  EXPECT_NE(machine.log().find("no network"), std::string::npos);
}

TEST(Setup, HasATimeLimitOfItsOwn) {
  Scratch scratch;
  Machine machine(scratch);
  machine.setup = setup_of("echo begun; sleep 1000", Millis{300});
  const ExitRecord exit = run(machine, "echo trained > result");
  EXPECT_EQ(exit.kind, ExitRecord::Kind::timed_out);
  EXPECT_TRUE(exit.words.starts_with("setup: ran out of its time limit")) << exit.words;
  EXPECT_EQ(machine.file("result"), "");
}

TEST(Setup, AStopDuringItEndsTheAttempt) {
  Scratch scratch;
  Machine machine(scratch);
  machine.setup = setup_of("trap 'exit 0' TERM; echo begun; while :; do sleep 0.05; done");
  machine.start("echo trained > result");
  machine.wait_for_log("\nbegun");
  machine.wait_for_setup();
  machine.stop();
  EXPECT_EQ(machine.wait_for_exit().kind, ExitRecord::Kind::stopped);
  EXPECT_EQ(machine.file("result"), "");
}

TEST(Setup, RunsAsTheUserOfItsJob) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  auto user = find_job_user("nobody");
  if (!user) GTEST_SKIP() << "this machine has no user nobody";
  Scratch scratch;
  // Of others, the way into the folder; what is in it is the job's.
  fs::permissions(scratch / ".", fs::perms::others_exec, fs::perm_options::add);
  Machine machine(scratch);
  machine.user = *user;
  machine.setup = setup_of("id -u > built && id -u > $ZED_SETUP_DIR/who");
  EXPECT_EQ(run(machine, "test -w built").kind, ExitRecord::Kind::success) << machine.log();
  EXPECT_EQ(machine.file("built"), std::to_string(user->uid) + "\n");
  struct stat info {};
  ASSERT_EQ(::stat((scratch / "setup/key/files/who").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, user->uid);
}

TEST(Setup, TheJobBeginsOnlyAfterIt) {
  Scratch scratch;
  Machine machine(scratch);
  machine.setup = setup_of("echo begun; while [ ! -e go ]; do sleep 0.02; done; rm go");
  machine.start("echo training; while :; do sleep 1; done");
  machine.wait_for_log("\nbegun");
  machine.wait_for_setup();
  EXPECT_FALSE(machine.has_started());
  machine.restart_agent();  // one that comes later hears the same
  machine.wait_for_setup();
  EXPECT_FALSE(machine.has_started());
  std::ofstream(scratch / "job/go") << "now";
  machine.wait_for_start();
  machine.wait_for_log("\ntraining");
  machine.stop();
  EXPECT_EQ(machine.wait_for_exit().kind, ExitRecord::Kind::stopped);
}

TEST(Setup, WhatItInstallsIsFoundByName) {
  Scratch scratch;
  Machine machine(scratch);
  machine.setup =
      setup_of("mkdir $ZED_SETUP_DIR/bin; printf '#!/bin/sh\\necho installed > result\\n' > "
               "$ZED_SETUP_DIR/bin/train-tool; chmod +x $ZED_SETUP_DIR/bin/train-tool; train-tool");
  machine.start_program({"train-tool"});
  EXPECT_EQ(machine.wait_for_exit().kind, ExitRecord::Kind::success) << machine.log();
  EXPECT_EQ(machine.file("result"), "installed\n");
}

Launch launch_in(const Scratch& scratch, const std::string& job) {
  fs::create_directories(scratch / job);
  Launch launch;
  launch.directory = scratch / job;
  launch.setup_folder = scratch / "setup/key";
  launch.request.setup = setup_of("make");
  EXPECT_TRUE(make_setup_folder(launch.setup_folder, std::nullopt));
  return launch;
}

TEST(SetupTurn, IsOneAttemptsAtATime) {
  Scratch scratch;
  auto first = SetupTurn::open(launch_in(scratch, "one"));
  auto second = SetupTurn::open(launch_in(scratch, "two"));
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(first->take());
  EXPECT_FALSE(second->take());
  first->begin();
  EXPECT_TRUE(first->finish());
  first->leave();
  EXPECT_TRUE(second->take());
  EXPECT_TRUE(second->is_done());
}

TEST(SetupTurn, FollowsNoLinkThatAJobLeft) {
  Scratch scratch;
  auto turn = SetupTurn::open(launch_in(scratch, "job"));
  ASSERT_TRUE(turn);
  std::ofstream(scratch / "precious") << "mine";
  fs::create_directories(scratch / "job/.zed");
  turn->begin();
  std::ofstream(scratch / "job/built") << "program";
  fs::create_symlink(scratch / "precious", scratch / "job/.zed/setup");
  EXPECT_TRUE(turn->finish());
  EXPECT_TRUE(turn->is_done());
  std::ifstream precious(scratch / "precious");
  std::string text;
  precious >> text;
  EXPECT_EQ(text, "mine");
}

TEST(SetupFolder, OldOnesGoUnlessTheyAreInUse) {
  Scratch scratch;
  auto used = SetupTurn::open(launch_in(scratch, "job"));
  ASSERT_TRUE(used);
  const fs::path setups = scratch / "setup";
  for (const char* key : {"old", "new"})
    ASSERT_TRUE(make_setup_folder(setups / key, std::nullopt));
  const timespec long_ago[2] = {{1, 0}, {1, 0}};
  for (const char* key : {"old", "key"})
    ASSERT_EQ(::utimensat(AT_FDCWD, (setups / key / "use").c_str(), long_ago, 0), 0);
  drop_unused_setups(setups, 1);
  EXPECT_TRUE(fs::exists(setups / "new"));
  EXPECT_TRUE(fs::exists(setups / "key"));  // an attempt has it
  EXPECT_FALSE(fs::exists(setups / "old"));
}

}  // namespace
}  // namespace zed::proc
