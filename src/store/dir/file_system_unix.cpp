// What Linux and FreeBSD have in common.
#include <unistd.h>

#include "store/dir/file_system.hpp"

namespace zed::store::disk::system {

int write_back(int fd) {
  return ::fdatasync(fd);
}

net::Fd clone_as(int, int, const std::string&) {
  return {};
}

ssize_t copy_inside(int from, int to, std::uint64_t offset, std::uint64_t size) {
  auto in = static_cast<off_t>(offset);
  off_t out = in;
  return ::copy_file_range(from, &in, to, &out, static_cast<std::size_t>(size), 0);
}

}  // namespace zed::store::disk::system
