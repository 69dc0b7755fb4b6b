// Holds, which keep snapshots while they are read. The property `held` names ours before they
// exist, so that a later run can release what a crash left.

#include <algorithm>

#include "agent/matters.hpp"
#include "base/text.hpp"

namespace zed::agent {
namespace {

std::string text_of(const std::set<std::string>& holds) {
  return join(std::vector<std::string>(holds.begin(), holds.end()), ",");
}

PropertyChanges held_change(const Machine& m, const DatasetName& dataset) {
  auto holds = m.held.find(dataset);
  bool none = holds == m.held.end() || holds->second.empty();
  return {{held_property, none ? std::nullopt : std::optional(text_of(holds->second))}};
}

void release_in_turn(Machine& m, const Turn& turn, const std::string& snapshot,
                     const std::string& tag, std::int64_t failures);

/// A hold that stayed would keep its snapshot for ever, and a fork that discards would never end.
/// The turn is kept for the first tries: after a rename nobody would know whose hold it was.
void release_again(Machine& m, const Turn& turn, const std::string& snapshot,
                   const std::string& tag, std::int64_t failures) {
  constexpr std::int64_t tries_in_turn = 6;
  if (failures < tries_in_turn) {
    const Millis pause{100 * (std::int64_t{1} << failures)};
    return m.after(pause, [&m, turn, snapshot, tag, failures] {
      release_in_turn(m, turn, snapshot, tag, failures);
    });
  }
  m.after(seconds(30),
          [&m, dataset = turn->dataset(), snapshot, tag] { release(m, dataset, snapshot, tag); });
}

void release_in_turn(Machine& m, const Turn& turn, const std::string& snapshot,
                     const std::string& tag, std::int64_t failures) {
  DatasetName dataset = turn->dataset();
  m.call(
      env::ReleaseSnapshot{SnapshotName{dataset, snapshot}, tag},
      [&m, turn, dataset, snapshot, tag, failures](StoreResult released) {
        bool gone = released || released.error().code == ErrorCode::not_found;
        if (!gone) return release_again(m, turn, snapshot, tag, failures + 1);
        m.held[dataset].erase(snapshot + "=" + tag);
        m.call(env::SetDatasetProperties{dataset, held_change(m, dataset)}, [turn](StoreResult) {});
        if (m.held[dataset].empty()) m.held.erase(dataset);
      });
}

}  // namespace

void hold(Machine& m, const Turn& turn, const std::string& snapshot, const std::string& tag,
          std::function<void(Status)> then) {
  DatasetName dataset = turn->dataset();
  m.held[dataset].insert(snapshot + "=" + tag);
  m.call(env::SetDatasetProperties{dataset, held_change(m, dataset)},
         [&m, turn, dataset, snapshot, tag, then = std::move(then)](StoreResult set) {
           if (!set) return then(fail(set.error()));
           m.call(env::HoldSnapshot{SnapshotName{dataset, snapshot}, tag},
                  [turn, then](StoreResult held) { then(reply_status(std::move(held))); });
         });
}

void release(Machine& m, const DatasetName& dataset, const std::string& snapshot,
             const std::string& tag) {
  auto holds = m.held.find(dataset);
  if (holds == m.held.end() || holds->second.count(snapshot + "=" + tag) == 0) return;
  bool queued = m.take_turn(
      dataset, [&m, snapshot, tag](Turn turn) { release_in_turn(m, turn, snapshot, tag, 0); });
  if (!queued)
    m.after(seconds(30), [&m, dataset, snapshot, tag] { release(m, dataset, snapshot, tag); });
}

void release_left_holds(Machine& m) {
  std::set<std::string> wanted;
  for (const auto& [key, live] : m.attempts)
    if (!live.has_ended()) wanted.insert("attempt." + key.generation.str());
  auto all = m.held;
  for (const auto& [dataset, holds] : all)
    for (const std::string& one : holds) {
      std::size_t equals = one.find('=');
      if (equals == std::string::npos) continue;
      std::string tag = one.substr(equals + 1);
      if (wanted.count(tag) == 0) release(m, dataset, one.substr(0, equals), tag);
    }
}

}  // namespace zed::agent
