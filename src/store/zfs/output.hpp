#pragma once
// What the zfs and zpool commands print (LC_ALL=C, -H -p), parsed. Pure: text in, values out. Rows
// that are not rows are dropped, never guessed at: a value that somebody set by hand may contain
// tabs and newlines (ours are percent-encoded), and one odd value must not hide a pool.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/dataset.hpp"

namespace zed::store::zfs {

/// Our properties' prefix. Names in core go without it.
inline constexpr std::string_view prefix = "com.zed:";

/// A value as OpenZFS stores it: printable ASCII without tab, newline and '%'. An empty value is
/// "%", which no other value becomes.
std::string encode_value(std::string_view value);
/// What cannot be decoded was set by hand and stands for itself.
std::string decode_value(std::string_view stored);

/// One row of `-o name,property,value,source`.
struct PropertyRow {
  std::string name;
  std::string property;
  std::string value;
  std::string source;  ///< "local", "received", "inherited from a", "default", "temporary", "-"

  /// Whether it says something about this dataset and not about a parent.
  bool is_own() const { return source == "local" || source == "received"; }
};
std::vector<PropertyRow> parse_properties(std::string_view output);

/// One row of `zfs list -t snapshot -o name,guid,createtxg[,used,referenced,creation]`.
struct SnapshotRow {
  std::string dataset;
  std::string word;
  std::uint64_t guid = 0;
  std::uint64_t createtxg = 0;
  std::uint64_t used = 0;
  std::uint64_t referenced = 0;
  std::int64_t creation = 0;  ///< seconds since 1970
};
/// In ascending createtxg within a dataset; rows with other names than a dataset and a word are
/// dropped.
std::vector<SnapshotRow> parse_snapshots(std::string_view output);

/// One row of `zfs list -t bookmark -o name,guid,createtxg` of a bookmark that is ours by its name
/// (bookmark_word): what is left of a snapshot that a peer has.
struct BookmarkRow {
  std::string dataset;
  std::string word;
  Bookmark bookmark;
};
/// In ascending createtxg within a dataset; a person's bookmarks are left out.
std::vector<BookmarkRow> parse_bookmarks(std::string_view output);
/// "zed:<peer>:<id>": a bookmark has no properties, so its name says whose snapshot it was.
std::string bookmark_word(const NodeName& peer, const CheckpointId& id);

/// All that `zfs get all` says about one dataset or snapshot.
struct Facts {
  std::map<std::string, std::string> native;  ///< by name, whatever the source
  Properties own;                             ///< com.zed:*, own, decoded, without the prefix

  std::string text(const std::string& property) const;      ///< "" where it is not set or "-"
  std::uint64_t number(const std::string& property) const;  ///< 0 where it is no number
};
/// By name, in the order of the names.
std::map<std::string, Facts> gather(const std::vector<PropertyRow>& rows);

/// What own_properties_program returned, as `zfs program -j` prints it: by snapshot com.zed:*, own,
/// decoded, without the prefix. None if it cannot be read: OpenZFS stops in the middle of a value
/// that is not ASCII.
std::optional<std::map<std::string, Properties>> parse_own_properties(std::string_view output);

/// The estimate of `zfs send -nvP`: "size\t<bytes>".
std::optional<std::uint64_t> parse_estimate(std::string_view output);

/// What `zfs send -nvt TOKEN` says before it looks whether the snapshot is here.
struct ResumePoint {
  std::uint64_t object = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  ///< received so far
  std::uint64_t to_guid = 0;
  std::uint64_t from_guid = 0;  ///< 0: a full stream
  std::string to_name;          ///< where the first sender had it
  bool embedded = false;
  bool large_blocks = false;
  bool compressed = false;
  bool raw = false;
};
/// Errors: `invalid` if it is no token of OpenZFS.
Result<ResumePoint> parse_resume_point(std::string_view output);
/// Whether the text can be a token at all: "1-", then hexadecimal digits and '-', at most 64 KiB.
bool is_resume_token(std::string_view text);

struct Mount {
  std::string source;  ///< "tank/jobs/a" or "tank/jobs/a@epoch-1"
  std::string path;
  bool readonly = false;
};
/// The zfs lines of /proc/self/mounts.
std::vector<Mount> parse_mounts(std::string_view table);

struct Version {
  int major = 0;
  int minor = 0;
  std::string text;  ///< "2.1.11"

  bool at_least(int wanted_major, int wanted_minor) const {
    return major != wanted_major ? major > wanted_major : minor >= wanted_minor;
  }
};
/// Of the kernel module where `zfs version` tells, else of the tools. Errors: `unsupported`.
Result<Version> parse_version(std::string_view output);

}  // namespace zed::store::zfs
