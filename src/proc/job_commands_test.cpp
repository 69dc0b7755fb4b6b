// Real processes beside a pretended job.

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/base64.hpp"
#include "proc/job_commands.hpp"
#include "proc/job_user.hpp"

namespace zed::proc {
namespace {

namespace fs = std::filesystem;

class Commands : public testing::Test {
protected:
  Commands() {
    std::string name = (fs::temp_directory_path() / "zed-commands-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    launch_.directory = folder_;
    launch_.environment = {{"PATH", "/usr/bin:/bin"}, {"ZED_JOB", "train"}};
    question_.command = std::string(32, 'a');
    question_.job.bytes[0] = 7;
  }
  ~Commands() override {
    std::error_code error;
    fs::remove_all(folder_, error);
  }

  void start(std::vector<std::string> argv) {
    question_.argv = std::move(argv);
    auto started = commands_.start(launch_, question_, now_);
    ASSERT_TRUE(started) << started.error().describe();
  }
  TendCommand turn() const {
    TendCommand turn;
    turn.command = question_.command;
    turn.offset = static_cast<std::int64_t>(output_.size());
    turn.input_offset = given_;
    return turn;
  }
  CommandState tend(const TendCommand& turn) {
    auto state = commands_.tend(turn, now_);
    EXPECT_TRUE(state) << state.error().describe();
    if (!state) return {};
    output_ += from_base64(state->data, 1 << 20).value();
    given_ = state->input_taken;
    return *state;
  }
  /// Reads until it is over.
  CommandState finish() {
    CommandState state;
    for (int turns = 0; turns < 200 && !state.over; ++turns)
      state = tend(turn());
    EXPECT_TRUE(state.over);
    return state;
  }

  std::string folder_;
  Launch launch_;
  StartCommand question_;
  JobCommands commands_;
  Instant now_{1'000'000};
  std::string output_;
  std::int64_t given_ = 0;
};

TEST_F(Commands, RunsInTheJobsFolderWithItsEnvironment) {
  std::ofstream(fs::path(folder_) / "epoch-3.npz") << "weights";
  start({"sh", "-c", "ls; echo $ZED_JOB; echo oops >&2; exit 3"});
  CommandState state = finish();
  EXPECT_EQ(output_, "epoch-3.npz\ntrain\noops\n");
  EXPECT_EQ(state.status, 3);
  EXPECT_EQ(state.words, "exit status 3");
}

TEST_F(Commands, WhatDoesNotExistIsAnErrorOfTheStart) {
  question_.argv = {"no-such-program"};
  auto started = commands_.start(launch_, question_, now_);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::not_found);
}

TEST_F(Commands, TakesInputOnceHoweverOftenItComes) {
  start({"cat"});
  TendCommand give = turn();
  give.input = to_base64("hello ");
  tend(give);
  ASSERT_TRUE(commands_.tend(give, now_));  // the same again: its answer was lost
  TendCommand rest = turn();
  rest.input_offset = 6;
  rest.input = to_base64("world");
  rest.input_ends = true;
  tend(rest);
  finish();
  EXPECT_EQ(output_, "hello world");
}

TEST_F(Commands, ALongOutputHoldsTheCommandBackAndNothingIsLost) {
  start({"sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x"});
  finish();
  EXPECT_EQ(output_, std::string(1'000'000, 'x'));
}

TEST_F(Commands, ATerminalIsOne) {
  question_.terminal = true;
  question_.columns = 123;
  start({"sh", "-c", "tty >/dev/null && stty size"});
  finish();
  EXPECT_EQ(output_, "24 123\r\n");
}

TEST_F(Commands, OfARootAgentsJobIsTheJobsUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  auto user = find_job_user("nobody");
  if (!user) GTEST_SKIP() << "this machine has no user nobody";
  launch_.uid = user->uid;
  launch_.gid = user->gid;
  net::Fd folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(give_to(folder.get(), *user));
  start({"sh", "-c", "id -u; id -G; kill -0 $PPID 2>/dev/null && echo may signal the agent; :"});
  finish();
  EXPECT_EQ(output_, std::to_string(user->uid) + "\n" + std::to_string(user->gid) + "\n");
}

TEST_F(Commands, IsNotStartedWhereItsUserMayNotBe) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  auto user = find_job_user("nobody");
  if (!user) GTEST_SKIP() << "this machine has no user nobody";
  launch_.uid = user->uid;  // the folder stays root's
  question_.argv = {"true"};
  auto started = commands_.start(launch_, question_, now_);
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().describe().find("Permission denied"), std::string::npos);
}

TEST_F(Commands, EndsWithItsAttempt) {
  start({"sh", "-c", "echo ready; sleep 600"});
  while (output_.empty())
    tend(turn());
  commands_.end(question_.job, question_.generation);
  EXPECT_EQ(finish().words, "killed by signal 9 (killed)");
}

TEST_F(Commands, WhatItLeavesInTheBackgroundKeepsNobodyWaiting) {
  start({"sh", "-c", "sleep 600 & echo done"});
  EXPECT_EQ(finish().status, 0);
  EXPECT_EQ(output_, "done\n");
}

TEST_F(Commands, UntendedForAMinuteItIsForgotten) {
  start({"sleep", "600"});
  commands_.sweep(now_ + seconds(59));
  EXPECT_TRUE(commands_.tend(turn(), now_));
  commands_.sweep(now_ + seconds(61));
  auto gone = commands_.tend(turn(), now_);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::not_found);
}

TEST_F(Commands, ThereIsABoundOnThem) {
  for (int i = 0; i < 16; ++i) {
    question_.command = std::string(30, 'b') + std::to_string(10 + i);
    start({"sleep", "600"});
  }
  question_.command = std::string(32, 'c');
  auto more = commands_.start(launch_, question_, now_);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::busy);
}

}  // namespace
}  // namespace zed::proc
