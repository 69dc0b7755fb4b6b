// Compiled on Macs only: the frameworks are part of Apple's tools.
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <algorithm>

#include "gpu/metal.hpp"

namespace zed::gpu {

std::optional<Bytes> metal_working_set() {
  @autoreleasepool {
    std::int64_t most = 0;
    for (id<MTLDevice> device in MTLCopyAllDevices())
      most = std::max(most, static_cast<std::int64_t>([device recommendedMaxWorkingSetSize]));
    if (most <= 0) return std::nullopt;
    return Bytes{most};
  }
}

}  // namespace zed::gpu
