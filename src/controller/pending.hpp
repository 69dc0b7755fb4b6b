#pragma once
// Jobs that wait for a place, grouped so that a pass over them asks the scheduler once for all jobs
// that want the same: 1,000 equal jobs that do not fit cost one question.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/desired.hpp"
#include "sched/queue.hpp"

namespace zed::controller {

class PendingQueue {
public:
  void add(const DesiredJob& job);
  void remove(const JobId& job);
  bool contains(const JobId& job) const { return where_.contains(job); }
  std::size_t size() const { return where_.size(); }
  std::vector<JobId> all() const;
  /// The first of the jobs that want the same as this one, which a pass asks for all of them; none
  /// if that is itself, or it does not wait.
  std::optional<JobId> first_like(const JobId& job) const;

  /// One pass: offers jobs in the order of sched::order. `attempt` says whether the job was placed
  /// (or left the queue); after a refusal the rest of its group is passed over.
  enum class Offer { placed, refused };
  template <class Attempt>
  void pass(const std::map<std::string, std::int64_t>& held, Attempt&& attempt);

private:
  struct Group {
    std::string by;
    std::int64_t priority = 0;
    std::int64_t weight = 1;
    std::set<std::pair<std::uint64_t, JobId>> jobs;  ///< by submit order
  };
  std::map<std::string, Group> groups_;
  std::map<JobId, std::pair<std::string, std::uint64_t>> where_;
};

template <class Attempt>
void PendingQueue::pass(const std::map<std::string, std::int64_t>& held, Attempt&& attempt) {
  // Positions in each group; the queue itself changes under the pass.
  std::map<std::string, std::uint64_t> reached;
  std::set<std::string> closed;
  std::map<std::string, std::int64_t> holds = held;
  for (std::size_t turns = where_.size(); turns > 0; --turns) {
    std::vector<sched::QueuedJob> heads;
    std::map<JobId, std::string> group_of;
    for (const auto& [key, group] : groups_) {
      if (closed.contains(key)) continue;
      auto next = group.jobs.upper_bound({reached[key], JobId{}});
      while (next != group.jobs.end() && next->first <= reached[key])
        ++next;
      if (next == group.jobs.end()) continue;
      heads.push_back({next->second, group.priority, group.by, next->first, group.weight});
      group_of[next->second] = key;
    }
    if (heads.empty()) return;
    for (const JobId& id : sched::order(heads, holds)) {
      const std::string key = group_of[id];
      auto found = groups_.find(key);
      if (found == groups_.end()) continue;
      const std::string by = found->second.by;
      const std::int64_t weight = found->second.weight;
      reached[key] = where_.contains(id) ? where_.at(id).second : reached[key];
      if (attempt(id) == Offer::placed) {
        holds[by] += weight;
        break;  // the order may be another now
      }
      closed.insert(key);
    }
  }
}

}  // namespace zed::controller
