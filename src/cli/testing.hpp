#pragma once
// For tests: the real zedctl as a child, and a controller that says what a test wants it to say.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "http/server.hpp"
#include "net/fd.hpp"

namespace zed::cli::testing {

/// A folder of its own, removed at the end.
class TempFolder {
public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }
  /// Writes a file there and gives its path.
  std::string file(const std::string& name, const std::string& text) const;

private:
  std::filesystem::path path_;
};

/// http::Server on a thread. Operations without a script of their own get `unsupported`.
class FakeController {
public:
  using Script = std::function<Result<Value>(const api::Request&)>;

  explicit FakeController(std::string socket_path);
  ~FakeController();

  const std::string& socket() const { return socket_; }
  /// Answers an operation from now on.
  void on(const std::string& operation, Script script);
  template <class Reply> void answer(const std::string& operation, Reply reply) {
    on(operation,
       [reply](const api::Request&) -> Result<Value> { return api::encode_reply(reply); });
  }
  void publish(std::uint64_t number, const std::string& subject, const std::string& text);
  /// Requests of that type so far.
  template <class Operation> std::vector<Operation> requests() const {
    const std::lock_guard lock(mutex_);
    std::vector<Operation> found;
    for (const api::Request& request : requests_)
      if (const auto* one = std::get_if<Operation>(&request)) found.push_back(*one);
    return found;
  }

private:
  Result<Value> handle(const api::Request& request);

  std::string socket_;
  mutable std::mutex mutex_;
  std::map<std::string, Script> scripts_;
  std::vector<api::Request> requests_;
  net::Loop loop_;
  std::unique_ptr<http::Server> server_;
  std::thread thread_;
};

struct Outcome {
  int status = -1;  ///< 128 + signal if it was killed
  std::string out;
  std::string err;
};

/// One run of a program. Destroying it kills it.
class Child {
public:
  struct Options {
    std::map<std::string, std::string> environment;
    std::string input;      ///< written to standard input, which is then closed
    bool terminal = false;  ///< standard input and error are a terminal; `input` is typed there
    std::string directory;
  };
  Child(const std::string& program, std::vector<std::string> arguments, Options options);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Reads until standard output or error holds the text; false after ten seconds.
  bool wait_for(const std::string& text);
  void signal(int number) const;
  /// Reads to the end; kills it after twenty seconds.
  Outcome finish();

private:
  bool read_some(int timeout_ms);

  pid_t pid_ = -1;
  net::Fd out_;
  net::Fd err_;
  net::Fd terminal_;
  Outcome outcome_;
};

}  // namespace zed::cli::testing
