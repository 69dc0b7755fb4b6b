#include "store/dir/lines.hpp"

#include "base/text.hpp"

namespace zed::store {
namespace {

Value value_of(const Properties& properties) {
  Value value = Value::map();
  for (const auto& [name, text] : properties)
    value.set(name, percent_encode(text));
  return value;
}

Status read_properties(const Value& line, Properties& out) {
  std::map<std::string, std::string> encoded;
  ZED_CHECK(read_member(line, "properties", encoded));
  for (auto& [name, text] : encoded) {
    ZED_TRY(out[name], percent_decode(text));
  }
  return {};
}

}  // namespace

Value dataset_line(const DatasetName& name, const DatasetRecord& record) {
  Value line = Value::map();
  line.set("dataset", name.str());
  line.set("changed", to_value(record.changed_at));
  line.set("readonly", record.readonly);
  if (!record.live.empty()) line.set("live", record.live);
  if (record.origin) line.set("origin", to_value(*record.origin));
  line.set("properties", value_of(record.properties));
  if (!record.partial) return line;
  Value partial = Value::map();
  partial.set("snapshot", record.partial->snapshot.str());
  if (record.partial->base) partial.set("base", record.partial->base->str());
  partial.set("files", record.partial->files);
  partial.set("made_dataset", record.partial->made_dataset);
  return line.set("partial", std::move(partial));
}

Value snapshot_line(const SnapshotRecord& record) {
  const Snapshot& snapshot = record.snapshot;
  Value line = Value::map();
  line.set("snapshot", snapshot.name);
  line.set("files", record.files);
  line.set("id", snapshot.id.str());
  line.set("guid", to_value(snapshot.guid));
  line.set("createtxg", to_value(snapshot.createtxg));
  line.set("created", to_value(snapshot.created));
  line.set("used", to_value(snapshot.used));
  line.set("referenced", to_value(snapshot.referenced));
  line.set("properties", value_of(snapshot.properties));
  if (!record.holds.empty()) line.set("holds", to_value(record.holds));
  return line;
}

Result<DatasetRecord> read_dataset(const Value& line) {
  DatasetRecord record;
  ZED_CHECK(read_member(line, "changed", record.changed_at));
  ZED_CHECK(read_member(line, "readonly", record.readonly));
  ZED_CHECK(read_member(line, "live", record.live));
  ZED_CHECK(read_member(line, "origin", record.origin));
  ZED_CHECK(read_properties(line, record.properties));
  const Value* partial = line.find("partial");
  if (partial == nullptr) return record;
  record.partial.emplace();
  ZED_CHECK(read_member(*partial, "snapshot", record.partial->snapshot));
  ZED_CHECK(read_member(*partial, "base", record.partial->base));
  ZED_CHECK(read_member(*partial, "files", record.partial->files));
  ZED_CHECK(read_member(*partial, "made_dataset", record.partial->made_dataset));
  return record;
}

Result<SnapshotRecord> read_snapshot(const Value& line) {
  SnapshotRecord record;
  ZED_CHECK(read_member(line, "snapshot", record.snapshot.name));
  ZED_CHECK(read_member(line, "files", record.files));
  ZED_CHECK(read_member(line, "id", record.snapshot.id));
  ZED_CHECK(read_member(line, "guid", record.snapshot.guid));
  ZED_CHECK(read_member(line, "createtxg", record.snapshot.createtxg));
  ZED_CHECK(read_member(line, "created", record.snapshot.created));
  ZED_CHECK(read_member(line, "used", record.snapshot.used));
  ZED_CHECK(read_member(line, "referenced", record.snapshot.referenced));
  ZED_CHECK(read_member(line, "holds", record.holds));
  ZED_CHECK(read_properties(line, record.snapshot.properties));
  if (!is_snapshot_word(record.snapshot.name))
    return fail(ErrorCode::corrupt, "a snapshot without a legal name");
  return record;
}

}  // namespace zed::store
