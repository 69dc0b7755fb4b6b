#include "net/fd.hpp"

#include <cerrno>
#include <system_error>

#include <unistd.h>

namespace zed::net {

void Fd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

namespace {

ErrorCode code_of(int error_number) {
  switch (error_number) {
  case ECONNREFUSED:
  case ECONNRESET:
  case ECONNABORTED:
  case EPIPE:
  case EHOSTUNREACH:
  case ENETUNREACH:
  case ENETDOWN:
  case EADDRNOTAVAIL: return ErrorCode::unavailable;
  case EADDRINUSE:
  case EAGAIN: return ErrorCode::busy;
  case ETIMEDOUT: return ErrorCode::timeout;
  case ENOSPC:
  case EDQUOT: return ErrorCode::no_space;
  case ENOENT: return ErrorCode::not_found;
  case EEXIST: return ErrorCode::exists;
  default: return ErrorCode::io;
  }
}

}  // namespace

Error system_error(int error_number, std::string what) {
  Error error{code_of(error_number), std::generic_category().message(error_number), {}, {}};
  if (error_number == EADDRINUSE) error.hint = "`ss -ltnp` shows which program listens there";
  if (error_number == EMFILE) error.hint = "raise the limit of open files (ulimit -n)";
  return std::move(error).with(std::move(what));
}

}  // namespace zed::net
