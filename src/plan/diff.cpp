#include "plan/diff.hpp"

#include <algorithm>
#include <set>

#include "base/describe.hpp"
#include "base/text.hpp"
#include "core/travelling.hpp"
#include "plan/words.hpp"

namespace zed::plan {
namespace {

template <class NameType> std::string key_of(const NameType& name) {
  return name.str();
}
std::string key_of(const std::string& name) {
  return name;
}

/// What tells one item of a kind from another.
template <class Item> std::string name_of(const Item& item) {
  return key_of(item.name);
}
std::string name_of(const DeclaredData& data) {
  return data.dataset.str();
}

/// What `keep` of an item destroys from now on; nothing for kinds without it.
template <class Item> const Retention* retention_of(const Item&) {
  return nullptr;
}
const Retention* retention_of(const Job& job) {
  return &job.retention;
}
const Retention* retention_of(const ReplicationPolicy& policy) {
  return &policy.retention;
}

/// One item as lines: the members of its Value but those that are its name, or no declaration.
template <class Item> Value::Map members_of(const Item& item) {
  Value value = to_value(item);
  Value::Map members = *value.as_map();
  auto is_no_declaration = [](const Value::Member& member) {
    return member.key == "name" || member.key == "id";
  };
  members.erase(std::remove_if(members.begin(), members.end(), is_no_declaration), members.end());
  return members;
}

class Differ {
public:
  Differ(const FleetView& view, std::vector<Change>& changes) : view_(view), changes_(changes) {}

  template <class Item, class StaysWords>
  void compare(const std::string& kind, const std::vector<Item>& before,
               const std::vector<Item>& after, StaysWords&& what_stays) {
    std::map<std::string, const Item*> old_items;
    std::map<std::string, const Item*> new_items;
    std::set<std::string> names;
    for (const Item& item : before)
      names.insert(old_items.emplace(name_of(item), &item).first->first);
    for (const Item& item : after)
      names.insert(new_items.emplace(name_of(item), &item).first->first);
    for (const std::string& name : names) {
      std::string subject = kind + " " + name;
      auto old_item = old_items.find(name);
      auto new_item = new_items.find(name);
      if (old_item == old_items.end())
        add(subject, *new_item->second);
      else if (new_item == new_items.end())
        changes_.push_back({Change::Kind::remove, subject, what_stays(*old_item->second), false});
      else
        change(subject, *old_item->second, *new_item->second);
    }
  }

private:
  template <class Item> void add(const std::string& subject, const Item& item) {
    static const Item plain{};
    std::vector<std::string> details;
    Value::Map defaults = members_of(plain);
    Value::Map members = members_of(item);
    for (std::size_t i = 0; i < members.size(); ++i)
      if (!(members[i].value == defaults[i].value))
        details.push_back(std::string(verb_of(members[i].key)) + " " +
                          words_of(members[i].key, members[i].value));
    const Retention* retention = retention_of(item);
    changes_.push_back({Change::Kind::add, subject, join(details, "; "),
                        retention != nullptr && !retention->keeps_all() && has_snapshots(item)});
  }

  template <class Item>
  void change(const std::string& subject, const Item& before, const Item& after) {
    Value::Map old_members = members_of(before);
    Value::Map new_members = members_of(after);
    for (std::size_t i = 0; i < new_members.size(); ++i) {
      const std::string& field = new_members[i].key;
      if (old_members[i].value == new_members[i].value) continue;
      std::string detail = std::string(verb_of(field)) + " " +
                           words_of(field, old_members[i].value) + " -> " +
                           words_of(field, new_members[i].value);
      bool destroys = field == "retention" && !retention_of(after)->keeps_all();
      if (destroys) detail += "; checkpoints that it does not keep are destroyed";
      if (field == "dataset")
        detail += "; " + words_of(field, old_members[i].value) + " stays where it is";
      changes_.push_back({Change::Kind::change, subject, std::move(detail), destroys});
    }
  }

  bool has_snapshots(const Job& job) const {
    return std::any_of(view_.datasets.begin(), view_.datasets.end(), [&](const auto& held) {
      auto found = held.second.find(job.dataset);
      return found != held.second.end() && !found->second.snapshots.empty();
    });
  }
  /// On its targets.
  bool has_snapshots(const ReplicationPolicy& policy) const {
    return std::any_of(policy.targets.begin(), policy.targets.end(), [&](const NodeName& target) {
      auto held = view_.datasets.find(target);
      return held != view_.datasets.end() &&
             std::any_of(held->second.begin(), held->second.end(), [&](const auto& entry) {
               return entry.first.is_under(policy.selector.str()) &&
                      !entry.second.snapshots.empty();
             });
    });
  }
  template <class Item> bool has_snapshots(const Item&) const { return false; }

  const FleetView& view_;
  std::vector<Change>& changes_;
};

/// Where copies of a dataset are: "its copies on a, b stay".
std::string copies_stay(const FleetView& view, const DatasetName& dataset) {
  std::vector<std::string> holders;
  for (const auto& [node, datasets] : view.datasets)
    if (datasets.contains(dataset)) holders.push_back(node.str());
  if (holders.empty()) return "no longer declared; nothing of it is stored";
  return "no longer declared; " + dataset.str() + " stays on " + join(holders, ", ");
}

std::string job_stays(const FleetView& view, const Job& job) {
  std::string text = copies_stay(view, job.dataset);
  for (const auto& [node, attempts] : view.attempts)
    for (const Attempt& attempt : attempts)
      if (attempt.dataset == job.dataset && attempt.phase != AttemptPhase::ended)
        text += "; its attempt on " + node.str() + " goes on";
  return text;
}

std::string node_stays(const FleetView& view, const DeclaredNode& node) {
  if (view.find_node(node.name) == nullptr) return "no longer declared; it never joined";
  return "no longer declared; it stays a member, and what it holds stays";
}

std::string policy_stays(const ReplicationPolicy& policy) {
  std::vector<std::string> targets;
  for (const NodeName& target : policy.targets)
    targets.push_back(target.str());
  return "no longer replicated; the copies on " + join(targets, ", ") + " stay";
}

bool is_declared(const Cluster& cluster, const ReplicationPolicy& policy) {
  const auto about = [&policy](const auto& item) { return is_about(policy, item.dataset); };
  return std::any_of(cluster.models.begin(), cluster.models.end(), about) ||
         std::any_of(cluster.data.begin(), cluster.data.end(), about) ||
         std::any_of(cluster.jobs.begin(), cluster.jobs.end(), about);
}

/// A dataset anywhere in the fleet whose last name is the policy's: what its author may have meant.
std::string meant(const FleetView& view, const ReplicationPolicy& policy) {
  for (const auto& [node, datasets] : view.datasets)
    for (const auto& [name, dataset] : datasets)
      if (name.str().ends_with("/" + policy.name)) return name.str();
  return "";
}

bool holds_any(const std::map<DatasetName, Dataset>& datasets, const ReplicationPolicy& policy) {
  return std::any_of(datasets.begin(), datasets.end(),
                     [&policy](const auto& entry) { return is_about(policy, entry.first); });
}

/// Where the datasets are that a policy is about, its source apart: "a, b".
std::string elsewhere(const FleetView& view, const ReplicationPolicy& policy) {
  std::vector<std::string> holders;
  for (const auto& [node, datasets] : view.datasets)
    if (holds_any(datasets, policy)) holders.push_back(node.str());
  return join(holders, ", ");
}

/// A policy that would wait for ever because of a wrong name looks like one that has nothing to do.
/// What is declared comes by itself; what a silent source has is not known.
void note_idle_policy(const Cluster& next, const FleetView& view, const ReplicationPolicy& policy,
                      std::vector<Change>& changes) {
  const auto held = view.datasets.find(policy.source);
  if (held == view.datasets.end() || is_declared(next, policy)) return;
  if (holds_any(held->second, policy)) return;
  std::string text = "selects nothing: " + policy.source.str() + " has no dataset " +
                     policy.selector.str() + " or under it, and none is declared";
  if (const std::string others = elsewhere(view, policy); !others.empty())
    text += "; it is on " + others;
  else if (const std::string other = meant(view, policy); !other.empty())
    text += "; " + other + " is there: write `replicate :\"" + other + "\"`";
  changes.push_back({Change::Kind::note, "replicate " + policy.name, std::move(text), false});
}

void add_notes(const Cluster& next, const FleetView& view, const SameGpu& same_gpu,
               std::vector<Change>& changes) {
  auto note = [&](const NodeName& name, std::string detail) {
    changes.push_back({Change::Kind::note, "node " + name.str(), std::move(detail), false});
  };
  for (const DeclaredNode& declared : next.nodes) {
    const Node* joined = view.find_node(declared.name);
    if (joined == nullptr) {
      note(declared.name, "declared, has not joined yet");
      continue;
    }
    for (Change& change : hardware_notes(declared, *joined, same_gpu))
      changes.push_back(std::move(change));
  }
  for (const auto& [name, node] : view.nodes)
    if (next.find_node(name) == nullptr) note(name, "joined, is not declared");
  for (const ReplicationPolicy& policy : next.policies)
    note_idle_policy(next, view, policy, changes);
}

}  // namespace

std::vector<Change> diff(const Cluster* applied, const Cluster& next, const FleetView& view,
                         const SameGpu& same_gpu) {
  static const Cluster nothing;
  const Cluster& before = applied != nullptr ? *applied : nothing;
  std::vector<Change> changes;
  auto field = [&](const char* name, const std::string& old_text, const std::string& new_text) {
    if (applied != nullptr && old_text != new_text)
      changes.push_back(
          {Change::Kind::change, "fleet " + next.name,
           std::string(name) + " " + words_of("", old_text) + " -> " + words_of("", new_text),
           false});
  };
  field("name", before.name, next.name);
  field("pool", before.pool, next.pool);
  Differ differ(view, changes);
  differ.compare("node", before.nodes, next.nodes,
                 [&](const DeclaredNode& node) { return node_stays(view, node); });
  differ.compare("model", before.models, next.models,
                 [&](const DeclaredModel& model) { return copies_stay(view, model.dataset); });
  differ.compare("dataset", before.data, next.data,
                 [&](const DeclaredData& data) { return copies_stay(view, data.dataset); });
  differ.compare("job", before.jobs, next.jobs,
                 [&](const Job& job) { return job_stays(view, job); });
  differ.compare("replicate", before.policies, next.policies, policy_stays);
  add_notes(next, view, same_gpu, changes);
  return changes;
}

Plan make_plan(const Cluster* applied, const Cluster& next, const FleetView& view,
               std::vector<PlanStep> replication, const SameGpu& same_gpu) {
  return {view.revision, diff(applied, next, view, same_gpu), std::move(replication)};
}

}  // namespace zed::plan
