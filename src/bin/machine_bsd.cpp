#include <sys/types.h>

#include <sys/sysctl.h>

#include <array>

#include "bin/machine_bsd.hpp"

namespace zed::bin {

std::string sysctl_word(const char* name) {
  std::array<char, 256> text{};
  std::size_t size = text.size() - 1;
  return ::sysctlbyname(name, text.data(), &size, nullptr, 0) == 0 ? fact(text.data())
                                                                   : std::string();
}

}  // namespace zed::bin
