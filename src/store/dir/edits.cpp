#include "store/dir/edits.hpp"

#include <algorithm>
#include <set>

#include "base/frame.hpp"
#include "base/json.hpp"
#include "store/dir/lines.hpp"

namespace zed::store {
namespace {

/// A dataset as an edit has it: of its snapshots only those that are new or changed.
Value edited_dataset(const DatasetName& name, const DatasetRef* before, const DatasetRecord& now) {
  Value line = dataset_line(name, now);
  static const std::vector<SnapshotRef> none;
  const std::vector<SnapshotRef>& then = before != nullptr ? (*before)->snapshots : none;
  // Snapshots come and go at the end, mostly: what both begin with needs no further look.
  auto [then_rest, now_rest] =
      std::mismatch(then.begin(), then.end(), now.snapshots.begin(), now.snapshots.end());
  const std::set<SnapshotRef> old(then_rest, then.end());
  std::set<std::string> names;
  Value::List put;
  for (auto snapshot = now_rest; snapshot != now.snapshots.end(); ++snapshot) {
    names.insert((*snapshot)->snapshot.name);
    if (!old.contains(*snapshot)) put.push_back(snapshot_line(**snapshot));
  }
  Value::List dropped;
  for (const SnapshotRef& snapshot : old)
    if (!names.contains(snapshot->snapshot.name)) dropped.emplace_back(snapshot->snapshot.name);
  if (!put.empty()) line.set("put", std::move(put));
  if (!dropped.empty()) line.set("dropped", std::move(dropped));
  return line;
}

Status read_snapshots(const Value& line, std::vector<SnapshotRef>& snapshots) {
  std::vector<std::string> dropped;
  ZED_CHECK(read_member(line, "dropped", dropped));
  auto without = [&snapshots](const std::string& name) {
    return std::erase_if(snapshots, [&](const SnapshotRef& s) { return s->snapshot.name == name; });
  };
  for (const std::string& name : dropped)
    if (without(name) == 0) return fail(ErrorCode::corrupt, "no snapshot " + name + " to drop");
  const Value* put = line.find("put");
  if (put == nullptr) return {};
  if (put->as_list() == nullptr) return fail(ErrorCode::corrupt, "\"put\" is no list");
  for (const Value& each : *put->as_list()) {
    ZED_TRY(auto record, read_snapshot(each));
    without(record.snapshot.name);
    snapshots.push_back(std::make_shared<const SnapshotRecord>(std::move(record)));
  }
  std::sort(snapshots.begin(), snapshots.end(), [](const SnapshotRef& a, const SnapshotRef& b) {
    return a->snapshot.createtxg < b->snapshot.createtxg;
  });
  return {};
}

Status apply_dataset(const Value& line, Catalog& catalog) {
  DatasetName name;
  ZED_CHECK(read_member(line, "dataset", name));
  ZED_TRY(auto record, read_dataset(line));
  if (const DatasetRef* known = catalog.datasets().find(name))
    record.snapshots = (*known)->snapshots;
  ZED_CHECK(read_snapshots(line, record.snapshots));
  catalog.drop(name);
  return catalog.restore(name, std::move(record));
}

}  // namespace

Status apply_edit(std::string_view text, Catalog& catalog) {
  ZED_TRY(Value edit, parse_json(text, {longest_edit, JsonLimits{}.max_depth}));
  std::uint64_t from = 0;
  std::uint64_t counter = 0;
  ZED_CHECK(read_member(edit, "from", from));
  ZED_CHECK(read_member(edit, "counter", counter));
  if (from != catalog.counter() || counter <= from)
    return fail(ErrorCode::corrupt, "a change that does not follow on from the one before it");
  std::vector<DatasetName> gone;
  ZED_CHECK(read_member(edit, "gone", gone));
  for (const DatasetName& name : gone)
    catalog.drop(name);
  const Value* datasets = edit.find("datasets");
  const Value::List none;
  const Value::List* lines = datasets == nullptr ? &none : datasets->as_list();
  if (lines == nullptr) return fail(ErrorCode::corrupt, "\"datasets\" is no list");
  for (const Value& line : *lines)
    ZED_CHECK(apply_dataset(line, catalog));
  catalog.restore_counter(counter);
  return {};
}

std::string render_edit(const CatalogEdit& edit) {
  Value line = Value::map();
  line.set("from", to_value(edit.before.counter()));
  line.set("counter", to_value(edit.after.counter()));
  Value::List datasets;
  Value::List gone;
  for (const DatasetName& name : edit.touched) {
    const DatasetRef* before = edit.before.datasets().find(name);
    if (const DatasetRef* now = edit.after.datasets().find(name))
      datasets.push_back(edited_dataset(name, before, **now));
    else if (before != nullptr)
      gone.emplace_back(name.str());
  }
  if (!datasets.empty()) line.set("datasets", std::move(datasets));
  if (!gone.empty()) line.set("gone", std::move(gone));
  return framed(to_json(line));
}

}  // namespace zed::store
