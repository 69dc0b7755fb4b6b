#include "store/dir/metadata.hpp"

#include "base/describe.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace zed::store {
namespace {

constexpr std::int64_t format = 1;

Value value_of(const Properties& properties) {
  Value value = Value::map();
  for (const auto& [name, text] : properties)
    value.set(name, percent_encode(text));
  return value;
}

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

template <class T> Status read(const Value& line, std::string_view key, T& out) {
  const Value* member = line.find(key);
  if (member == nullptr) return {};
  auto decoded = from_value<T>(*member);
  if (!decoded) return fail(std::move(decoded).error().with(std::string(key)));
  out = std::move(*decoded);
  return {};
}

Status read_properties(const Value& line, Properties& out) {
  std::map<std::string, std::string> encoded;
  ZED_CHECK(read(line, "properties", encoded));
  for (auto& [name, text] : encoded) {
    ZED_TRY(out[name], percent_decode(text));
  }
  return {};
}

Result<DatasetRecord> read_dataset(const Value& line) {
  DatasetRecord record;
  ZED_CHECK(read(line, "changed", record.changed_at));
  ZED_CHECK(read(line, "readonly", record.readonly));
  ZED_CHECK(read(line, "live", record.live));
  ZED_CHECK(read(line, "origin", record.origin));
  ZED_CHECK(read_properties(line, record.properties));
  const Value* partial = line.find("partial");
  if (partial == nullptr) return record;
  record.partial.emplace();
  ZED_CHECK(read(*partial, "snapshot", record.partial->snapshot));
  ZED_CHECK(read(*partial, "base", record.partial->base));
  ZED_CHECK(read(*partial, "files", record.partial->files));
  ZED_CHECK(read(*partial, "made_dataset", record.partial->made_dataset));
  return record;
}

Result<SnapshotRecord> read_snapshot(const Value& line) {
  SnapshotRecord record;
  ZED_CHECK(read(line, "snapshot", record.snapshot.name));
  ZED_CHECK(read(line, "files", record.files));
  ZED_CHECK(read(line, "id", record.snapshot.id));
  ZED_CHECK(read(line, "guid", record.snapshot.guid));
  ZED_CHECK(read(line, "createtxg", record.snapshot.createtxg));
  ZED_CHECK(read(line, "created", record.snapshot.created));
  ZED_CHECK(read(line, "used", record.snapshot.used));
  ZED_CHECK(read(line, "referenced", record.snapshot.referenced));
  ZED_CHECK(read(line, "holds", record.holds));
  ZED_CHECK(read_properties(line, record.snapshot.properties));
  if (!is_snapshot_word(record.snapshot.name))
    return fail(ErrorCode::corrupt, "a snapshot without a legal name");
  return record;
}

/// Reads lines one after the other; a dataset is complete when the next one begins.
class Reader {
public:
  Status line(const Value& line) {
    if (line.find("format") != nullptr) return header(line);
    if (ended_) return fail(ErrorCode::corrupt, "a line after the end");
    if (line.find("end") != nullptr) return end(line);
    ++count_;
    if (line.find("dataset") != nullptr) return dataset(line);
    if (!name_) return fail(ErrorCode::corrupt, "a snapshot without a dataset");
    ZED_TRY(auto record, read_snapshot(line));
    record_.snapshots.push_back(std::make_shared<const SnapshotRecord>(std::move(record)));
    return {};
  }
  bool ended() const { return ended_; }
  Metadata take() { return std::move(metadata_); }

private:
  Status header(const Value& line) {
    std::int64_t found = 0;
    ZED_CHECK(read(line, "format", found));
    if (found != format)
      return fail(ErrorCode::unsupported, "a store of format " + std::to_string(found),
                  "run the version of Zed that wrote it, or a newer one");
    ZED_CHECK(read(line, "pool", metadata_.pool));
    std::uint64_t counter = 0;
    ZED_CHECK(read(line, "counter", counter));
    metadata_.catalog.restore_counter(counter);
    return {};
  }
  Status dataset(const Value& line) {
    ZED_CHECK(flush());
    DatasetName name;
    ZED_CHECK(read(line, "dataset", name));
    ZED_TRY(record_, read_dataset(line));
    name_ = name;
    return {};
  }
  Status end(const Value& line) {
    ZED_CHECK(flush());
    std::uint64_t wanted = 0;
    ZED_CHECK(read(line, "end", wanted));
    ended_ = true;
    if (wanted != count_) return fail(ErrorCode::corrupt, "lines are missing");
    return {};
  }
  Status flush() {
    if (!name_) return {};
    DatasetName name = *name_;
    name_.reset();
    return metadata_.catalog.restore(std::move(name), std::move(record_));
  }

  Metadata metadata_;
  std::optional<DatasetName> name_;
  DatasetRecord record_;
  std::uint64_t count_ = 0;
  bool ended_ = false;
};

}  // namespace

std::string MetadataWriter::render(const std::string& pool, const Catalog& catalog) {
  Value header = Value::map();
  header.set("format", format);
  header.set("pool", pool);
  header.set("counter", to_value(catalog.counter()));
  std::string text = to_json(header) + "\n";
  std::map<SnapshotRef, std::string> lines;
  std::uint64_t count = 0;
  for (const auto& [name, record] : catalog.datasets()) {
    text += to_json(dataset_line(name, *record)) + "\n";
    count += 1 + record->snapshots.size();
    for (const SnapshotRef& snapshot : record->snapshots) {
      auto known = lines_.extract(snapshot);
      auto line = known ? lines.insert(std::move(known)).position
                        : lines.emplace(snapshot, to_json(snapshot_line(*snapshot)) + "\n").first;
      text += line->second;
    }
  }
  lines_ = std::move(lines);
  Value end = Value::map();
  end.set("end", to_value(count));
  return text + to_json(end) + "\n";
}

Result<Metadata> parse_metadata(std::string_view text) {
  Reader reader;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    std::size_t newline = text.find('\n');
    if (newline == std::string_view::npos) break;
    auto line = parse_json(text.substr(0, newline));
    auto read = line ? reader.line(*line) : fail(line.error());
    if (!read) {
      Error error = std::move(read).error();
      if (error.code != ErrorCode::unsupported) error.code = ErrorCode::corrupt;
      return fail(std::move(error).with("line " + std::to_string(number) + " of the catalog"));
    }
    text.remove_prefix(newline + 1);
  }
  if (!reader.ended() || !text.empty())
    return fail(ErrorCode::corrupt, "the catalog ends before its last line");
  return reader.take();
}

}  // namespace zed::store
