#include "model/fit.hpp"

#include <algorithm>

namespace zed::model {
namespace {

constexpr std::int64_t context_step = 256;
constexpr std::size_t most_gpus = 64;

bool fits(const Geometry& geometry, Workload workload, std::int64_t context, Bytes have) {
  workload.context = context;
  return largest_share(geometry, workload) <= have;
}

/// The longest context up to `wanted` that fits, 0 if not even the shortest does. Need grows with
/// the context, so halving finds it.
std::int64_t longest(const Geometry& geometry, const Workload& workload, std::int64_t wanted,
                     Bytes have) {
  if (fits(geometry, workload, wanted, have)) return wanted;
  std::int64_t low = 0;  // in steps; fits or is 0
  std::int64_t high = (wanted + context_step - 1) / context_step;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(geometry, workload, middle * context_step, have) ? low : high) = middle;
  }
  return low * context_step;
}

}  // namespace

Fit fit(const Geometry& geometry, Workload workload, std::vector<Bytes> gpus) {
  std::sort(gpus.begin(), gpus.end(), [](Bytes a, Bytes b) { return b < a; });
  gpus.resize(std::min(gpus.size(), most_gpus));
  const std::int64_t wanted = context_of(geometry, workload);
  Fit best;
  for (std::size_t count = 1; count <= gpus.size(); ++count) {
    workload.gpus = static_cast<std::int64_t>(count);
    const Bytes have = gpus[count - 1];
    const std::int64_t context = longest(geometry, workload, wanted, have);
    workload.context = std::max(context, std::min(wanted, context_step));
    const Bytes need = largest_share(geometry, workload);
    workload.context = 0;
    // What does not fit at all is told by the machine's GPUs all together, which comes nearest.
    if (context > best.context || best.context == 0)
      best = {context > 0 ? workload.gpus : 0, context, need, have};
    if (context == wanted) break;
  }
  return best;
}

}  // namespace zed::model
