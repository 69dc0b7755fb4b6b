#include "store/catalog.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace zed::store {
namespace {

constexpr std::size_t longest_value = 8191;
constexpr std::size_t longest_key = 200;
constexpr std::size_t most_gone = 10'000;

bool is_property_name(std::string_view name) {
  return !name.empty() && name.size() <= longest_key &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
                  c == ':' || c == '-';
         });
}

Status check_property(const std::string& name, const std::string& value) {
  if (!is_property_name(name))
    return fail(ErrorCode::invalid,
                "\"" + percent_encode(name.substr(0, 80)) + "\" is no property name",
                "use lower-case letters, digits, '.', '_', ':' and '-', at most 200");
  if (value.size() > longest_value || percent_encode(value).size() > longest_value)
    return fail(ErrorCode::invalid,
                "the value of property " + name + " is longer than 8191 bytes once encoded");
  bool is_identity = name == property::uuid || name == property::id;
  if (is_identity && !bytes_of_hex(value))
    return fail(ErrorCode::invalid, "property " + name + " is not 32 hexadecimal digits");
  return {};
}

DatasetId uuid_of(const Properties& properties) {
  auto found = properties.find(property::uuid);
  if (found == properties.end()) return {};
  return DatasetId::parse(found->second).value_or(DatasetId{});
}

std::optional<CheckpointId> id_of(const Properties& properties) {
  auto found = properties.find(property::id);
  return found == properties.end() ? std::nullopt : CheckpointId::parse(found->second);
}

void change(DatasetRecord& record, const PropertyChanges& changes) {
  for (const auto& [key, value] : changes) {
    if (value)
      record.properties[key] = *value;
    else
      record.properties.erase(key);
  }
  record.uuid = uuid_of(record.properties);
}

const Snapshot* newest_checkpoint(const DatasetRecord& record) {
  const Snapshot* newest = nullptr;
  std::uint64_t highest = 0;
  for (const SnapshotRef& candidate : record.snapshots) {
    auto seq = candidate->snapshot.seq();
    if (!seq || (newest != nullptr && *seq <= highest)) continue;
    newest = &candidate->snapshot;
    highest = *seq;
  }
  return newest;
}

std::optional<Generation> generation_of(const DatasetRecord& record, const char* key) {
  auto found = record.properties.find(key);
  return found == record.properties.end() ? std::nullopt : Generation::parse(found->second);
}

void drop_snapshot(DatasetRecord& record, const std::string& word) {
  std::erase_if(record.snapshots, [&](const SnapshotRef& s) { return s->snapshot.name == word; });
}

tl::unexpected<Error> not_found(const DatasetName& name) {
  return fail(ErrorCode::not_found, "there is no dataset " + name.str());
}
tl::unexpected<Error> not_found(const std::string& snapshot) {
  return fail(ErrorCode::not_found, "there is no snapshot " + snapshot);
}
tl::unexpected<Error> taken(const std::string& name) {
  return fail(ErrorCode::exists, name + " exists already");
}
tl::unexpected<Error> receiving(const DatasetName& name) {
  return fail(ErrorCode::busy, name.str() + " has an unfinished receive",
              "finish it, or abort the receive first");
}
tl::unexpected<Error> stale(const DatasetName& name, const std::string& why) {
  return fail(ErrorCode::stale, name.str() + ": " + why);
}

std::string text_of(const std::optional<CheckpointId>& id) {
  return id ? id->str() : "none";
}

}  // namespace

Status check_properties(const Properties& properties) {
  for (const auto& [name, value] : properties)
    ZED_CHECK(check_property(name, value));
  return {};
}

Status check_properties(const PropertyChanges& changes) {
  for (const auto& [name, value] : changes)
    ZED_CHECK(check_property(name, value.value_or(std::string(32, '0'))));
  return {};
}

// ---- reading ------------------------------------------------------------------------------------

Result<DatasetRef> Catalog::find(const DatasetName& name) const {
  auto found = datasets_.find(name);
  if (found == datasets_.end()) return not_found(name);
  return found->second;
}

Result<SnapshotRef> Catalog::find(const SnapshotName& name) const {
  ZED_TRY(auto record, find(name.dataset));
  for (const SnapshotRef& candidate : record->snapshots)
    if (candidate->snapshot.name == name.snapshot) return candidate;
  return not_found(name.str());
}

Result<SnapshotRef> Catalog::find(const DatasetName& name, const CheckpointId& id) const {
  ZED_TRY(auto record, find(name));
  for (const SnapshotRef& candidate : record->snapshots)
    if (candidate->snapshot.id == id) return candidate;
  return not_found("with id " + id.str() + " of " + name.str());
}

Dataset Catalog::show(const DatasetName& name, const DatasetRecord& record) const {
  Dataset shown;
  shown.name = name;
  shown.uuid = record.uuid;
  shown.readonly = record.readonly;
  shown.receiving = record.partial.has_value();
  shown.properties = record.properties;
  shown.snapshots.reserve(record.snapshots.size());
  for (const SnapshotRef& snapshot : record.snapshots) {
    shown.snapshots.push_back(snapshot->snapshot);
    shown.used += snapshot->snapshot.used;
  }
  return shown;
}

std::vector<DatasetName> Catalog::changed_after(std::uint64_t counter) const {
  std::vector<DatasetName> names;
  bool all = counter < known_from_ || counter > counter_;
  for (const auto& [name, record] : datasets_)
    if (all || record->changed_at > counter) names.push_back(name);
  for (const auto& [name, when] : gone_)
    if (all || when > counter) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<DatasetName> Catalog::clones_of(const DatasetRecord& record) const {
  std::set<std::uint64_t> guids;
  for (const SnapshotRef& snapshot : record.snapshots)
    guids.insert(snapshot->snapshot.guid);
  std::vector<DatasetName> clones;
  for (const auto& [name, other] : datasets_)
    if (other->origin && guids.contains(*other->origin)) clones.push_back(name);
  return clones;
}

std::optional<DatasetName> Catalog::holder_of(std::uint64_t guid) const {
  for (const auto& [name, record] : datasets_)
    for (const SnapshotRef& snapshot : record->snapshots)
      if (snapshot->snapshot.guid == guid) return name;
  return std::nullopt;
}

SnapshotRef Catalog::content_of(const DatasetRecord& record) const {
  if (!record.snapshots.empty()) return record.snapshots.back();
  if (!record.origin) return nullptr;
  for (const auto& [name, other] : datasets_)
    for (const SnapshotRef& snapshot : other->snapshots)
      if (snapshot->snapshot.guid == *record.origin) return snapshot;
  return nullptr;
}

// ---- checks -------------------------------------------------------------------------------------

Status Catalog::may_create(const DatasetName& name, const Properties& properties) const {
  ZED_CHECK(check_properties(properties));
  if (name.empty()) return fail(ErrorCode::invalid, "a dataset needs a name");
  if (datasets_.contains(name)) return taken(name.str());
  return {};
}

Status Catalog::check_new_snapshot(const DatasetName& name, const DatasetRecord& record,
                                   const std::string& word, const Properties& properties) const {
  ZED_CHECK(SnapshotName::of(name, word));
  ZED_CHECK(check_properties(properties));
  auto id = id_of(properties);
  for (const SnapshotRef& other : record.snapshots) {
    if (other->snapshot.name == word) return taken(name.str() + "@" + word);
    if (id && other->snapshot.id == *id)
      return fail(ErrorCode::exists, name.str() + "@" + other->snapshot.name + " has the id " +
                                         id->str() + " already");
  }
  return {};
}

Status Catalog::may_snapshot(const SnapshotName& name, const Properties& properties) const {
  ZED_TRY(auto record, find(name.dataset));
  if (record->partial && record->partial->made_dataset) return receiving(name.dataset);
  return check_new_snapshot(name.dataset, *record, name.snapshot, properties);
}

Status Catalog::may_commit(const env::CommitRequest& request) const {
  const DatasetName& name = request.dataset;
  ZED_TRY(auto record, find(name));
  if (record->uuid != request.uuid)
    return stale(name, "its uuid is " + record->uuid.str() + ", not " + request.uuid.str());
  if (auto now = generation_of(*record, property::generation); now != request.generation)
    return stale(name, "the attempt of generation " + request.generation.brief() +
                           " does not own it; " + (now ? now->brief() : "none") + " does");
  if (auto now = generation_of(*record, property::timeline); now != request.timeline)
    return stale(name, "timeline " + request.timeline.brief() + " was left; the current one is " +
                           (now ? now->brief() : "none"));
  const Snapshot* parent = newest_checkpoint(*record);
  auto newest = parent != nullptr ? std::optional(parent->id) : std::nullopt;
  if (newest != request.parent)
    return stale(name, "its newest checkpoint is " + text_of(newest) + ", not " +
                           text_of(request.parent));
  if (!id_of(request.snapshot_properties))
    return fail(ErrorCode::invalid, "a checkpoint of " + name.str() + " needs an id");
  ZED_CHECK(check_properties(request.dataset_changes));
  return may_snapshot({name, request.snapshot}, request.snapshot_properties);
}

Status Catalog::may_clone(const SnapshotName& origin, const DatasetName& name,
                          const Properties& properties) const {
  ZED_CHECK(find(origin));
  return may_create(name, properties);
}

Status Catalog::may_destroy(const DatasetName& name) const {
  ZED_TRY(auto record, find(name));
  auto busy = [&](const std::string& why, const std::string& hint) {
    return fail(ErrorCode::busy, name.str() + " cannot be destroyed: " + why, hint);
  };
  if (record->partial) return receiving(name);
  for (const auto& [other, unused] : datasets_)
    if (other != name && other.is_under(name.str()))
      return busy("it has the child " + other.str(), "destroy the children first");
  for (const SnapshotRef& snapshot : record->snapshots)
    if (!snapshot->holds.empty())
      return busy("@" + snapshot->snapshot.name + " is held by " + *snapshot->holds.begin(),
                  "release the hold first");
  if (auto clones = clones_of(*record); !clones.empty())
    return busy(clones.front().str() + " is a clone of a snapshot of it",
                "promote or destroy the clone first");
  return {};
}

Status Catalog::may_destroy(const SnapshotName& name) const {
  ZED_TRY(auto record, find(name));
  if (!record->holds.empty())
    return fail(ErrorCode::busy, name.str() + " is held by " + *record->holds.begin(),
                "release the hold first");
  for (const auto& [clone, other] : datasets_)
    if (other->origin == record->snapshot.guid)
      return fail(ErrorCode::busy, name.str() + " is the origin of " + clone.str(),
                  "promote or destroy the clone first");
  return {};
}

Status Catalog::may_rename(const DatasetName& from, const DatasetName& to) const {
  ZED_CHECK(find(from));
  if (to.empty()) return fail(ErrorCode::invalid, "a dataset needs a name");
  if (datasets_.contains(to)) return taken(to.str());
  if (to.is_under(from.str()))
    return fail(ErrorCode::invalid, from.str() + " cannot move into itself");
  for (const auto& [name, record] : datasets_) {
    if (!name.is_under(from.str())) continue;
    if (record->partial) return receiving(name);
    ZED_CHECK(DatasetName::parse(to.str() + name.str().substr(from.str().size())));
  }
  return {};
}

Status Catalog::may_receive(const env::ReceiveRequest& request) const {
  const DatasetName& name = request.dataset;
  if (!id_of(request.snapshot_properties))
    return fail(ErrorCode::invalid, "a received snapshot of " + name.str() + " needs an id");
  ZED_CHECK(check_properties(request.dataset_changes));
  auto found = datasets_.find(name);
  if (found == datasets_.end()) {
    if (request.base) return not_found(name);
    ZED_CHECK(may_create(name, {}));
    return check_new_snapshot(name, {}, request.snapshot, request.snapshot_properties);
  }
  const DatasetRecord& record = *found->second;
  const SnapshotRecord* newest = record.newest();
  auto newest_id = newest != nullptr ? std::optional(newest->snapshot.id) : std::nullopt;
  if (newest_id != request.base)
    return stale(name, "its newest snapshot is " + text_of(newest_id) +
                           ", but the stream's base is " + text_of(request.base));
  return check_new_snapshot(name, record, request.snapshot, request.snapshot_properties);
}

Status Catalog::may_revert(const DatasetName& name) const {
  ZED_TRY(auto record, find(name));
  if (record->partial) return receiving(name);
  if (content_of(*record) == nullptr)
    return fail(ErrorCode::not_found, name.str() + " has no snapshot to return to");
  return {};
}

// ---- changes ------------------------------------------------------------------------------------

std::vector<DatasetName> Catalog::missing_parents(const DatasetName& name) const {
  std::vector<DatasetName> missing;
  for (std::string parent = name.parent(); !parent.empty();) {
    auto parsed = DatasetName::parse(parent);
    ZED_ASSERT(parsed.has_value());  // a prefix of a legal name is legal
    if (datasets_.contains(*parsed)) break;
    parent = parsed->parent();
    missing.push_back(std::move(*parsed));
  }
  return missing;
}

void Catalog::replace(const DatasetName& name, DatasetRecord record) {
  record.changed_at = ++counter_;
  datasets_[name] = std::make_shared<const DatasetRecord>(std::move(record));
}

void Catalog::insert(const DatasetName& name, DatasetRecord record) {
  for (const DatasetName& parent : missing_parents(name)) {
    gone_.erase(parent);
    replace(parent, {});
  }
  gone_.erase(name);
  record.uuid = uuid_of(record.properties);
  replace(name, std::move(record));
}

void Catalog::bury(const DatasetName& name) {
  datasets_.erase(name);
  gone_[name] = ++counter_;
  if (gone_.size() <= most_gone) return;
  // Too many to remember: older cursors name everything instead.
  gone_.clear();
  known_from_ = counter_;
}

Status Catalog::create(const DatasetName& name, const Properties& properties) {
  ZED_CHECK(may_create(name, properties));
  DatasetRecord record;
  record.properties = properties;
  insert(name, std::move(record));
  return {};
}

Status Catalog::set(const DatasetName& name, const PropertyChanges& changes) {
  ZED_TRY(auto found, find(name));
  ZED_CHECK(check_properties(changes));
  DatasetRecord record = *found;
  change(record, changes);
  replace(name, std::move(record));
  return {};
}

Status Catalog::set_readonly(const DatasetName& name, bool readonly) {
  ZED_TRY(auto found, find(name));
  DatasetRecord record = *found;
  record.readonly = readonly;
  replace(name, std::move(record));
  return {};
}

Snapshot Catalog::append(const DatasetName& name, DatasetRecord record, const std::string& word,
                         const Properties& properties, const NewSnapshot& made) {
  SnapshotRecord added;
  added.files = made.files;
  added.snapshot.name = word;
  added.snapshot.id = id_of(properties).value_or(id_from_guid(made.guid));
  added.snapshot.guid = made.guid;
  added.snapshot.createtxg = counter_ + 1;  // what replace() will make the counter
  added.snapshot.created = made.created;
  added.snapshot.used = made.used;
  added.snapshot.referenced = made.referenced;
  added.snapshot.properties = properties;
  Snapshot shown = added.snapshot;
  record.snapshots.push_back(std::make_shared<const SnapshotRecord>(std::move(added)));
  replace(name, std::move(record));
  return shown;
}

Result<Snapshot> Catalog::add_snapshot(const SnapshotName& name, const Properties& properties,
                                       const NewSnapshot& made) {
  ZED_CHECK(may_snapshot(name, properties));
  return append(name.dataset, *datasets_.at(name.dataset), name.snapshot, properties, made);
}

Result<Snapshot> Catalog::commit(const env::CommitRequest& request, const NewSnapshot& made) {
  ZED_CHECK(may_commit(request));
  DatasetRecord record = *datasets_.at(request.dataset);
  change(record, request.dataset_changes);
  return append(request.dataset, std::move(record), request.snapshot, request.snapshot_properties,
                made);
}

Status Catalog::change_holds(const SnapshotName& name, const std::string& tag, bool held) {
  ZED_TRY(auto found, find(name));
  if (!is_snapshot_word(tag))
    return fail(ErrorCode::invalid, "\"" + percent_encode(tag.substr(0, 80)) + "\" is no hold tag");
  if (found->holds.contains(tag) == held) return {};
  SnapshotRecord snapshot = *found;
  if (held)
    snapshot.holds.insert(tag);
  else
    snapshot.holds.erase(tag);
  DatasetRecord record = *datasets_.at(name.dataset);
  std::replace(record.snapshots.begin(), record.snapshots.end(), found,
               std::make_shared<const SnapshotRecord>(std::move(snapshot)));
  replace(name.dataset, std::move(record));
  return {};
}

Status Catalog::hold(const SnapshotName& name, const std::string& tag) {
  return change_holds(name, tag, true);
}

Status Catalog::release(const SnapshotName& name, const std::string& tag) {
  return change_holds(name, tag, false);
}

Status Catalog::rename(const DatasetName& from, const DatasetName& to) {
  ZED_CHECK(may_rename(from, to));
  std::vector<DatasetName> moving;
  for (const auto& [name, record] : datasets_)
    if (name.is_under(from.str())) moving.push_back(name);
  for (const DatasetName& name : moving) {
    auto target = DatasetName::parse(to.str() + name.str().substr(from.str().size()));
    ZED_ASSERT(target.has_value());  // may_rename() parsed it
    DatasetRecord record = *datasets_.at(name);
    bury(name);
    insert(*target, std::move(record));
  }
  return {};
}

Status Catalog::clone(const SnapshotName& origin, const DatasetName& name,
                      const Properties& properties) {
  ZED_CHECK(may_clone(origin, name, properties));
  ZED_TRY(auto snapshot, find(origin));
  DatasetRecord record;
  record.properties = properties;
  record.origin = snapshot->snapshot.guid;
  insert(name, std::move(record));
  return {};
}

Status Catalog::promote(const DatasetName& name) {
  ZED_TRY(auto found, find(name));
  if (!found->origin) return {};
  auto holder = holder_of(*found->origin);
  if (!holder) return not_found("that is the origin of " + name.str());
  DatasetRecord clone = *found;
  DatasetRecord parent = *datasets_.at(*holder);
  if (parent.partial) return receiving(*holder);
  auto is_origin = [&](const SnapshotRef& s) { return s->snapshot.guid == *clone.origin; };
  auto end = std::find_if(parent.snapshots.begin(), parent.snapshots.end(), is_origin) + 1;
  for (auto moving = parent.snapshots.begin(); moving != end; ++moving)
    for (const SnapshotRef& own : clone.snapshots)
      if (own->snapshot.name == (*moving)->snapshot.name)
        return taken(name.str() + "@" + own->snapshot.name);
  clone.snapshots.insert(clone.snapshots.begin(), parent.snapshots.begin(), end);
  parent.snapshots.erase(parent.snapshots.begin(), end);
  // The clone takes over what its parent came from; the parent now comes from the clone.
  auto grandparent = parent.origin;
  parent.origin = clone.origin;
  clone.origin = grandparent;
  replace(*holder, std::move(parent));
  replace(name, std::move(clone));
  return {};
}

Status Catalog::move_live(const DatasetName& name, const std::string& live) {
  ZED_TRY(auto found, find(name));
  DatasetRecord record = *found;
  record.live = live;
  replace(name, std::move(record));
  return {};
}

Status Catalog::destroy(const DatasetName& name) {
  ZED_CHECK(may_destroy(name));
  bury(name);
  return {};
}

Status Catalog::destroy(const SnapshotName& name) {
  ZED_CHECK(may_destroy(name));
  DatasetRecord record = *datasets_.at(name.dataset);
  drop_snapshot(record, name.snapshot);
  replace(name.dataset, std::move(record));
  return {};
}

void Catalog::forget(const SnapshotName& name) {
  auto found = find(name);
  if (!found) return;
  std::vector<DatasetName> clones;
  for (const auto& [other, record] : datasets_)
    if (record->origin == (*found)->snapshot.guid) clones.push_back(other);
  for (const DatasetName& clone : clones) {
    DatasetRecord record = *datasets_.at(clone);
    record.origin.reset();
    replace(clone, std::move(record));
  }
  DatasetRecord record = *datasets_.at(name.dataset);
  drop_snapshot(record, name.snapshot);
  replace(name.dataset, std::move(record));
}

Status Catalog::begin_receive(const env::ReceiveRequest& request, const std::string& files) {
  ZED_CHECK(may_receive(request));
  bool is_new = !datasets_.contains(request.dataset);
  DatasetRecord record = is_new ? DatasetRecord{} : *datasets_.at(request.dataset);
  if (is_new) record.readonly = true;
  CheckpointId id = *id_of(request.snapshot_properties);
  bool goes_on =
      record.partial && record.partial->snapshot == id && record.partial->base == request.base;
  if (goes_on) return {};
  bool made = is_new || (record.partial && record.partial->made_dataset);
  record.partial = PartialReceive{id, request.base, files, made};
  insert(request.dataset, std::move(record));
  return {};
}

Result<Snapshot> Catalog::finish_receive(const env::ReceiveRequest& request,
                                         const NewSnapshot& made) {
  ZED_TRY(auto found, find(request.dataset));
  ZED_CHECK(may_receive(request));
  DatasetRecord record = *found;
  CheckpointId id = *id_of(request.snapshot_properties);
  if (!record.partial || record.partial->snapshot != id || record.partial->base != request.base)
    return stale(request.dataset, "its receive was aborted meanwhile");
  record.partial.reset();
  record.live.clear();
  record.readonly = true;
  change(record, request.dataset_changes);
  return append(request.dataset, std::move(record), request.snapshot, request.snapshot_properties,
                made);
}

Status Catalog::abort_receive(const DatasetName& name) {
  auto found = datasets_.find(name);
  if (found == datasets_.end() || !found->second->partial) return {};
  DatasetRecord record = *found->second;
  bool made_dataset = record.partial->made_dataset;
  record.partial.reset();
  if (made_dataset)
    bury(name);
  else
    replace(name, std::move(record));
  return {};
}

// ---- storing ------------------------------------------------------------------------------------

Status Catalog::restore(DatasetName name, DatasetRecord record) {
  auto corrupt = [&](const std::string& why) {
    return fail(ErrorCode::corrupt, "dataset " + name.str() + " " + why);
  };
  if (datasets_.contains(name)) return corrupt("is listed twice");
  ZED_CHECK(check_properties(record.properties));
  record.uuid = uuid_of(record.properties);
  std::set<std::string> words;
  std::uint64_t last = 0;
  for (const SnapshotRef& snapshot : record.snapshots) {
    if (!words.insert(snapshot->snapshot.name).second)
      return corrupt("has two snapshots named " + snapshot->snapshot.name);
    if (snapshot->snapshot.createtxg <= last) return corrupt("has snapshots out of order");
    last = snapshot->snapshot.createtxg;
  }
  datasets_.emplace(std::move(name), std::make_shared<const DatasetRecord>(std::move(record)));
  return {};
}

}  // namespace zed::store
