#pragma once
// A file descriptor with an owner, and errno as an Error.

#include <string>
#include <utility>

#include "base/result.hpp"

namespace zed::net {

/// Closes its descriptor when destroyed. -1 is "none".
class Fd {
public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

private:
  int fd_ = -1;
};

/// An errno as an Error: refused or unreachable -> unavailable, in use -> busy, timed out ->
/// timeout, full -> no_space, missing -> not_found, anything else -> io. `what` says what was
/// attempted and on what: "listen on 127.0.0.1:4370".
Error system_error(int error_number, std::string what);

}  // namespace zed::net
