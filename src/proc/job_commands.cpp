#include "proc/job_commands.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <vector>

#include "base/base64.hpp"
#include "base/text.hpp"
#include "proc/command_child.hpp"
#include "proc/exit_words.hpp"

namespace zed::proc {
namespace {

constexpr std::size_t most_commands = 16;
constexpr std::size_t most_input = 64 * 1024;
constexpr std::size_t most_waiting_input = 256 * 1024;
/// What is read ahead of the reader; more stays in the pipe and holds the command back.
constexpr std::size_t most_output = 96 * 1024;
constexpr Millis longest_patience{250};
constexpr Millis untended = minutes(1);
/// After the first process is gone its children may hold the pipe: so much silence ends it.
constexpr Millis last_words{200};

std::string words_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) return "killed by " + signal_words(WTERMSIG(wait_status));
  return "exit status " + std::to_string(WEXITSTATUS(wait_status));
}

}  // namespace

/// One command. Its mutex is held while it is tended, so one reader at a time.
class JobCommands::Running {
public:
  Running(CommandChild child, const StartCommand& question, Instant now)
      : child_(std::move(child)), job_(question.job), generation_(question.generation),
        terminal_(question.terminal), tended_(now) {}
  ~Running() { kill(); }

  Result<CommandState> tend(const TendCommand& question, Instant now) {
    ZED_TRY(std::string input, from_base64(question.input, most_input));
    std::lock_guard lock(mutex_);
    tended_ = now;
    if (question.kill) kill_processes();
    ZED_CHECK(take_input(question, input));
    ZED_CHECK(forget_output_before(question.offset));
    if (output_.empty()) wait(std::clamp(question.patience, Millis{0}, longest_patience));
    write_input();
    read_output();
    reap();
    return state();
  }

  bool belongs_to(const JobId& job, const Generation& generation) const {
    return job_ == job && generation_ == generation;
  }
  /// Whether it may be forgotten. Passed over while somebody tends it.
  bool is_idle(Instant now) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    return lock.owns_lock() && now - tended_ > untended;
  }
  /// Waits for nobody, so that the loop's thread may do it.
  void kill_processes() const {
    if (!reaped_) ::kill(-child_.pid, SIGKILL);
  }

private:
  void kill() {
    kill_processes();
    for (int tries = 0; !reaped_ && tries < 100; ++tries) {
      reap();
      if (!reaped_) ::usleep(1000);  // SIGKILL is on its way
    }
  }

  Status take_input(const TendCommand& question, const std::string& input) {
    const std::int64_t known = input_taken_ + static_cast<std::int64_t>(input_.size());
    if (question.input_offset > known || question.input_offset < 0)
      return fail(ErrorCode::invalid,
                  "input is missing before byte " + std::to_string(question.input_offset));
    const auto twice = static_cast<std::size_t>(
        std::min<std::int64_t>(known - question.input_offset, std::ssize(input)));
    // What does not fit is not taken: `input_taken` tells the sender to come again.
    if (input_.size() + input.size() - twice <= most_waiting_input) {
      input_.append(input, twice);
      input_ends_ = input_ends_ || question.input_ends;
    }
    return {};
  }

  Status forget_output_before(std::int64_t offset) {
    const std::int64_t end = offset_ + static_cast<std::int64_t>(output_.size());
    if (offset < offset_ || offset > end)
      return fail(ErrorCode::invalid, "byte " + std::to_string(offset) +
                                          " of the output is not there any more, or not yet");
    output_.erase(0, static_cast<std::size_t>(offset - offset_));
    offset_ = offset;
    return {};
  }

  void wait(Millis patience) {
    write_input();
    if (reaped_) return;
    // poll() passes over what is -1.
    std::array<pollfd, 3> watched{{{child_.output.get(), POLLIN, 0},
                                   {input_.empty() ? -1 : child_.input.get(), POLLOUT, 0},
                                   {child_.exit.get(), POLLIN, 0}}};
    ::poll(watched.data(), watched.size(), static_cast<int>(patience.value));
  }

  void write_input() {
    while (!input_.empty() && child_.input) {
      // A command that closed its end has a broken pipe, and we must not die of it.
      const ssize_t n = ::write(child_.input.get(), input_.data(), input_.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      const auto taken = n < 0 ? input_.size() : static_cast<std::size_t>(n);
      input_taken_ += static_cast<std::int64_t>(taken);
      input_.erase(0, taken);
    }
    if (!child_.input) {
      input_taken_ += static_cast<std::int64_t>(input_.size());
      input_.clear();
    }
    if (!input_ends_ || !child_.input) return;
    // A terminal has no end of input; its line discipline makes one of this character.
    if (terminal_) {
      constexpr char end_of_transmission = 4;
      [[maybe_unused]] auto written = ::write(child_.input.get(), &end_of_transmission, 1);
    }
    child_.input.reset();
  }

  void read_output() {
    std::array<char, 16384> buffer{};
    while (child_.output && output_.size() < most_output) {
      const ssize_t n = ::read(child_.output.get(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) {  // the end; of a terminal that is EIO
        child_.output.reset();
        return;
      }
      output_.append(buffer.data(), static_cast<std::size_t>(n));
    }
  }

  void reap() {
    int status = 0;
    if (reaped_ || ::waitpid(child_.pid, &status, WNOHANG) != child_.pid) return;
    reaped_ = true;
    status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    words_ = words_of(status);
    while (child_.output && output_.size() < most_output) {
      pollfd watched{child_.output.get(), POLLIN, 0};
      if (::poll(&watched, 1, static_cast<int>(last_words.value)) <= 0) break;
      read_output();
    }
    // What it left in the background keeps nobody waiting. (Its group outlives it only then.)
    ::kill(-child_.pid, SIGKILL);
  }

  CommandState state() const {
    CommandState state;
    state.offset = offset_;
    state.data = to_base64(output_);
    state.input_taken = input_taken_;
    state.over = reaped_ && (!child_.output || output_.size() < most_output);
    state.status = status_;
    state.words = words_;
    return state;
  }

  std::mutex mutex_;
  CommandChild child_;
  JobId job_;
  Generation generation_;
  bool terminal_;
  Instant tended_;
  std::string input_;  ///< not yet written
  std::int64_t input_taken_ = 0;
  bool input_ends_ = false;
  std::string output_;  ///< from offset_ on
  std::int64_t offset_ = 0;
  std::atomic<bool> reaped_ = false;
  std::int64_t status_ = 0;
  std::string words_;
};

// A command may close its input before it has read it; the write's error says so.
JobCommands::JobCommands() {
  ::signal(SIGPIPE, SIG_IGN);
}
JobCommands::~JobCommands() = default;

std::shared_ptr<JobCommands::Running> JobCommands::find(const std::string& command) {
  std::lock_guard lock(mutex_);
  auto found = running_.find(command);
  return found == running_.end() ? nullptr : found->second;
}

Result<CommandState> JobCommands::start(const Launch& launch, const StartCommand& question,
                                        Instant now) {
  if (!bytes_of_hex(question.command))
    return fail(ErrorCode::invalid, "a command's name is 32 hexadecimal digits");
  std::lock_guard lock(mutex_);
  if (running_.contains(question.command)) return CommandState{};
  if (running_.size() >= most_commands)
    return fail(ErrorCode::busy, "16 commands run beside jobs on this node already",
                "try again when one of them has ended");
  ZED_TRY(CommandChild child, start_command_child(launch, question));
  running_[question.command] = std::make_shared<Running>(std::move(child), question, now);
  return CommandState{};
}

Result<CommandState> JobCommands::tend(const TendCommand& question, Instant now) {
  auto running = find(question.command);
  if (running == nullptr)
    return fail(ErrorCode::not_found, "that command is not there any more",
                "it ended with its job, with the agent, or because nobody read from it");
  return running->tend(question, now);
}

void JobCommands::end(const JobId& job, const Generation& generation) {
  std::lock_guard lock(mutex_);
  for (const auto& [name, running] : running_)
    if (running->belongs_to(job, generation)) running->kill_processes();
}

void JobCommands::sweep(Instant now) {
  std::lock_guard lock(mutex_);
  std::erase_if(running_, [now](const auto& entry) { return entry.second->is_idle(now); });
}

}  // namespace zed::proc
