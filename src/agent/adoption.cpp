// A dataset that a person made becomes one of ours: it gets an identity. Its files stay as they
// are. First the identity, then the new name, then a snapshot: a run that died in between is gone
// on with when the order comes again.

#include "agent/matters.hpp"

namespace zed::agent {
namespace {

std::string uuid_in(const AdoptDataset& action) {
  auto found = action.properties.find(property::uuid);
  return found == action.properties.end() ? std::string() : found->second;
}

/// In a message no name is empty: that it stays where it is, is said by its own.
bool renames(const AdoptDataset& action) {
  return !action.to.empty() && action.to != action.dataset;
}

Status check(const Machine& m, const AdoptDataset& action, const Dataset& there) {
  const std::string& name = there.name.str();
  if (uuid_in(action).empty())
    return fail(ErrorCode::invalid, "an adopted dataset needs an identity");
  if (there.name.is_under("zed"))
    return fail(ErrorCode::refused, name + " is Zed's own", "adopt another one");
  if (!there.uuid.is_nil() && there.uuid.str() != uuid_in(action))
    return fail(ErrorCode::exists, name + " has another identity", "zedctl datasets");
  if (there.receiving)
    return fail(ErrorCode::busy, name + " is being received",
                "wait for it, or end it: zfs receive -A");
  if (m.is_written(there.name))
    return fail(ErrorCode::busy, "an attempt writes " + name, "stop it first");
  if (renames(action)) ZED_CHECK(may_make(m, action.to));
  return {};
}

void finish(Machine& m, const Step& step, const Turn& turn, const DatasetName& name,
            std::optional<CheckpointId> taken) {
  refresh(m, name, [step, turn, taken] { step->succeed(taken); });
}

/// Where there is none yet that could travel.
void snapshot_it(Machine& m, const Step& step, const Turn& turn, const DatasetName& name,
                 const AdoptDataset& action, bool has_snapshot) {
  if (has_snapshot || action.snapshot_name.empty())
    return finish(m, step, turn, name, std::nullopt);
  auto snapshot = SnapshotName::of(name, action.snapshot_name);
  if (!snapshot) return step->fail(snapshot.error());
  m.call(env::TakeSnapshot{*snapshot, {{property::id, action.snapshot.str()}}},
         [&m, step, turn, name](StoreResult reply) {
           auto taken = reply_as<Snapshot>(std::move(reply));
           if (!taken) return step->fail(taken.error());
           finish(m, step, turn, name, taken->id);
         });
}

void rename_it(Machine& m, const Step& step, const Turn& turn, const AdoptDataset& action,
               bool has_snapshot) {
  if (!renames(action)) return snapshot_it(m, step, turn, action.dataset, action, has_snapshot);
  m.call(env::RenameDataset{action.dataset, action.to},
         [&m, step, turn, action, has_snapshot](StoreResult renamed) {
           if (!renamed) {
             Error error = renamed.error();
             return refresh(m, action.dataset, [step, turn, error] { step->fail(error); });
           }
           forget(m, action.dataset);
           snapshot_it(m, step, turn, action.to, action, has_snapshot);
         });
}

void mark(Machine& m, const Step& step, const Turn& turn, const AdoptDataset& action,
          bool has_snapshot) {
  PropertyChanges changes;
  for (const auto& [key, value] : action.properties)
    changes[key] = value;
  m.call(env::SetDatasetProperties{action.dataset, std::move(changes)},
         [&m, step, turn, action, has_snapshot](StoreResult set) {
           if (!set) return step->fail(set.error());
           rename_it(m, step, turn, action, has_snapshot);
         });
}

/// An earlier run of this step may have renamed it.
void look_at_new_name(Machine& m, const Step& step, const Turn& turn, const AdoptDataset& action) {
  const Error missing{ErrorCode::not_found, "no dataset " + action.dataset.str(), {}, "zfs list"};
  if (!renames(action)) return step->fail(missing);
  m.call(env::InspectDataset{action.to}, [&m, step, turn, action, missing](StoreResult reply) {
    auto moved = reply_as<Dataset>(std::move(reply));
    if (!moved || moved->uuid.str() != uuid_in(action)) return step->fail(missing);
    snapshot_it(m, step, turn, action.to, action, !moved->snapshots.empty());
  });
}

}  // namespace

void adopt_dataset(Machine& m, const Step& step, const AdoptDataset& action) {
  with_checked(m, step, action.dataset,
               [&m, step, action](const Turn& turn, const std::optional<Dataset>& there) {
                 if (!there) return look_at_new_name(m, step, turn, action);
                 if (auto fit = check(m, action, *there); !fit) return step->fail(fit.error());
                 mark(m, step, turn, action, !there->snapshots.empty());
               });
}

}  // namespace zed::agent
