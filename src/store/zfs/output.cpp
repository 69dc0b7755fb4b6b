#include "store/zfs/output.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace zed::store::zfs {
namespace {

constexpr std::string_view empty_value = "%";
constexpr std::string_view bookmark_prefix = "zed:";
constexpr std::size_t longest_token = std::size_t{64} << 10;

/// Calls `visit` with the fields of each line.
template <class Visit> void for_each_row(std::string_view output, Visit&& visit) {
  while (!output.empty()) {
    std::size_t end = std::min(output.find('\n'), output.size());
    if (end != 0) visit(split(output.substr(0, end), '\t'));
    output.remove_prefix(std::min(end + 1, output.size()));
  }
}

bool is_source(std::string_view word) {
  return word == "local" || word == "received" || word == "default" || word == "temporary" ||
         word == "-" || word.starts_with("inherited");
}

std::optional<SnapshotRow> snapshot_row(const std::vector<std::string>& fields) {
  if (fields.size() != 3 && fields.size() != 6) return std::nullopt;
  SnapshotRow row;
  std::size_t at = fields[0].find('@');
  if (at == std::string::npos) return std::nullopt;
  row.dataset = fields[0].substr(0, at);
  row.word = fields[0].substr(at + 1);
  if (!is_snapshot_word(row.word)) return std::nullopt;
  auto guid = parse_number<std::uint64_t>(fields[1]);
  auto createtxg = parse_number<std::uint64_t>(fields[2]);
  if (!guid || !createtxg) return std::nullopt;
  row.guid = *guid;
  row.createtxg = *createtxg;
  if (fields.size() == 3) return row;
  row.used = parse_number<std::uint64_t>(fields[3]).value_or(0);
  row.referenced = parse_number<std::uint64_t>(fields[4]).value_or(0);
  row.creation = parse_number<std::int64_t>(fields[5]).value_or(0);
  return row;
}

std::optional<BookmarkRow> bookmark_row(const std::vector<std::string>& fields) {
  const std::size_t hash = fields[0].find('#');
  if (fields.size() != 3 || hash == std::string::npos) return std::nullopt;
  BookmarkRow row;
  row.dataset = fields[0].substr(0, hash);
  row.word = fields[0].substr(hash + 1);
  const auto parts = split(row.word, ':');
  if (!row.word.starts_with(bookmark_prefix) || parts.size() != 3) return std::nullopt;
  auto peer = NodeName::parse(parts[1]);
  auto id = CheckpointId::parse(parts[2]);
  auto guid = parse_number<std::uint64_t>(fields[1]);
  auto createtxg = parse_number<std::uint64_t>(fields[2]);
  if (!peer || !id || !guid || !createtxg) return std::nullopt;
  row.bookmark = {peer->str(), *id, *guid, *createtxg};
  return row;
}

/// "\040" as the kernel writes a space in a mount table.
std::string unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto code = text[i] == '\\' && i + 3 < text.size()
                    ? parse_number<unsigned>(text.substr(i + 1, 3), 8)
                    : std::nullopt;
    if (code && *code < 256) {
      plain += static_cast<char>(*code);
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

/// "\tobject = 0x8" -> the number, of either base.
std::optional<std::uint64_t> token_number(std::string_view value) {
  if (value.starts_with("0x")) return parse_number<std::uint64_t>(value.substr(2), 16);
  return parse_number<std::uint64_t>(value);
}

}  // namespace

std::string encode_value(std::string_view value) {
  return value.empty() ? std::string(empty_value) : percent_encode(value);
}

std::string decode_value(std::string_view stored) {
  if (stored == empty_value) return {};
  auto decoded = percent_decode(stored);
  return decoded ? *decoded : std::string(stored);
}

std::vector<PropertyRow> parse_properties(std::string_view output) {
  std::vector<PropertyRow> rows;
  for_each_row(output, [&rows](const std::vector<std::string>& fields) {
    if (fields.size() != 4 || !is_source(fields[3])) return;
    rows.push_back({fields[0], fields[1], fields[2], fields[3]});
  });
  return rows;
}

std::vector<SnapshotRow> parse_snapshots(std::string_view output) {
  std::vector<SnapshotRow> rows;
  for_each_row(output, [&rows](const std::vector<std::string>& fields) {
    if (auto row = snapshot_row(fields)) rows.push_back(std::move(*row));
  });
  std::sort(rows.begin(), rows.end(), [](const SnapshotRow& a, const SnapshotRow& b) {
    if (a.dataset != b.dataset) return a.dataset < b.dataset;
    // Of one transaction group: no order is truer than another, but it must be the same each time.
    return a.createtxg != b.createtxg ? a.createtxg < b.createtxg : a.word < b.word;
  });
  return rows;
}

std::string bookmark_word(const NodeName& peer, const CheckpointId& id) {
  return std::string(bookmark_prefix) + peer.str() + ":" + id.str();
}

std::vector<BookmarkRow> parse_bookmarks(std::string_view output) {
  std::vector<BookmarkRow> rows;
  for_each_row(output, [&rows](const std::vector<std::string>& fields) {
    if (auto row = bookmark_row(fields)) rows.push_back(std::move(*row));
  });
  std::sort(rows.begin(), rows.end(), [](const BookmarkRow& a, const BookmarkRow& b) {
    if (a.dataset != b.dataset) return a.dataset < b.dataset;
    if (a.bookmark.createtxg != b.bookmark.createtxg)
      return a.bookmark.createtxg < b.bookmark.createtxg;
    return a.word < b.word;
  });
  return rows;
}

std::string Facts::text(const std::string& property) const {
  auto found = native.find(property);
  return found == native.end() || found->second == "-" ? std::string() : found->second;
}

std::uint64_t Facts::number(const std::string& property) const {
  return parse_number<std::uint64_t>(text(property)).value_or(0);
}

std::map<std::string, Facts> gather(const std::vector<PropertyRow>& rows) {
  std::map<std::string, Facts> facts;
  for (const PropertyRow& row : rows) {
    Facts& of = facts[row.name];
    if (row.property.find(':') == std::string::npos)
      of.native[row.property] = row.value;
    else if (row.property.starts_with(prefix) && row.is_own())
      of.own[row.property.substr(prefix.size())] = decode_value(row.value);
  }
  return facts;
}

std::optional<std::map<std::string, Properties>> parse_own_properties(std::string_view output) {
  auto value = parse_json(trim(output));
  const Value* returned = value ? value->find("return") : nullptr;
  if (returned == nullptr || returned->as_map() == nullptr) return std::nullopt;
  std::map<std::string, Properties> found;
  for (const Value::Member& snapshot : *returned->as_map()) {
    if (snapshot.value.as_map() == nullptr) return std::nullopt;
    Properties& own = found[snapshot.key];
    for (const Value::Member& property : *snapshot.value.as_map())
      if (const auto* text = property.value.as_text(); text && property.key.starts_with(prefix))
        own[property.key.substr(prefix.size())] = decode_value(*text);
  }
  return found;
}

std::optional<std::uint64_t> parse_estimate(std::string_view output) {
  std::optional<std::uint64_t> size;
  for_each_row(output, [&size](const std::vector<std::string>& fields) {
    if (fields.size() == 2 && fields[0] == "size") size = parse_number<std::uint64_t>(fields[1]);
  });
  return size;
}

Result<ResumePoint> parse_resume_point(std::string_view output) {
  ResumePoint point;
  std::map<std::string, std::string> values;
  for_each_row(output, [&values](const std::vector<std::string>& fields) {
    if (fields.size() != 2 || !fields[0].empty()) return;
    std::size_t equals = fields[1].find(" = ");
    if (equals != std::string::npos)
      values[fields[1].substr(0, equals)] = fields[1].substr(equals + 3);
  });
  auto number = [&values](const char* name) {
    auto found = values.find(name);
    return found == values.end() ? std::nullopt : token_number(found->second);
  };
  auto object = number("object");
  auto offset = number("offset");
  auto to_guid = number("toguid");
  if (!object || !offset || !to_guid)
    return fail(ErrorCode::invalid, "this is no resume token of OpenZFS",
                "abort the receive, then it begins anew");
  point.object = *object;
  point.offset = *offset;
  point.to_guid = *to_guid;
  point.bytes = number("bytes").value_or(0);
  point.from_guid = number("fromguid").value_or(0);
  point.to_name = values["toname"];
  point.embedded = values.contains("embedok");
  point.large_blocks = values.contains("largeblockok");
  point.compressed = values.contains("compressok");
  point.raw = values.contains("rawok");
  return point;
}

bool is_resume_token(std::string_view text) {
  return text.starts_with("1-") && text.size() <= longest_token &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-';
         });
}

std::vector<Mount> parse_mounts(std::string_view table) {
  std::vector<Mount> mounts;
  while (!table.empty()) {
    std::size_t end = std::min(table.find('\n'), table.size());
    auto fields = split(table.substr(0, end), ' ');
    table.remove_prefix(std::min(end + 1, table.size()));
    if (fields.size() < 4 || fields[2] != "zfs") continue;
    bool readonly = fields[3] == "ro" || fields[3].starts_with("ro,");
    mounts.push_back({unescape(fields[0]), unescape(fields[1]), readonly});
  }
  return mounts;
}

Result<Version> parse_version(std::string_view output) {
  Version version;
  for (const std::string& line : split(output, '\n')) {
    std::string_view rest = line;
    bool kernel = rest.starts_with("zfs-kmod-");
    if (!kernel && (!rest.starts_with("zfs-") || !version.text.empty())) continue;
    rest.remove_prefix(kernel ? 9 : 4);
    rest = rest.substr(0, rest.find('-'));
    auto parts = split(rest, '.');
    if (parts.size() < 2) continue;
    auto major = parse_number<int>(parts[0]);
    auto minor = parse_number<int>(parts[1]);
    if (major && minor) version = {*major, *minor, std::string(rest)};
  }
  if (version.text.empty())
    return fail(ErrorCode::unsupported, "`zfs version` does not say which OpenZFS this is",
                "OpenZFS 2.1 or later is needed");
  return version;
}

}  // namespace zed::store::zfs
