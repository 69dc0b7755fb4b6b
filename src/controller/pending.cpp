#include "controller/pending.hpp"

#include "base/describe.hpp"
#include "base/json.hpp"

namespace zed::controller {
namespace {

/// Equal for jobs that any node treats alike. A job that has a home, or asks for a node, is alone.
std::string group_key(const DesiredJob& job) {
  if (!job.home.empty() || !job.only.empty()) return job.job.id.str();
  Value key = Value::map();
  key.set("by", job.by);
  key.set("priority", job.job.priority);
  key.set("requirement", job.job.requirement.str());
  key.set("prefer", to_value(job.job.prefer));
  key.set("fallback", to_value(job.job.fallback));
  key.set("model", job.job.model ? job.job.model->str() : "");
  key.set("data", to_value(job.job.data));
  key.set("root", job.job.dataset.parent());
  key.set("exclusive", job.job.exclusive);
  // Backfill asks how long it runs.
  key.set("timeout", job.job.timeout ? job.job.timeout->value : 0);
  key.set("begins", job.begins ? job.begins->job.str() : "");
  // Jobs that wait for others do not speak for those that need not.
  key.set("after", to_value(job.job.after));
  return to_json(key);
}

}  // namespace

void PendingQueue::add(const DesiredJob& job) {
  remove(job.job.id);
  std::string key = group_key(job);
  Group& group = groups_[key];
  group.by = job.by;
  group.priority = job.job.priority;
  group.weight = job.job.requirement.gpus.value_or(1);
  group.jobs.emplace(job.submitted_seq, job.job.id);
  where_[job.job.id] = {std::move(key), job.submitted_seq};
}

void PendingQueue::remove(const JobId& job) {
  auto found = where_.find(job);
  if (found == where_.end()) return;
  auto group = groups_.find(found->second.first);
  group->second.jobs.erase({found->second.second, job});
  if (group->second.jobs.empty()) groups_.erase(group);
  where_.erase(found);
}

std::optional<JobId> PendingQueue::first_like(const JobId& job) const {
  const auto found = where_.find(job);
  if (found == where_.end()) return std::nullopt;
  const JobId first = groups_.at(found->second.first).jobs.begin()->second;
  return first == job ? std::nullopt : std::optional(first);
}

std::vector<JobId> PendingQueue::all() const {
  std::vector<JobId> ids;
  ids.reserve(where_.size());
  for (const auto& entry : where_)
    ids.push_back(entry.first);
  return ids;
}

}  // namespace zed::controller
