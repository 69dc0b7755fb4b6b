// Branches whose time has come. Announced a day ahead; a wall clock that jumps destroys nothing:
// the day after the announcement is also counted by this run's own clock, from its beginning if
// need be.

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/machine.hpp"

namespace zed::controller {
namespace {

constexpr Millis a_day = minutes(24 * 60);

void announce(Machine& m, const Expiry& expiry) {
  m.record(ExpiryAnnounced{expiry.branch, m.now.wall});
  m.tell("notice", "branch " + expiry.name.str(),
         fmt::format("will be destroyed in a day, as {} said; `zedctl expire {} --never` keeps it",
                     expiry.by, expiry.name.str()));
}

/// Whether a whole day has passed since people were told, by both clocks.
bool is_over(Machine& m, const Expiry& expiry) {
  if (!expiry.announced) return false;
  auto first = m.announced.emplace(expiry.branch, m.now.monotonic).first;
  return m.now.monotonic - first->second >= a_day && m.now.wall.ms >= expiry.at.ms &&
         m.now.wall.ms - expiry.announced->ms >= a_day.value;
}

void destroy_on(Machine& m, const Expiry& expiry, const NodeName& node) {
  const Dataset& copy = *m.fleet.copy(node, expiry.branch);
  if (copy.property(property::branch_of).empty()) return;  // somebody made something else of it
  PlanStep step;
  step.node = node;
  step.action = Destroy{copy.name, copy.uuid, {}};
  step.expect = m.expect(copy.uuid);
  step.why = "the branch expired, as " + expiry.by + " said";
  m.steps.want("expire:" + expiry.branch.str() + ":" + node.str(), JobId{}, {step}, m.fleet,
               m.now.monotonic, m.ids, m.out);
}

bool is_anyone_away(const Machine& m) {
  for (const auto& entry : m.desired.members)
    if (!m.fleet.is_ready(entry.first)) return true;
  return false;
}

}  // namespace

void expire_branches(Machine& m) {
  std::vector<Expiry> all;
  for (const auto& entry : m.desired.expiries)
    all.push_back(entry.second);
  for (const Expiry& expiry : all) {
    if (!expiry.announced && m.now.wall.ms >= expiry.at.ms - a_day.value) announce(m, expiry);
    if (!is_over(m, expiry)) continue;
    const auto holders = m.fleet.holders(expiry.branch);
    for (const NodeName& node : holders)
      if (m.fleet.is_ready(node)) destroy_on(m, expiry, node);
    // A node that is away may have a copy: the word stands until it was asked.
    if (!holders.empty() || is_anyone_away(m)) continue;
    m.record(ExpirySet{expiry, true});
    m.announced.erase(expiry.branch);
    m.tell("notice", "branch " + expiry.name.str(), "has expired and is gone");
  }
}

}  // namespace zed::controller
