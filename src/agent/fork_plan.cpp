#include "agent/fork_plan.hpp"

#include <algorithm>

#include "base/describe.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace zed::agent {
namespace {

constexpr std::size_t longest_lineage = 20;
constexpr char held[] = "held";

std::string type_of(const Dataset& dataset) {
  std::string type = dataset.property(property::type);
  return type.empty() ? "job" : type;
}

bool has(const Dataset& dataset, const PropertyChanges& changes) {
  return std::all_of(changes.begin(), changes.end(), [&](const auto& change) {
    auto found = dataset.properties.find(change.first);
    if (!change.second) return found == dataset.properties.end();
    return found != dataset.properties.end() && found->second == *change.second;
  });
}

Properties new_properties(const Dataset& branch, const Intent& intent) {
  Properties properties = branch.properties;
  for (const char* own : {property::intent, property::branch_of, static_cast<const char*>(held)})
    properties.erase(own);
  for (const auto& [key, value] : intent.changes) {
    if (value)
      properties[key] = *value;
    else
      properties.erase(key);
  }
  return properties;
}

ForkMove set_aside(const Intent& intent) {
  return {ForkStage::set_aside,
          env::SetDatasetProperties{intent.dataset,
                                    {{property::uuid, intent.branch_uuid.str()},
                                     {property::branch_of, intent.uuid.str()},
                                     {property::type, std::string("branch")}}}};
}

ForkMove begin(const Intent& intent, const Dataset& branch) {
  Properties properties = new_properties(branch, intent);
  if (!intent.base)
    return {ForkStage::begin, env::MakeDataset{intent.dataset, std::move(properties)}};
  SnapshotName origin{intent.branch, intent.base_name};
  return {ForkStage::begin,
          env::CloneSnapshot{std::move(origin), intent.dataset, std::move(properties)}};
}

ForkMove discard(const Dataset& branch) {
  if (const Snapshot* newest = branch.newest())
    return {ForkStage::discard, env::DestroySnapshot{SnapshotName{branch.name, newest->name}}};
  return {ForkStage::discard, env::DestroyDataset{branch.name}};
}

bool is_our_branch(const std::optional<Dataset>& branch, const Intent& intent) {
  return branch && branch->uuid == intent.branch_uuid;
}

/// The old dataset still bears the name: it is set aside.
Result<ForkMove> move_old(const Intent& intent, const ForkSight& sight) {
  if (sight.main->uuid == intent.uuid) return set_aside(intent);
  if (sight.main->uuid != intent.branch_uuid)
    return fail(ErrorCode::conflict, intent.dataset.str() + " is neither the old nor the new one",
                "a person changed it during a fork; see docs/agent.md");
  if (sight.branch)
    return fail(ErrorCode::conflict, intent.branch.str() + " is taken by another dataset",
                "rename or destroy it: the fork then goes on");
  return ForkMove{ForkStage::rename, env::RenameDataset{intent.dataset, intent.branch}};
}

/// The new dataset is there.
Result<ForkMove> move_new(const Intent& intent, const ForkSight& sight) {
  const Dataset& main = *sight.main;
  if (main.uuid != intent.uuid)
    return fail(ErrorCode::conflict, intent.dataset.str() + " is taken by another dataset",
                "rename or destroy it: the fork then goes on");
  if (intent.base && main.find(*intent.base) == nullptr)
    return ForkMove{ForkStage::promote, env::PromoteClone{intent.dataset}};
  if (!has(main, intent.changes))
    return ForkMove{ForkStage::set_properties,
                    env::SetDatasetProperties{intent.dataset, intent.changes}};
  if (!main.readonly) return ForkMove{ForkStage::protect, env::SetReadonly{intent.dataset, true}};
  if (!is_our_branch(sight.branch, intent)) return ForkMove{};
  const Dataset& branch = *sight.branch;
  if (!branch.readonly)
    return ForkMove{ForkStage::protect_branch, env::SetReadonly{intent.branch, true}};
  if (!branch.property(property::intent).empty())
    return ForkMove{ForkStage::clear_intent,
                    env::SetDatasetProperties{intent.branch, {{property::intent, std::nullopt}}}};
  return intent.discard ? discard(branch) : ForkMove{};
}

// ---- planning ----

/// A free name for the branch of that timeline. There are more numbers than datasets.
DatasetName branch_name(const DatasetName& dataset, const Timeline& left,
                        const std::set<DatasetName>& taken) {
  std::string parent = dataset.parent();
  std::string leaf = branch_leaf(dataset.leaf(), left);
  std::string full = parent.empty() ? leaf : parent + "/" + leaf;
  for (std::size_t n = 1;; ++n) {
    auto name = DatasetName::parse(n == 1 ? full : full + "-" + std::to_string(n));
    // Too long with the suffix: the branch lives under a short name beside it.
    if (!name) name = DatasetName::parse("zed/branch-" + std::to_string(n));
    ZED_ASSERT(name);
    if (taken.count(*name) == 0) return *name;
  }
}

const Snapshot* newest_checkpoint_up_to(const Dataset& there, const Snapshot* base) {
  const Snapshot* best = nullptr;
  for (const Snapshot& snapshot : there.snapshots) {
    auto seq = snapshot.seq();
    if (seq && (best == nullptr || *seq > *best->seq())) best = &snapshot;
    if (&snapshot == base) break;
  }
  return best;
}

std::optional<std::string> checkpoint_property(const Snapshot* checkpoint) {
  if (checkpoint == nullptr) return std::nullopt;
  return "@" + checkpoint->name;
}

PropertyChanges fork_changes(const ApplyFork& action, const Dataset& there,
                             const Snapshot* checkpoint) {
  // A replica that went back to its home's history is told of a fork that it had followed before: a
  // later generation may have been there since, and generations only grow.
  const Generation generation =
      std::max(there.generation().value_or(Generation{}), action.fork.timeline);
  return {{property::uuid, action.uuid.str()},
          {property::type, type_of(there)},
          {property::timeline, action.fork.timeline.str()},
          {property::generation, generation.str()},
          {property::home, action.home.str()},
          {property::status, std::string(to_string(JobState::pending))},
          {property::lineage, extended_lineage(there.property(property::lineage), action.fork)},
          {property::checkpoint, checkpoint_property(checkpoint)},
          {property::reverted, std::nullopt},
          {"reason", std::nullopt}};
}

/// Where a fork without a checkpoint begins: the snapshot that holds the job's input, if the first
/// one is that.
const Snapshot* input_snapshot(const Dataset& there) {
  if (there.snapshots.empty()) return nullptr;
  const Snapshot& first = there.snapshots.front();
  bool of_a_run = first.seq().has_value() || first.properties.count(property::closing) > 0;
  return of_a_run ? nullptr : &first;
}

Intent intent_of(const Dataset& there, const DatasetId& uuid, const DatasetId& branch_uuid,
                 const Snapshot* base, DatasetName branch, PropertyChanges changes) {
  Intent intent;
  intent.dataset = there.name;
  intent.uuid = uuid;
  if (base != nullptr) {
    intent.base = base->id;
    intent.base_name = base->name;
  }
  intent.branch = std::move(branch);
  intent.branch_uuid = branch_uuid;
  intent.changes = std::move(changes);
  return intent;
}

/// A copy without the checkpoint that the fork begins at.
Result<ForkPlan> plan_behind(const ApplyFork& action, const Dataset& there, const NodeName& self) {
  const Fork& fork = action.fork;
  if (action.home == self)
    return fail(ErrorCode::not_found,
                there.name.str() + " has no checkpoint " + fork.from->str() + " here",
                "bring it here first");
  // On the timeline that was left, a replica has a prefix of its home's history. One that returned
  // to its home's history (plan_follow) has no timeline.
  auto timeline = there.timeline();
  if (timeline && *timeline != fork.left)
    return fail(ErrorCode::conflict,
                there.name.str() + " missed an earlier fork and lacks checkpoint " +
                    fork.from->str(),
                "follow its home first");
  return ForkPlan(ForkKeepsAll{fork_changes(action, there, there.newest_checkpoint())});
}

Timeline tip_timeline(const Dataset& there) {
  const Snapshot* newest = there.newest();
  if (newest != nullptr)
    if (auto timeline = newest->timeline()) return *timeline;
  return there.timeline().value_or(Timeline{});
}

}  // namespace

std::string intent_text(const Intent& intent) {
  return to_json(to_value(intent));
}

Result<Intent> parse_intent(const std::string& text) {
  auto value = parse_json(text, JsonLimits{std::size_t{64} << 10, 8});
  auto intent = value ? from_value<Intent>(*value) : Result<Intent>(fail(value.error()));
  bool whole = intent && !intent->dataset.empty() && !intent->branch.empty() &&
               !intent->uuid.is_nil() && !intent->branch_uuid.is_nil();
  if (!whole)
    return fail(ErrorCode::corrupt, "the property com.zed:intent does not read",
                "a person changed it; see docs/agent.md");
  return intent;
}

Result<ForkMove> next_move(const Intent& intent, const ForkSight& sight) {
  if (sight.main && !sight.main->property(property::intent).empty()) return move_old(intent, sight);
  if (sight.main) return move_new(intent, sight);
  if (is_our_branch(sight.branch, intent)) return begin(intent, *sight.branch);
  return fail(ErrorCode::corrupt,
              "neither " + intent.dataset.str() + " nor " + intent.branch.str() + " is there",
              "a person destroyed them during a fork");
}

Result<ForkPlan> plan_fork(const ApplyFork& action, const Dataset& there, const NodeName& self,
                           const std::set<DatasetName>& taken) {
  const Fork& fork = action.fork;
  if (there.uuid != action.uuid)
    return fail(ErrorCode::stale, there.name.str() + " is another dataset");
  Timeline current = there.timeline().value_or(Timeline{});
  if (current == fork.timeline) return ForkPlan(ForkIsDone{});
  if (current > fork.timeline)
    return fail(ErrorCode::stale, there.name.str() + " is on a newer timeline");
  if (there.changed && there.property(property::home) == self.str())
    return ForkPlan(ForkNeedsSnapshot{});
  if (there.changed && there.newest() != nullptr) return ForkPlan(ForkRevertsFiles{});
  const Snapshot* base = fork.from ? there.find(*fork.from) : input_snapshot(there);
  if (fork.from && base == nullptr) return plan_behind(action, there, self);
  const Snapshot* checkpoint = base != nullptr ? newest_checkpoint_up_to(there, base) : nullptr;
  PropertyChanges changes = fork_changes(action, there, checkpoint);
  if (base == there.newest()) return ForkPlan(ForkKeepsAll{std::move(changes)});
  Intent intent = intent_of(there, action.uuid, action.branch_uuid, base,
                            branch_name(there.name, current, taken), std::move(changes));
  intent.discard = fork.discard;
  return ForkPlan(std::move(intent));
}

Result<ForkPlan> plan_follow(const FollowHome& action, const Dataset& there,
                             const std::set<DatasetName>& taken) {
  if (there.uuid != action.uuid)
    return fail(ErrorCode::stale, there.name.str() + " is another dataset");
  // Nothing in common: the copy begins anew, with the job's input if that is here.
  const bool anew = action.common.is_nil();
  if (there.snapshots.empty() && there.changed) return ForkPlan(ForkNeedsSnapshot{});
  const Snapshot* base = anew ? input_snapshot(there) : there.find(action.common);
  if (base == nullptr && !anew)
    return fail(ErrorCode::conflict,
                there.name.str() + " has no snapshot " + action.common.str() + " here",
                "the two histories have nothing in common");
  if (base == there.newest()) return ForkPlan(ForkIsDone{});
  Timeline tip = tip_timeline(there);
  PropertyChanges changes{
      {property::uuid, action.uuid.str()},
      {property::type, type_of(there)},
      {property::checkpoint,
       checkpoint_property(base != nullptr ? newest_checkpoint_up_to(there, base) : nullptr)}};
  // Its timeline named what went to the branch; without one the next fork finds it behind.
  if (there.timeline() && *there.timeline() <= tip) changes[property::timeline] = std::nullopt;
  return ForkPlan(intent_of(there, action.uuid, action.branch_uuid, base,
                            branch_name(there.name, tip, taken), std::move(changes)));
}

std::string extended_lineage(const std::string& lineage, const Fork& fork) {
  std::vector<std::string> forks;
  if (!lineage.empty()) forks = split(lineage, ',');
  std::string entry = fork.timeline.str() + "@" + (fork.from ? fork.from->str() : "start");
  if (forks.empty() || forks.back() != entry) forks.push_back(std::move(entry));
  if (forks.size() > longest_lineage)
    forks.erase(forks.begin(), forks.end() - static_cast<std::ptrdiff_t>(longest_lineage));
  return join(forks, ",");
}

}  // namespace zed::agent
