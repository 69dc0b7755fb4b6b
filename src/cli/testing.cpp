#include "cli/testing.hpp"

#include <array>
#include <cstdlib>
#include <fstream>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/describe.hpp"

namespace zed::cli::testing {

namespace fs = std::filesystem;

TempFolder::TempFolder() {
  std::string pattern = (fs::temp_directory_path() / "zed-cli-XXXXXX").string();
  path_ = ::mkdtemp(pattern.data());
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TempFolder::file(const std::string& name, const std::string& text) const {
  const fs::path path = path_ / name;
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

FakeController::FakeController(std::string socket_path) : socket_(std::move(socket_path)) {
  auto opened = http::Server::open(
      loop_, {socket_, std::nullopt, {}},
      [this](const api::Request& request, const api::Caller&, const http::Reply& reply) {
        reply(handle(request));
        return http::OnGone{};
      });
  if (!opened) std::abort();
  server_ = std::move(*opened);
  thread_ = std::thread([this] { loop_.run(); });
}

FakeController::~FakeController() {
  loop_.stop();
  thread_.join();
}

void FakeController::on(const std::string& operation, Script script) {
  const std::lock_guard lock(mutex_);
  scripts_[operation] = std::move(script);
}

void FakeController::publish(std::uint64_t number, const std::string& subject,
                             const std::string& text) {
  loop_.post([this, event = api::FleetEvent{number, {}, "notice", subject, text}] {
    server_->publish(event);
  });
}

Result<Value> FakeController::handle(const api::Request& request) {
  const std::string tag = std::visit(
      [](const auto& operation) { return std::string(std::decay_t<decltype(operation)>::tag); },
      request);
  Script script;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    if (auto found = scripts_.find(tag); found != scripts_.end()) script = found->second;
  }
  if (script) return script(request);
  return fail(ErrorCode::unsupported, "the fake controller has no script for " + tag);
}

Child::Child(const std::string& program, std::vector<std::string> arguments, Options options) {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  std::array<int, 2> in{};
  int master = -1;
  int slave = -1;
  if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0 ||
      ::pipe2(in.data(), O_CLOEXEC) != 0 ||
      (options.terminal && ::openpty(&master, &slave, nullptr, nullptr, nullptr) != 0))
    std::abort();
  arguments.insert(arguments.begin(), program);
  std::vector<char*> argv;
  for (std::string& argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::vector<std::string> entries;
  for (const auto& [name, value] : options.environment)
    entries.push_back(name + "=" + value);
  std::vector<char*> environment;
  for (std::string& entry : entries)
    environment.push_back(entry.data());
  environment.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(options.terminal ? slave : in[0], 0);
    ::dup2(out[1], 1);
    ::dup2(options.terminal ? slave : err[1], 2);
    if (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0) ::_exit(126);
    ::execve(program.c_str(), argv.data(), environment.data());
    ::_exit(127);
  }
  out_.reset(out[0]);
  err_.reset(err[0]);
  ::close(out[1]);
  ::close(err[1]);
  ::close(in[0]);
  const int target = options.terminal ? master : in[1];
  [[maybe_unused]] auto written = ::write(target, options.input.data(), options.input.size());
  ::close(in[1]);
  if (options.terminal) {
    ::close(slave);
    err_.reset(master);
  }
}

Child::~Child() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool Child::read_some(int timeout_ms) {
  std::array<pollfd, 2> watched{
      {{out_ ? out_.get() : -1, POLLIN, 0}, {err_ ? err_.get() : -1, POLLIN, 0}}};
  if (::poll(watched.data(), watched.size(), timeout_ms) <= 0) return false;
  std::array<char, 8192> buffer{};
  auto take = [&buffer](const pollfd& ready, net::Fd& fd, std::string& text) {
    if (ready.revents == 0) return;
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n <= 0)
      fd.reset();
    else
      text.append(buffer.data(), static_cast<std::size_t>(n));
  };
  take(watched[0], out_, outcome_.out);
  take(watched[1], err_, outcome_.err);
  return true;
}

bool Child::wait_for(const std::string& text) {
  auto there = [&] {
    return outcome_.out.find(text) != std::string::npos ||
           outcome_.err.find(text) != std::string::npos;
  };
  while (!there() && (out_ || err_))
    if (!read_some(20'000)) break;
  return there();
}

void Child::signal(int number) const {
  ::kill(pid_, number);
}

Outcome Child::finish() {
  while (out_ || err_) {
    if (read_some(30'000)) continue;
    ::kill(pid_, SIGKILL);
    break;
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  outcome_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome_;
}

}  // namespace zed::cli::testing
