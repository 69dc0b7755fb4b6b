#include "gpu/metal.hpp"

namespace zed::gpu {

std::optional<Bytes> metal_working_set() {
  return std::nullopt;
}

}  // namespace zed::gpu
