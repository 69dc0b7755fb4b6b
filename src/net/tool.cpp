#include "net/tool.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "base/text.hpp"
#include "net/exec.hpp"
#include "net/spawn.hpp"

namespace zed::net {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t longest_output = std::size_t{4} << 20;
constexpr std::array<const char*, 5> vendor_folders{"/usr/lib/wsl/lib", "/opt/rocm/bin",
                                                    "/usr/local/sbin", "/usr/sbin", "/sbin"};

bool is_program(const std::string& path) {
  std::error_code error;
  return ::access(path.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(path, error);
}

/// Our environment, in the C locale: a decimal comma would be read as the end of a field.
std::vector<std::string> environment_of_tools() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view text(*entry);
    if (!text.starts_with("LC_") && !text.starts_with("LANG")) entries.emplace_back(text);
  }
  entries.emplace_back("LC_ALL=C");
  return entries;
}

/// Children that were killed and have not gone: in an uninterruptible sleep. Each is looked at
/// again whenever a tool is run; while there are many, no more are started.
class Abandoned {
public:
  static constexpr std::size_t most = 8;
  static Abandoned& all() {
    static Abandoned abandoned;
    return abandoned;
  }
  void add(pid_t pid) {
    std::scoped_lock lock(mutex_);
    pids_.push_back(pid);
  }
  std::size_t reap() {
    std::scoped_lock lock(mutex_);
    std::erase_if(pids_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
    return pids_.size();
  }

private:
  std::mutex mutex_;
  std::vector<pid_t> pids_;
};

/// A child that is killed, with its group, unless it ended.
class Child {
public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    // A process that can die does so at once; one in an uninterruptible sleep is not waited for.
    if (!wait_until(SteadyClock::now() + std::chrono::milliseconds(200)))
      Abandoned::all().add(pid_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// The exit status, if it ends before `end`.
  std::optional<int> wait_until(SteadyClock::time_point end) {
    while (true) {
      int status = 0;
      pid_t got = ::waitpid(pid_, &status, WNOHANG);
      if (got == pid_ || (got < 0 && errno != EINTR)) {
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      if (SteadyClock::now() >= end) return std::nullopt;
      timespec step{0, 2'000'000};
      ::nanosleep(&step, nullptr);
    }
  }

private:
  pid_t pid_;
};

/// Reads both streams to their ends; false at the deadline.
Result<bool> read_to_end(Fd& out, Fd& err, ToolAnswer& answer, SteadyClock::time_point end,
                         const std::string& what) {
  std::array<char, 16384> buffer;
  while (out || err) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - SteadyClock::now());
    if (left.count() <= 0) return false;
    std::array<pollfd, 2> waits{pollfd{out.get(), POLLIN, 0}, pollfd{err.get(), POLLIN, 0}};
    int ready = ::poll(waits.data(), waits.size(), static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return fail(system_error(errno, what));
    if (ready <= 0) continue;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      Fd& stream = i == 0 ? out : err;
      std::string& text = i == 0 ? answer.out : answer.err;
      if (!stream || waits[i].revents == 0) continue;
      ssize_t got = ::read(stream.get(), buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        stream.reset();
        continue;
      }
      text.append(buffer.data(), static_cast<std::size_t>(got));
      if (text.size() > longest_output)
        return fail(ErrorCode::corrupt, what + ": it prints more than 4 MiB");
    }
  }
  return true;
}

}  // namespace

std::string find_tool(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_program(name) ? name : std::string();
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path != nullptr ? path : "/usr/bin:/bin", ':'))
    if (std::string program = folder + "/" + name; !folder.empty() && is_program(program))
      return program;
  for (const char* folder : vendor_folders)
    if (std::string program = std::string(folder) + "/" + name; is_program(program)) return program;
  return {};
}

Result<ToolAnswer> run_tool(const std::vector<std::string>& command, Millis deadline) {
  std::string what = "run " + command.front();
  if (command.size() > 1) what += " " + command[1].substr(0, command[1].find('='));
  const std::string program = find_tool(command.front());
  if (program.empty())
    return fail(ErrorCode::not_found, what + ": there is no " + command.front() + " in PATH");
  if (Abandoned::all().reap() >= Abandoned::most)
    return fail(ErrorCode::timeout, what + ": too many earlier ones hang and cannot be ended",
                "the driver hangs: reboot");
  auto end = SteadyClock::now() + std::chrono::milliseconds(deadline.value);
  ZED_TRY(Pipe out, make_pipe());
  ZED_TRY(Pipe err, make_pipe());
  Spawn spawn;
  spawn.lead_group();
  spawn.give_null(0);
  spawn.give(out.write, 1);
  spawn.give(err.write, 2);
  ZED_TRY(pid_t pid, spawn.start(what, program, command, environment_of_tools()));
  Child child(pid);
  out.write.reset();
  err.write.reset();
  ToolAnswer answer;
  ZED_TRY(bool complete, read_to_end(out.read, err.read, answer, end, what));
  auto status = complete ? child.wait_until(end) : std::nullopt;
  if (!status)
    return fail(ErrorCode::timeout, what + ": no answer within " + show(deadline),
                "the driver hangs: look at dmesg; a reboot may be needed");
  answer.status = *status;
  return answer;
}

}  // namespace zed::net
