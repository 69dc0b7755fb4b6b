// What macOS and FreeBSD have in common.
#include "net/system.hpp"

#include <algorithm>

#include <sys/random.h>
#include <unistd.h>

namespace zed::net {

void fill_random(std::span<std::byte> bytes) {
  constexpr std::size_t most_at_once = 256;
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), most_at_once);
    const int got = ::getentropy(bytes.data(), size);
    ZED_ASSERT(got == 0);  // fails for a bad address or size only
    bytes = bytes.subspan(size);
  }
}

}  // namespace zed::net
