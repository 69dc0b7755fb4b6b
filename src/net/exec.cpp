#include "net/exec.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace zed::net {

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
#ifdef __APPLE__  // has no pipe2
  bool made = ::pipe(ends.data()) == 0;
  for (int end : ends)
    made = made && ::fcntl(end, F_SETFD, FD_CLOEXEC) == 0;
#else
  bool made = ::pipe2(ends.data(), O_CLOEXEC) == 0;
#endif
  if (!made) return fail(system_error(errno, "make a pipe"));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace zed::net
