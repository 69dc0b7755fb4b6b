#pragma once
// Whether a model fits the GPUs of one machine, and with how much context if not with all.

#include <cstdint>
#include <vector>

#include "model/estimate.hpp"

namespace zed::model {

struct Fit {
  std::int64_t gpus = 0;     ///< the fewest that hold it; 0: it does not fit with any context
  std::int64_t context = 0;  ///< tokens of each sequence that fit, at most what was wanted
  Bytes need;  ///< on the fullest GPU, with that context; with the least one if it does not fit
  Bytes have;  ///< the smallest GPU of those that would be used
};

/// `gpus`: usable bytes of GPUs that can work together (one vendor), in any order. The workload's
/// context is what is wanted (0: context_of()); fewer GPUs go before more context only if all that
/// is wanted fits on them.
Fit fit(const Geometry& geometry, Workload workload, std::vector<Bytes> gpus);

}  // namespace zed::model
