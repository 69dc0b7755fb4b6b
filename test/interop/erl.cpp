#include "erl.hpp"

#include <array>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace zed::interop {

bool is_installed(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

struct Child::Shared {
  mutable std::mutex mutex;
  std::string output;
  bool ended = false;
  int status = 0;
  std::thread reader;
};

Child::Child(std::vector<std::string> argv) : shared_(std::make_shared<Shared>()) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) std::abort();
  std::vector<char*> words;
  for (std::string& word : argv)
    words.push_back(word.data());
  words.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::setpgid(0, 0);
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, 0);
    ::dup2(pipe[1], 1);
    ::dup2(pipe[1], 2);
    ::execvp(words[0], words.data());
    ::_exit(127);
  }
  ::close(pipe[1]);
  shared_->reader = std::thread([shared = shared_.get(), fd = pipe[0], pid = pid_] {
    std::array<char, 4096> buffer{};
    for (ssize_t got = 0; (got = ::read(fd, buffer.data(), buffer.size())) > 0;) {
      const std::lock_guard lock(shared->mutex);
      shared->output.append(buffer.data(), static_cast<std::size_t>(got));
    }
    ::close(fd);
    int status = 0;
    ::waitpid(pid, &status, 0);
    const std::lock_guard lock(shared->mutex);
    shared->status = status;
    shared->ended = true;
  });
}

Child::~Child() {
  bool ended = false;
  {
    const std::lock_guard lock(shared_->mutex);
    ended = shared_->ended;
  }
  if (!ended) ::kill(-pid_, SIGKILL);
  shared_->reader.join();
}

std::string Child::output() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->output;
}

Outcome Child::wait(net::Loop& loop, Millis limit) {
  const Instant end = loop.now() + limit;
  while (loop.now() < end) {
    loop.run_until([] { return false; }, {5});
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->ended) continue;
    const int status = shared_->status;
    return {true, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            shared_->output};
  }
  ::kill(-pid_, SIGKILL);
  return {false, -1, output()};
}

}  // namespace zed::interop
