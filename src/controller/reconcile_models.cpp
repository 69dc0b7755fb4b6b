// What every copy of a model should tell: the size that filters ask for, and the words that stand
// for its version.

#include "controller/operations/models.hpp"
#include "model/properties.hpp"

namespace zed::controller {
namespace {

/// `size_gb` of a model that came without it, in powers of 1000 as the filters count.
void complete_model(Machine& m, const DatasetId& uuid) {
  auto holder = best_holder(m, uuid);
  if (!holder) return;
  const Dataset& copy = *m.fleet.copy(*holder, uuid);
  if (copy.properties.contains("size_gb") || copy.newest() == nullptr) return;
  PlanStep step;
  step.node = *holder;
  step.action =
      SetProperties{copy.name, uuid, {{"size_gb", model::size_gb(copy.newest()->referenced)}}};
  step.expect = m.expect(uuid);
  step.why = "size_gb of a model";
  m.steps.want("size:" + uuid.str(), JobId{}, {step}, m.fleet, m.now.monotonic, m.ids, m.out);
}

/// What to set on a copy of `row` that does not know yet how words of its model moved on.
PropertyChanges missed_aliases(const NewestAliases& newest, const api::ModelRow& row,
                               Properties copy) {
  PropertyChanges all;
  for (const auto& [key, told] : newest) {
    // Nobody knows when a word without a date came or went.
    if (key.first != row.name || told.change.at.ms <= 0) continue;
    const auto own = alias_changes(copy);
    const auto known = own.find(key.second);
    const bool stands = told.change.stands && told.dataset == row.dataset;
    if (stands == (known != own.end() && known->second.stands)) continue;
    for (auto& [name, value] : with_alias(copy, key.second, {told.change.at, stands})) {
      copy[name] = value.value_or("");
      all[name] = std::move(value);
    }
  }
  return all;
}

/// A machine that was away when a word moved on, or a copy that was on its way, catches up.
void spread_aliases(Machine& m) {
  const api::ModelsReply all = models_reply(m);
  const NewestAliases newest = newest_aliases(m, all);
  for (const api::ModelRow& row : all.models) {
    const DatasetId uuid = uuid_of(m, row);
    for (const NodeName& node : m.fleet.ready_holders(uuid)) {
      const Dataset& copy = *m.fleet.copy(node, uuid);
      PropertyChanges changes = missed_aliases(newest, row, copy.properties);
      if (changes.empty()) continue;
      PlanStep step;
      step.node = node;
      step.action = SetProperties{copy.name, uuid, std::move(changes)};
      step.expect = m.expect(uuid);
      step.why = "an alias moved on";
      m.steps.want("aliases:" + node.str() + ":" + uuid.str(), JobId{}, {step}, m.fleet,
                   m.now.monotonic, m.ids, m.out);
    }
  }
}

}  // namespace

void tend_models(Machine& m) {
  if (!m.models_due) return;
  m.models_due = false;
  bool any_alias = false;
  for (const auto& held : m.fleet.view().datasets)
    for (const auto& entry : held.second) {
      const Properties& properties = entry.second.properties;
      if (entry.second.property(property::type) != "model") continue;
      if (!properties.contains("size_gb")) complete_model(m, entry.second.uuid);
      any_alias = any_alias || properties.contains("alias_times") || properties.contains("aliases");
    }
  if (any_alias) spread_aliases(m);
}

}  // namespace zed::controller
