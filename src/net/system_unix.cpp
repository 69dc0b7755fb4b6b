// What Linux and FreeBSD have in common.
#include "net/system.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace zed::net {

void quiet(int socket) {
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
}

Fd accept_now(int listener) {
  return Fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

int sync_file(int fd) {
  return ::fsync(fd);
}

int sync_data(int fd) {
  return ::fdatasync(fd);
}

}  // namespace zed::net
