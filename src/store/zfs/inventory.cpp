#include "store/zfs/inventory.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/number.hpp"

namespace zed::store::zfs {
namespace {

/// What an empty file system may take on any pool: less than one file's block.
constexpr std::uint64_t empty_at_most = 128U << 10;
/// From here on a channel program is asked for properties.
constexpr std::size_t many_snapshots = 50;
/// Names of datasets that are gone are remembered up to here; then older cursors name everything.
constexpr std::size_t most_gone = 10'000;

Snapshot snapshot_of(const SnapshotRow& row, const SnapshotFacts& facts) {
  Snapshot snapshot;
  snapshot.name = row.word;
  snapshot.guid = row.guid;
  snapshot.createtxg = row.createtxg;
  snapshot.created = facts.created;
  snapshot.used = facts.used;
  snapshot.referenced = facts.referenced;
  snapshot.properties = facts.properties;
  auto id = facts.properties.find(property::id);
  auto parsed = id == facts.properties.end() ? std::nullopt : CheckpointId::parse(id->second);
  snapshot.id = parsed.value_or(id_from_guid(row.guid));
  return snapshot;
}

SnapshotFacts snapshot_facts(const Facts& facts) {
  auto bytes = [&facts](const char* name) {
    return Bytes{static_cast<std::int64_t>(facts.number(name))};
  };
  return {WallTime{static_cast<std::int64_t>(facts.number("creation")) * 1000}, bytes("used"),
          bytes("referenced"), facts.own};
}

SnapshotFacts listed_facts(const SnapshotRow& row, Properties own) {
  auto bytes = [](std::uint64_t count) { return Bytes{static_cast<std::int64_t>(count)}; };
  return {WallTime{row.creation * 1000}, bytes(row.used), bytes(row.referenced), std::move(own)};
}

std::string name_of(const SnapshotRow& row) {
  return row.dataset + "@" + row.word;
}

std::pair<std::uint64_t, std::uint64_t> key_of(const SnapshotRow& row) {
  return {row.guid, row.createtxg};
}

std::size_t looks_of(const Record& record) {
  std::string text = std::to_string(record.guid) + (record.dataset.readonly ? "r" : "w") +
                     (record.is_receiving() ? "p" : "-") + record.origin;
  for (const auto& [name, value] : record.dataset.properties)
    text += "\n" + name + "\t" + value;
  for (const Snapshot& snapshot : record.dataset.snapshots)
    text += "\n" + std::to_string(snapshot.guid) + " " + std::to_string(snapshot.createtxg) + " " +
            snapshot.name;
  return std::hash<std::string>{}(text);
}

bool has_files(const std::string& mountpoint) {
  std::error_code error;
  std::filesystem::directory_iterator first(mountpoint, error);
  return !error && first != std::filesystem::directory_iterator();
}

}  // namespace

Record assemble(const DatasetName& name, const Facts& facts, const std::vector<SnapshotRow>& rows,
                const std::map<std::string, SnapshotFacts>& snapshots) {
  Record record;
  record.marked = take_apart(facts.own);
  record.guid = facts.number("guid");
  record.origin = facts.text("origin");
  record.token = facts.text("receive_resume_token");
  record.mounted = facts.text("mounted") == "yes";
  record.can_mount = facts.text("mountpoint") != "none" && facts.text("mountpoint") != "legacy";
  record.written = facts.number("written");
  Dataset& dataset = record.dataset;
  dataset.name = name;
  dataset.properties = record.marked.plain;
  dataset.uuid = DatasetId::parse(dataset.property(property::uuid)).value_or(DatasetId{});
  dataset.readonly = facts.text("readonly") == "on";
  dataset.receiving = record.is_receiving();
  dataset.used = Bytes{static_cast<std::int64_t>(facts.number("used"))};
  const auto& marker = record.marked.marker;
  for (const SnapshotRow& row : rows) {
    if (marker && marker->kind == StreamKind::zfs && row.word == marker->word) {
      record.has_unsealed = true;
      continue;
    }
    auto known = snapshots.find(name_of(row));
    if (known != snapshots.end()) dataset.snapshots.push_back(snapshot_of(row, known->second));
  }
  bool has_past = !dataset.snapshots.empty() || !record.origin.empty();
  dataset.changed = has_past ? record.written != 0 : record.written > empty_at_most;
  // Half of a stream is not somebody's change.
  if (dataset.receiving && !has_past) dataset.changed = false;
  return record;
}

Snapshot show_snapshot(const std::string& word, const Facts& facts) {
  SnapshotRow row;
  row.word = word;
  row.guid = facts.number("guid");
  row.createtxg = facts.number("createtxg");
  return snapshot_of(row, snapshot_facts(facts));
}

Result<std::map<std::string, SnapshotFacts>>
Inventory::facts_of(const std::vector<SnapshotRow>& rows) {
  std::vector<SnapshotRow> unknown;
  {
    std::lock_guard lock(mutex_);
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(unknown),
                 [this](const SnapshotRow& row) { return !known_.contains(key_of(row)); });
  }
  if (!unknown.empty()) ZED_CHECK(learn(unknown));
  std::map<std::string, SnapshotFacts> facts;
  std::lock_guard lock(mutex_);
  for (const SnapshotRow& row : rows) {
    auto found = known_.find(key_of(row));
    if (found == known_.end()) continue;
    if (row.creation != 0) found->second.used = {static_cast<std::int64_t>(row.used)};
    facts[name_of(row)] = found->second;
  }
  return facts;
}

/// One whose name went to another snapshot since it was listed is listed again: there are events of
/// both.
Status Inventory::learn(const std::vector<SnapshotRow>& unknown) {
  std::vector<std::string> names;
  for (const SnapshotRow& row : unknown)
    names.push_back(name_of(row));
  const bool rest_is_listed = std::all_of(unknown.begin(), unknown.end(),
                                          [](const SnapshotRow& row) { return row.creation != 0; });
  if (rest_is_listed && unknown.size() >= many_snapshots)
    if (auto own = zfs_.own_properties(names)) {
      std::lock_guard lock(mutex_);
      for (const SnapshotRow& row : unknown)
        if (auto found = own->find(name_of(row)); found != own->end())
          known_[key_of(row)] = listed_facts(row, std::move(found->second));
      return {};
    }
  ZED_TRY(auto asked, zfs_.snapshot_facts(names));
  std::lock_guard lock(mutex_);
  for (const auto& [name, said] : asked)
    known_[{said.number("guid"), said.number("createtxg")}] = snapshot_facts(said);
  return {};
}

bool Inventory::knows_nothing() {
  std::lock_guard lock(mutex_);
  return known_.empty();
}

void Inventory::keep_only(const std::vector<SnapshotRow>& rows) {
  std::set<Key> there;
  for (const SnapshotRow& row : rows)
    there.insert(key_of(row));
  std::lock_guard lock(mutex_);
  std::erase_if(known_, [&there](const auto& item) { return !there.contains(item.first); });
}

void Inventory::forget(std::uint64_t guid) {
  std::lock_guard lock(mutex_);
  std::erase_if(known_, [guid](const auto& item) { return item.first.first == guid; });
}

void Inventory::take_as_unchanged(const Record& record) {
  std::lock_guard lock(mutex_);
  if (record.written == 0)
    written_unchanged_.erase(record.guid);
  else
    written_unchanged_[record.guid] = record.written;
}

/// A dataset without a past has changed if there is anything in it.
void Inventory::settle_changed(Record& record) {
  Dataset& dataset = record.dataset;
  if (dataset.changed && dataset.readonly) {
    std::lock_guard lock(mutex_);
    auto known = written_unchanged_.find(record.guid);
    dataset.changed = known == written_unchanged_.end() || known->second != record.written;
  }
  bool has_past = !dataset.snapshots.empty() || !record.origin.empty();
  if (has_past || dataset.receiving || !record.mounted) return;
  for (const Mount& mount : zfs_.mounts())
    if (mount.source == zfs_.full(dataset.name)) dataset.changed = has_files(mount.path);
}

namespace {

/// The rows whose facts are wanted: not that of a snapshot which does not count yet, since what it
/// will have is not there.
std::vector<SnapshotRow> counting(const std::vector<SnapshotRow>& rows, const Facts& facts) {
  auto marker = take_apart(facts.own).marker;
  if (!marker || marker->kind != StreamKind::zfs) return rows;
  std::vector<SnapshotRow> kept;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(kept),
               [&](const SnapshotRow& row) { return row.word != marker->word; });
  return kept;
}

/// Whether what was written a moment ago may not have been counted.
bool may_lag(const Facts& facts) {
  return facts.text("mounted") == "yes" && facts.text("readonly") != "on" &&
         facts.number("written") == 0;
}

}  // namespace

namespace {

tl::unexpected<Error> as_missing(Error error, const DatasetName& name) {
  if (error.code != ErrorCode::not_found) return fail(std::move(error));
  return fail(ErrorCode::not_found, "there is no dataset " + name.str());
}

}  // namespace

Result<Record> Inventory::glance(const DatasetName& name) const {
  std::string full = zfs_.full(name);
  auto found = zfs_.datasets(full, Reach::itself);
  if (!found) return as_missing(std::move(found).error(), name);
  return assemble(name, found->at(full), {}, {});
}

Result<Record> Inventory::look(const DatasetName& name, Freshness freshness) {
  const bool exact = freshness == Freshness::exact;
  std::string full = zfs_.full(name);
  for (bool synced : {!exact, true}) {
    auto found = zfs_.datasets(full, Reach::itself);
    if (!found) return as_missing(std::move(found).error(), name);
    const Facts& facts = found->at(full);
    if (!synced && may_lag(facts)) {
      ZED_CHECK(zfs_.sync());
      continue;
    }
    ZED_TRY(auto rows, zfs_.snapshots(full));
    ZED_TRY(auto snapshots, facts_of(counting(rows, facts)));
    Record record = assemble(name, facts, rows, snapshots);
    settle_changed(record);
    if (exact) {
      ZED_TRY(auto bookmarks, zfs_.bookmarks(full, Reach::itself));
      for (BookmarkRow& row : bookmarks)
        record.dataset.bookmarks.push_back(std::move(row.bookmark));
    }
    return record;
  }
  return fail(ErrorCode::internal, "looked twice at " + name.str() + " and saw nothing");
}

Result<std::vector<Record>> Inventory::all(Freshness freshness) {
  const bool exact = freshness == Freshness::exact;
  for (bool synced : {!exact, true}) {
    ZED_TRY(auto datasets, zfs_.datasets(zfs_.root(), Reach::tree));
    const bool lags = std::any_of(datasets.begin(), datasets.end(), [this](const auto& entry) {
      return zfs_.relative(entry.first) && may_lag(entry.second);
    });
    if (!synced && lags) {
      ZED_CHECK(zfs_.sync());
      continue;
    }
    using Columns = Zfs::Columns;
    ZED_TRY(auto listed, zfs_.all_snapshots(knows_nothing() ? Columns::all : Columns::fast));
    keep_only(listed);
    std::map<std::string, std::vector<SnapshotRow>> rows;
    for (SnapshotRow& row : listed)
      rows[row.dataset].push_back(std::move(row));
    std::vector<SnapshotRow> wanted;
    for (const auto& [full, facts] : datasets) {
      if (!zfs_.relative(full)) continue;
      auto some = counting(rows[full], facts);
      wanted.insert(wanted.end(), some.begin(), some.end());
    }
    ZED_TRY(auto snapshots, facts_of(wanted));
    std::vector<Record> records;
    for (const auto& [full, facts] : datasets)
      if (auto name = zfs_.relative(full))
        records.push_back(assemble(*name, facts, rows[full], snapshots));
    for (Record& record : records)
      settle_changed(record);
    std::sort(records.begin(), records.end(),
              [](const Record& a, const Record& b) { return a.dataset.name < b.dataset.name; });
    if (exact) ZED_CHECK(add_bookmarks(records));
    return records;
  }
  return fail(ErrorCode::internal, "looked twice at " + zfs_.root() + " and saw nothing");
}

Status Inventory::add_bookmarks(std::vector<Record>& records) const {
  ZED_TRY(auto listed, zfs_.bookmarks(zfs_.root(), Reach::tree));
  std::map<DatasetName, Record*> by_name;
  for (Record& record : records)
    by_name[record.dataset.name] = &record;
  for (BookmarkRow& row : listed) {
    auto name = zfs_.relative(row.dataset);
    auto found = name ? by_name.find(*name) : by_name.end();
    if (found != by_name.end()) found->second->dataset.bookmarks.push_back(row.bookmark);
  }
  return {};
}

// ---- changes ------------------------------------------------------------------------------------

void ChangeLog::take(const std::vector<Record>& now) {
  std::map<DatasetName, std::size_t> looks;
  for (const Record& record : now)
    looks[record.dataset.name] = looks_of(record);
  std::uint64_t next = counter_ + 1;
  bool moved = false;
  for (auto& [name, seen] : seen_) {
    if (seen.gone || looks.contains(name)) continue;
    seen = {0, next, true};
    moved = true;
  }
  for (const auto& [name, look] : looks) {
    auto found = seen_.find(name);
    if (found != seen_.end() && !found->second.gone && found->second.looks == look) continue;
    seen_[name] = {look, next, false};
    moved = true;
  }
  if (moved) counter_ = next;
  auto is_gone = [](const auto& item) { return item.second.gone; };
  if (std::count_if(seen_.begin(), seen_.end(), is_gone) <= static_cast<std::ptrdiff_t>(most_gone))
    return;
  std::erase_if(seen_, is_gone);
  known_from_ = counter_;
}

std::pair<std::string, std::vector<DatasetName>> ChangeLog::since(const std::string& cursor,
                                                                  const std::vector<Record>& now) {
  take(now);
  std::optional<std::uint64_t> known;
  if (cursor.starts_with(instance_ + "-"))
    known = parse_number<std::uint64_t>(std::string_view(cursor).substr(instance_.size() + 1));
  const bool ours = known && *known <= counter_ && *known >= known_from_;
  std::vector<DatasetName> names;
  for (const auto& [name, seen] : seen_)
    if (ours ? seen.changed_at > *known : !seen.gone) names.push_back(name);
  return {instance_ + "-" + std::to_string(counter_), std::move(names)};
}

}  // namespace zed::store::zfs
