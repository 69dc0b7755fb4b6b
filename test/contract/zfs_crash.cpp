#include "contract/zfs_crash.hpp"

#include <csignal>
#include <cstdio>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/zfs/zfs_store.hpp"

namespace zed::contract {
namespace {

using store::zfs::Arguments;
using store::zfs::Child;
using store::zfs::Commands;
using store::zfs::Output;

bool only_looks(const Arguments& arguments) {
  const std::string& verb = arguments.at(1);
  for (const char* look : {"get", "list", "send", "version", "sync", "events", "bookmarks"})
    if (verb == look) return true;
  return false;
}

/// Used on one thread, of a process that has no other work.
class LethalCommands final : public Commands {
public:
  explicit LethalCommands(int allowed)
      : commands_(store::zfs::make_system_commands()), left_(allowed) {}

  Result<Output> run(const Arguments& arguments, std::string_view input) override {
    count(arguments);
    return commands_->run(arguments, input);
  }
  Result<std::unique_ptr<Child>> start(const Arguments& arguments, Pipe pipe) override {
    count(arguments);
    return commands_->start(arguments, pipe);
  }

private:
  void count(const Arguments& arguments) {
    if (only_looks(arguments) || left_-- > 0) return;
    ::kill(::getpid(), SIGKILL);
    ::pause();
  }

  std::unique_ptr<Commands> commands_;
  int left_;
};

/// Of the child: its exit status.
int live(const std::string& root, int allowed, const std::function<Status(env::Store&)>& work) {
  auto store = store::open_zfs_store(root, std::make_unique<LethalCommands>(allowed), true);
  Status done = store ? work(**store) : Status(fail(store.error()));
  if (!done) std::fprintf(stderr, "the agent to be killed: %s\n", done.error().describe().c_str());
  return done ? 0 : 1;
}

}  // namespace

Ending until_killed(ZfsSubject& subject, int allowed,
                    const std::function<Status(env::Store&)>& work) {
  subject.close();
  pid_t pid = ::fork();
  if (pid == 0) ::_exit(live(subject.root(), allowed, work));
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  subject.restart();
  bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  EXPECT_TRUE(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << "status " << status;
  return killed ? Ending::killed : Ending::done;
}

}  // namespace zed::contract
