#include "core/placement.hpp"

#include <algorithm>

namespace zed {

bool Rejection::is_impossible() const {
  // A node all of whose shortfalls are for now would do once it is idle.
  return std::none_of(nodes.begin(), nodes.end(), [](const Refusal& refusal) {
    return std::all_of(refusal.shortfalls.begin(), refusal.shortfalls.end(),
                       [](const Shortfall& shortfall) { return shortfall.for_now; });
  });
}

}  // namespace zed
