#include "store/dir/metadata.hpp"

#include <algorithm>

#include "base/frame.hpp"
#include "base/json.hpp"
#include "base/number.hpp"
#include "store/dir/edits.hpp"
#include "store/dir/lines.hpp"

namespace zed::store {
namespace {

/// 1: without edits; read as well.
constexpr std::int64_t format = 2;

/// Reads a whole catalog line by line; a dataset is complete when the next one begins.
class Reader {
public:
  Status line(const Value& line) {
    if (line.find("format") != nullptr) return header(line);
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
    ZED_CHECK(read_member(line, "format", found));
    if (found != format && found != 1)
      return fail(ErrorCode::unsupported, "a store of format " + std::to_string(found),
                  "run the version of Zed that wrote it, or a newer one");
    if (count_ != 0) return fail(ErrorCode::corrupt, "a second beginning");
    ZED_CHECK(read_member(line, "pool", metadata_.pool));
    std::uint64_t counter = 0;
    ZED_CHECK(read_member(line, "counter", counter));
    metadata_.catalog.restore_counter(counter);
    return {};
  }
  Status dataset(const Value& line) {
    ZED_CHECK(flush());
    DatasetName name;
    ZED_CHECK(read_member(line, "dataset", name));
    ZED_TRY(record_, read_dataset(line));
    name_ = name;
    return {};
  }
  Status end(const Value& line) {
    ZED_CHECK(flush());
    std::uint64_t wanted = 0;
    ZED_CHECK(read_member(line, "end", wanted));
    ended_ = true;
    if (wanted != count_) return fail(ErrorCode::corrupt, "lines are missing");
    return {};
  }
  Status flush() {
    if (!name_) return {};
    DatasetName name = *name_;
    name_.reset();
    return metadata_.catalog.restore(name, std::move(record_));
  }

  Metadata metadata_;
  std::optional<DatasetName> name_;
  DatasetRecord record_;
  std::uint64_t count_ = 0;
  bool ended_ = false;
};

tl::unexpected<Error> damaged(Error error, std::size_t line) {
  if (error.code != ErrorCode::unsupported) error.code = ErrorCode::corrupt;
  return fail(std::move(error).with("line " + std::to_string(line) + " of the catalog"));
}

/// Whether each run of zeros in what follows byte `offset` of the file ends where a sector or the
/// file does, as those do that were never written. `has_zeros`: whether there is one.
bool zeros_end_sectors(std::string_view tail, std::size_t offset, bool& has_zeros) {
  constexpr std::size_t sector = 512;
  for (std::size_t at = 0; at < tail.size(); ++at) {
    if (tail[at] != '\0') continue;
    has_zeros = true;
    const bool ends = at + 1 == tail.size() || tail[at + 1] != '\0';
    if (ends && at + 1 != tail.size() && (offset + at + 1) % sector != 0) return false;
  }
  return true;
}

/// Whether the text is the beginning of a record in its frame, short of at least a byte.
bool begins_a_record(std::string_view text) {
  constexpr std::string_view head = "xxxxxxxx xxxxxxxx ";
  for (std::size_t at = 0; at < std::min(text.size(), head.size()); ++at) {
    const bool is_hex =
        (text[at] >= '0' && text[at] <= '9') || (text[at] >= 'a' && text[at] <= 'f');
    if (head[at] == ' ' ? text[at] != ' ' : !is_hex) return false;
  }
  if (text.size() < head.size()) return true;
  auto length = parse_number<std::uint32_t>(text.substr(0, 8), 16);
  return length && *length <= longest_edit && text.size() < frame_size + *length &&
         text.find('\n') == std::string_view::npos;
}

/// What may follow the last whole record after a crash (metadata.hpp).
bool is_torn(std::string_view tail, std::size_t offset) {
  bool has_zeros = false;
  if (!zeros_end_sectors(tail, offset, has_zeros)) return false;
  return has_zeros || begins_a_record(tail);
}

Error damaged_change(std::size_t at) {
  return Error{ErrorCode::corrupt, "a change is damaged, not torn by a crash", {}, {}}.hinted(
      "bring the file `catalog` back from a backup; or give up this change and all after it "
      "(`truncate -s " +
      std::to_string(at) + " catalog`): what the catalog then does not name is kept in lost/");
}

/// Reads up to the end of the whole catalog; `number` becomes its last line's.
Result<Metadata> read_whole(std::string_view text, std::size_t& number) {
  Reader reader;
  std::size_t at = 0;
  while (!reader.ended()) {
    ++number;
    std::size_t newline = text.find('\n', at);
    if (newline == std::string_view::npos)
      return fail(ErrorCode::corrupt, "the catalog ends before its last line");
    auto line = parse_json(text.substr(at, newline - at));
    auto read = line ? reader.line(*line) : fail(line.error());
    if (!read) return damaged(std::move(read).error(), number);
    at = newline + 1;
  }
  Metadata metadata = reader.take();
  metadata.whole = metadata.size = at;
  return metadata;
}

}  // namespace

std::string render_catalog(const std::string& pool, const Catalog& catalog) {
  Value header = Value::map();
  header.set("format", format);
  header.set("pool", pool);
  header.set("counter", to_value(catalog.counter()));
  std::string text = to_json(header) + "\n";
  std::uint64_t count = 0;
  for (const auto& [name, record] : catalog.datasets()) {
    text += to_json(dataset_line(name, *record)) + "\n";
    count += 1 + record->snapshots.size();
    for (const SnapshotRef& snapshot : record->snapshots)
      text += to_json(snapshot_line(*snapshot)) + "\n";
  }
  Value end = Value::map();
  end.set("end", to_value(count));
  return text + to_json(end) + "\n";
}

Result<Metadata> parse_metadata(std::string_view text) {
  std::size_t number = 0;
  ZED_TRY(Metadata metadata, read_whole(text, number));
  while (metadata.size < text.size()) {
    ++number;
    std::string_view rest = text.substr(metadata.size);
    auto edit = record_at(rest, longest_edit);
    if (!edit && (!is_torn(rest, metadata.size) || holds_a_record_after(rest, longest_edit)))
      return damaged(damaged_change(metadata.size), number);
    if (!edit) break;  // torn by a crash: it never counted
    auto applied = apply_edit(*edit, metadata.catalog);
    if (!applied) return damaged(std::move(applied).error(), number);
    metadata.size += frame_size + edit->size();
  }
  return metadata;
}

}  // namespace zed::store
