#include "store/zfs/command.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/exec.hpp"
#include "net/spawn.hpp"

namespace zed::store::zfs {
namespace {

using net::Fd;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::minutes patience{10};
constexpr std::chrono::minutes farewell{1};
constexpr std::size_t most_output = std::size_t{512} << 20;
constexpr std::size_t most_complaint = std::size_t{64} << 10;
constexpr const char* folders[] = {"/usr/sbin/", "/sbin/", "/usr/local/sbin/", "/usr/bin/",
                                   "/bin/"};

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos)
    return ::access(name.c_str(), X_OK) == 0 ? name : std::string();
  for (const char* folder : folders)
    if (std::string path = folder + name; ::access(path.c_str(), X_OK) == 0) return path;
  return {};
}

/// A process of ours, reaped exactly once; killed if it is left behind.
class Process {
public:
  explicit Process(pid_t pid) : pid_(pid) {}
  ~Process() {
    if (pid_ == 0) return;
    if (!wait_until(Clock::now() + farewell)) kill();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Its status once it has ended; none at the deadline.
  std::optional<int> wait_until(Clock::time_point deadline) {
    int status = 0;
    timespec step{0, 1'000'000};
    // Commands of a few milliseconds are the rule, so the steps begin small.
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (Clock::now() >= deadline) return std::nullopt;
      ::nanosleep(&step, nullptr);
      step.tv_nsec = std::min(step.tv_nsec * 2, 50'000'000L);
    }
    pid_ = 0;
    return status;
  }
  void signal_kill() const {
    if (pid_ != 0) ::kill(pid_, SIGKILL);
  }
  void kill() {
    ::kill(pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
  }

private:
  pid_t pid_;
};

/// Starts a command with the descriptors that `spawn` gives it, in the C locale.
Result<pid_t> start_in(net::Spawn& spawn, const Arguments& arguments) {
  std::string program = find_program(arguments.at(0));
  if (program.empty())
    return fail(ErrorCode::unsupported, "there is no program `" + arguments[0] + "` here",
                arguments[0] == "zfs" || arguments[0] == "zpool"
                    ? "install OpenZFS's tools, or use --store dir"
                    : "install it");
  spawn.die_of_sigpipe();
  return spawn.start("start " + program, program, arguments,
                     {"LC_ALL=C", "PATH=/usr/sbin:/sbin:/usr/bin:/bin"});
}

std::string name_of(const Arguments& arguments) {
  std::string name = arguments.at(0);
  if (arguments.size() > 1) name += " " + arguments[1];
  return name;
}

tl::unexpected<Error> too_slow(const Arguments& arguments) {
  return fail(ErrorCode::timeout, "`" + name_of(arguments) + "` did not end within ten minutes",
              "look at `zpool status`: a suspended pool answers nothing");
}

/// Writes without dying of SIGPIPE, whatever the process does about it elsewhere.
ssize_t write_quietly(int fd, const void* bytes, std::size_t size) {
  sigset_t pipe;
  sigset_t before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  ssize_t written = ::write(fd, bytes, size);
  int error = errno;
  // The signal comes with a write that was cut short, too.
  if ((written < 0 && error == EPIPE) ||
      (written >= 0 && static_cast<std::size_t>(written) < size)) {
    // Ours alone: what a write raises goes to its own thread. sigtimedwait is not everywhere.
    sigset_t raised;
    sigemptyset(&raised);
    sigpending(&raised);
    int taken = 0;
    if (sigismember(&raised, SIGPIPE) == 1) (void)sigwait(&pipe, &taken);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return written;
}

/// Takes what is there. False at the end.
bool drain(const Fd& fd, std::string& into, std::size_t most) {
  std::array<char, 65536> block{};
  ssize_t n = ::read(fd.get(), block.data(), block.size());
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  std::size_t room = most - std::min(most, into.size());
  into.append(block.data(), std::min(room, static_cast<std::size_t>(n)));
  return n != 0;
}

class SystemCommands final : public Commands {
public:
  Result<Output> run(const Arguments& arguments, std::string_view input) override {
    ZED_TRY(auto in, net::make_pipe());
    ZED_TRY(auto out, net::make_pipe());
    ZED_TRY(auto err, net::make_pipe());
    net::Spawn spawn;
    spawn.give(in.read, 0);
    spawn.give(out.write, 1);
    spawn.give(err.write, 2);
    ZED_TRY(pid_t pid, start_in(spawn, arguments));
    Process process(pid);
    in.read.reset();
    out.write.reset();
    err.write.reset();
    auto deadline = Clock::now() + patience;
    Output output;
    if (!converse(in.write, out.read, err.read, input, output, deadline)) {
      process.kill();
      return too_slow(arguments);
    }
    auto status = process.wait_until(deadline);
    if (!status) {
      process.kill();
      return too_slow(arguments);
    }
    if (output.out.size() >= most_output)
      return fail(ErrorCode::io, "`" + name_of(arguments) + "` printed more than 512 MiB");
    output.status = WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
    output.ok = output.status == 0;
    return output;
  }

  Result<std::unique_ptr<Child>> start(const Arguments& arguments, Pipe pipe) override;

private:
  /// Feeds and drains the three pipes until both outputs end. False at the deadline.
  static bool converse(Fd& in, Fd& out, Fd& err, std::string_view input, Output& output,
                       Clock::time_point deadline) {
    ::fcntl(in.get(), F_SETFL, O_NONBLOCK);
    while (out || err) {
      if (input.empty()) in.reset();
      std::array<pollfd, 3> polls{pollfd{in ? in.get() : -1, POLLOUT, 0},
                                  pollfd{out ? out.get() : -1, POLLIN, 0},
                                  pollfd{err ? err.get() : -1, POLLIN, 0}};
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      if (left.count() <= 0) return false;
      if (::poll(polls.data(), polls.size(), static_cast<int>(left.count())) < 0 && errno != EINTR)
        return false;
      if (polls[0].revents != 0) {
        ssize_t n = write_quietly(in.get(), input.data(), input.size());
        if (n < 0 && errno != EAGAIN && errno != EINTR) in.reset();
        if (n > 0) input.remove_prefix(static_cast<std::size_t>(n));
      }
      if (polls[1].revents != 0 && !drain(out, output.out, most_output)) out.reset();
      if (polls[2].revents != 0 && !drain(err, output.err, most_complaint)) err.reset();
    }
    return true;
  }
};

class SystemChild final : public Child {
public:
  SystemChild(Arguments arguments, pid_t pid, Fd pipe, Fd err)
      : arguments_(std::move(arguments)), process_(pid), err_(std::move(err)),
        pipe_(std::move(pipe)) {
    ::fcntl(err_.get(), F_SETFL, O_NONBLOCK);
  }
  // The pipe is declared last, so it is closed before the process is waited for.

  Result<std::size_t> read(std::span<std::byte> buffer) override {
    for (;;) {
      ssize_t n = ::read(pipe_.get(), buffer.data(), buffer.size());
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR)
        return fail(net::system_error(errno, "read from `" + name_of(arguments_) + "`"));
    }
  }

  Status write(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      ssize_t n = write_quietly(pipe_.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0)
        return fail(ErrorCode::unavailable, "`" + name_of(arguments_) + "` has stopped reading");
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return {};
  }

  Result<Output> finish() override {
    pipe_.reset();
    Output output;
    auto deadline = Clock::now() + patience;
    // A command writes a line or two: less than a pipe holds, so it never waits for us.
    auto status = process_.wait_until(deadline);
    if (!status) {
      process_.kill();
      return too_slow(arguments_);
    }
    while (output.err.size() < most_complaint) {
      std::size_t before = output.err.size();
      if (!drain(err_, output.err, most_complaint) || output.err.size() == before) break;
    }
    output.status = WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
    output.ok = output.status == 0;
    return output;
  }

  void kill() override { process_.signal_kill(); }

private:
  Arguments arguments_;
  Process process_;
  Fd err_;
  Fd pipe_;
};

Result<std::unique_ptr<Child>> SystemCommands::start(const Arguments& arguments, Pipe pipe) {
  ZED_TRY(auto data, net::make_pipe());
  ZED_TRY(auto err, net::make_pipe());
  net::Spawn spawn;
  bool from_it = pipe == Pipe::from_it;
  spawn.give_null(from_it ? 0 : 1);
  spawn.give(from_it ? data.write : data.read, from_it ? 1 : 0);
  spawn.give(err.write, 2);
  ZED_TRY(pid_t pid, start_in(spawn, arguments));
  return std::make_unique<SystemChild>(arguments, pid, std::move(from_it ? data.read : data.write),
                                       std::move(err.read));
}

}  // namespace

std::unique_ptr<Commands> make_system_commands() {
  return std::make_unique<SystemCommands>();
}

}  // namespace zed::store::zfs
