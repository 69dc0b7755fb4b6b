#include "cli/dev_processes.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/text.hpp"
#include "net/exec.hpp"
#include "net/files.hpp"
#include "net/socket.hpp"
#include "net/system.hpp"
#include "proc/launch.hpp"
#include "proc/process_table.hpp"
#include "proc/spawn.hpp"

namespace zed::cli {
namespace {

namespace fs = std::filesystem;
using proc::ProcessIdentity;

constexpr Millis start_limit = seconds(20);
constexpr Millis look_every{20};
/// Rounds of killing what a job forks: each ends all that is there at its moment.
constexpr int most_rounds = 50;

void nap(Millis time) {
  ::poll(nullptr, 0, static_cast<int>(time.value));
}

/// Asks `done` until it holds or the limit passes.
bool wait_until(const std::function<bool()>& done, Millis limit) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit.value);
  while (!done()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    nap(look_every);
  }
  return true;
}

bool all_gone(const std::vector<ProcessIdentity>& processes) {
  return std::none_of(processes.begin(), processes.end(),
                      [](const ProcessIdentity& process) { return proc::is_alive(process); });
}

void signal_all(const std::vector<ProcessIdentity>& processes, int signal) {
  for (const ProcessIdentity& process : processes)
    if (proc::is_alive(process)) ::kill(static_cast<pid_t>(process.pid), signal);
}

/// Whether the write end, which the daemon inherited, is closed: it ended.
bool has_ended(int lifeline) {
  pollfd watched{lifeline, POLLIN, 0};
  return ::poll(&watched, 1, 0) > 0;
}

bool begins_with_any(std::string_view text, const std::vector<std::string>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(), [text](const std::string& beginning) {
    return text.substr(0, beginning.size()) == beginning;
  });
}

/// A supervisor of an attempt under one of `roots`, or a process that such a supervisor started.
bool belongs_to(pid_t pid, const std::vector<std::string>& roots) {
  const std::vector<std::string> words = proc::arguments_of(pid);
  if (words.size() > 2 && words[1] == "supervise" && begins_with_any(words[2], roots)) return true;
  constexpr std::string_view mark = "ZED_JOB_DIR=";
  for (const std::string& entry : proc::environment_of(pid))
    if (entry.substr(0, mark.size()) == mark &&
        begins_with_any(std::string_view(entry).substr(mark.size()), roots))
      return true;
  return false;
}

}  // namespace

Result<fs::path> program_beside(const std::string& name) {
  ZED_TRY(const fs::path own, net::own_program());
  const fs::path path = own.parent_path() / name;
  if (::access(path.c_str(), X_OK) == 0) return path;
  return fail(ErrorCode::not_found, "there is no program " + path.string(),
              "build it: ninja zed-agent zed-controller; it belongs beside zedctl");
}

std::optional<ProcessIdentity> running_in(const fs::path& state) {
  auto identity = net::read_record<ProcessIdentity>(state / "pid.json");
  if (!identity || identity->pid <= 1 || !proc::is_alive(*identity)) return std::nullopt;
  return std::move(*identity);
}

Result<ProcessIdentity> start_daemon(const fs::path& program, std::vector<std::string> arguments,
                                     const fs::path& state, const fs::path& log) {
  const std::string what = "start " + program.filename().string() + " in " + state.string();
  ZED_TRY(net::Pipe lifeline, net::make_pipe());
  ZED_CHECK(proc::spawn_detached(program, std::move(arguments), lifeline.write, log));
  lifeline.write.reset();
  std::optional<ProcessIdentity> identity;
  bool ended = false;
  wait_until(
      [&] {
        identity = running_in(state);
        ended = has_ended(lifeline.read.get());
        return identity || ended;
      },
      start_limit);
  if (identity) return *identity;
  const std::string words = tail_of(log, 5);
  return fail(ended ? ErrorCode::unavailable : ErrorCode::timeout,
              what + ": " + (ended ? "it ended at once" : "it did not write its pid.json in time") +
                  (words.empty() ? "" : ", its last words: " + words),
              "read " + log.string());
}

std::vector<ProcessIdentity> job_processes_of(const fs::path& state) {
  const std::vector<proc::ProcessEntry> all = proc::all_processes();
  std::error_code error;
  const std::vector<std::string> roots{state.string() + "/",
                                       fs::weakly_canonical(state, error).string() + "/"};
  std::set<pid_t> ours;
  for (const proc::ProcessEntry& process : all)
    if (belongs_to(process.pid, roots)) ours.insert(process.pid);
  // A job may have wiped its children's environment; they are ours by descent.
  for (bool grown = true; grown;) {
    grown = false;
    for (const proc::ProcessEntry& process : all)
      if (ours.count(process.parent) != 0) grown = ours.insert(process.pid).second || grown;
  }
  std::vector<ProcessIdentity> processes;
  for (pid_t pid : ours)
    if (auto identity = proc::identity_of(pid)) processes.push_back(std::move(*identity));
  return processes;
}

bool end_processes(const std::vector<ProcessIdentity>& processes, Millis grace) {
  signal_all(processes, SIGTERM);
  if (wait_until([&processes] { return all_gone(processes); }, grace)) return true;
  return kill_processes(processes);
}

bool kill_processes(const std::vector<ProcessIdentity>& processes) {
  signal_all(processes, SIGKILL);
  return wait_until([&processes] { return all_gone(processes); }, seconds(2));
}

bool kill_jobs_of(const fs::path& state) {
  for (int round = 0; round < most_rounds; ++round) {
    const auto processes = job_processes_of(state);
    if (processes.empty()) return true;
    kill_processes(processes);
  }
  return false;
}

Result<std::vector<std::int64_t>> free_ports(std::size_t count) {
  std::vector<net::Fd> held;  // all at once, so that none comes twice
  std::vector<std::int64_t> ports;
  for (std::size_t i = 0; i < count; ++i) {
    ZED_TRY(net::Fd fd, net::listen_tcp({"127.0.0.1", 0}, net::Exposure::loopback_only));
    ZED_TRY(net::Endpoint endpoint, net::local_endpoint(fd.get()));
    ports.push_back(endpoint.port);
    held.push_back(std::move(fd));
  }
  return ports;
}

std::string tail_of(const fs::path& log, std::size_t lines) {
  net::Fd file(::open(log.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  std::array<char, 4096> bytes{};
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(bytes.size()));
  const ssize_t n = ::pread(file.get(), bytes.data(), bytes.size(), from);
  if (n <= 0) return {};
  std::vector<std::string> all =
      split(trim(std::string_view(bytes.data(), static_cast<std::size_t>(n))), '\n');
  if (all.size() > lines) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(lines));
  return join(all, " | ");
}

}  // namespace zed::cli
