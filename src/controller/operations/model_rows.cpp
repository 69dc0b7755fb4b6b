// What is known of each model: its copies, and where no policy brings it.

#include "controller/operations/models.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "controller/names.hpp"

namespace zed::controller {
namespace {

std::string home_of_model(const Machine& m, const DatasetId& uuid) {
  auto holder = best_holder(m, uuid);
  if (!holder) return "";
  std::string home = m.fleet.copy(*holder, uuid)->property(property::home);
  return home.empty() ? holder->str() : home;
}

/// Copies of one dataset; the newest snapshot of the best holder is what "up to date" means.
api::ModelRow model_row(const Machine& m, const DatasetName& dataset, const DatasetId& uuid) {
  api::ModelRow row;
  row.dataset = dataset.str();
  row.name = dataset.leaf();
  row.home = home_of_model(m, uuid);
  auto best = best_holder(m, uuid);
  const Dataset* newest = best ? m.fleet.copy(*best, uuid) : nullptr;
  for (const NodeName& node : m.fleet.holders(uuid)) {
    const Dataset* copy = m.fleet.copy(node, uuid);
    api::ModelCopy shown{node.str(), "", false};
    if (copy->newest() != nullptr) shown.snapshot = "@" + copy->newest()->name;
    shown.up_to_date = newest != nullptr && newest->newest() != nullptr &&
                       copy->find(newest->newest()->id) != nullptr;
    row.copies.push_back(shown);
    if (newest == nullptr) newest = copy;
  }
  if (newest != nullptr) {
    row.properties = newest->properties;
    row.version = newest->property("version");
    row.requirement = newest->property("requires");
    if (newest->newest() != nullptr) row.size = newest->newest()->referenced;
    if (std::string name = newest->property(property::name); !name.empty()) row.name = name;
  }
  for (const auto& [name, node] : m.fleet.view().nodes) {
    auto why = m.excluded.find(dataset.str() + " " + name.str());
    if (why != m.excluded.end() && m.fleet.copy(name, uuid) == nullptr)
      row.not_on[name.str()] = why->second;
  }
  return row;
}

/// A copy that was away when a word moved on still lists it.
void show_newest_aliases(const Machine& m, api::ModelsReply& all) {
  const NewestAliases newest = newest_aliases(m, all);
  for (api::ModelRow& row : all.models) {
    std::vector<std::string> words;
    for (const auto& [key, told] : newest)
      if (key.first == row.name && told.dataset == row.dataset && told.change.stands)
        words.push_back(key.second);
    row.properties.erase("alias_times");
    row.properties.erase("aliases");
    if (!words.empty()) row.properties["aliases"] = join(words, ",");
  }
}

}  // namespace

NewestAliases newest_aliases(const Machine& m, const api::ModelsReply& all) {
  NewestAliases newest;
  for (const api::ModelRow& row : all.models) {
    const DatasetId uuid = uuid_of(m, row);
    for (const NodeName& node : m.fleet.holders(uuid))
      for (const auto& [word, change] : alias_changes(m.fleet.copy(node, uuid)->properties)) {
        ToldAlias& told = newest[{row.name, word}];
        if (told.dataset.empty() || told.change < change) told = {change, row.dataset};
      }
  }
  return newest;
}

api::ModelsReply models_reply(const Machine& m) {
  api::ModelsReply reply;
  std::map<DatasetName, DatasetId> models;
  for (const auto& held : m.fleet.view().datasets)
    for (const auto& [name, dataset] : held.second)
      if (dataset.property(property::type) == "model") models.emplace(name, dataset.uuid);
  for (const auto& [name, uuid] : models)
    reply.models.push_back(model_row(m, name, uuid));
  if (m.desired.applied)
    for (const DeclaredModel& declared : m.desired.applied->cluster.models) {
      auto row = std::find_if(reply.models.begin(), reply.models.end(), [&](const auto& known) {
        return known.dataset == declared.dataset.str();
      });
      if (row == reply.models.end()) {
        reply.models.push_back({});
        row = std::prev(reply.models.end());
        row->dataset = declared.dataset.str();
        row->version = declared.version;
        row->declared_only = true;
      }
      row->name = declared.name.str();
      if (row->requirement.empty()) row->requirement = declared.requirement.str();
    }
  show_newest_aliases(m, reply);
  return reply;
}

void handle(const Asked& asked, const api::ListModels&) {
  asked.reply(models_reply(asked.m));
}

namespace {

/// Whether a version is higher: numbers by value, words after them by letters.
bool is_newer(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& text) {
    const bool digits = !text.empty() && text.size() <= 18 &&
                        text.find_first_not_of("0123456789") == std::string::npos;
    return digits ? std::stoll(text) : -1;
  };
  const auto key = [&](const std::string& text) {
    return std::pair(number(text) < 0, number(text));
  };
  return std::tuple(key(a), std::string_view(a)) > std::tuple(key(b), std::string_view(b));
}

bool is_called(const api::ModelRow& row, std::string_view name) {
  const std::string leaf = row.dataset.substr(row.dataset.rfind('/') + 1);
  return row.name == name || row.dataset == name || same_typed_name(name, row.name) ||
         same_typed_name(name, leaf);
}

bool is_version(const api::ModelRow& row, std::string_view word) {
  const std::vector<std::string> aliases = aliases_of(row);
  return row.version == word || "v" + row.version == word ||
         std::find(aliases.begin(), aliases.end(), word) != aliases.end();
}

}  // namespace

std::string versioned(const api::ModelRow& row) {
  return row.version.empty() ? row.name : row.name + "@" + row.version;
}

std::vector<std::string> aliases_of(const api::ModelRow& row) {
  auto found = row.properties.find("aliases");
  return found == row.properties.end() || found->second.empty() ? std::vector<std::string>()
                                                                : split(found->second, ',');
}

DatasetId uuid_of(const Machine& m, const api::ModelRow& row) {
  auto name = DatasetName::parse(row.dataset);
  return name ? m.fleet.uuid_of(*name).value_or(DatasetId{}) : DatasetId{};
}

std::optional<AliasChange> last_change(const Machine& m, const api::ModelsReply& all,
                                       const std::string& model, const std::string& word) {
  const NewestAliases newest = newest_aliases(m, all);
  const auto found = newest.find({model, word});
  return found == newest.end() ? std::nullopt : std::optional(found->second.change);
}

Result<api::ModelRow> find_model(const Machine& m, const std::string& typed) {
  const std::size_t at = typed.rfind('@');
  const std::string name = typed.substr(0, at);
  const std::string version = at == std::string::npos ? "" : typed.substr(at + 1);
  const api::ModelsReply all = models_reply(m);
  std::vector<std::string> names;
  std::vector<std::string> versions;
  const api::ModelRow* best = nullptr;
  for (const api::ModelRow& row : all.models) {
    names.push_back(row.name);
    if (!is_called(row, name)) continue;
    versions.push_back(versioned(row));
    if (!version.empty() && !is_version(row, version)) continue;
    if (best == nullptr || is_newer(row.version, best->version)) best = &row;
  }
  if (best != nullptr) return *best;
  const bool is_known = !versions.empty();
  return fail(ErrorCode::not_found,
              "there is no model \"" + percent_encode(typed.substr(0, 80)) + "\"",
              is_known ? "there is " + join(versions, ", ") : hint_for(name, names, "model"));
}

}  // namespace zed::controller
