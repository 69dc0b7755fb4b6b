#pragma once
// Whole small files, read within bounds and written so that a crash leaves no half of one.

#include <filesystem>
#include <string>
#include <string_view>

#include "base/describe.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "net/fd.hpp"

namespace zed::net {

/// What a write has survived when it returns. Whoever reads the file sees it whole or as it was, in
/// each case, while the machine runs.
enum class Endures {
  /// The end of any process. After a loss of power the file may be old, new, or not whole.
  processes,
  /// A loss of power too, with one fsync. Until then the file may be not whole: for files that are
  /// written once, whose reader takes one that is not whole for none.
  power_once_written,
  /// A loss of power at any moment: write, fsync, rename, fsync of the folder.
  power,
};

/// Mode 0600. Errors: `no_space`, `io`, `not_found` (no such folder).
Status write_file(const std::filesystem::path& path, std::string_view text, Endures endures);
inline Status write_file_durably(const std::filesystem::path& path, std::string_view text) {
  return write_file(path, text, Endures::power);
}
/// At most `limit` bytes. Errors: `not_found`, `io`, `invalid` if it is longer.
Result<std::string> read_file(const std::filesystem::path& path, Bytes limit = mebibytes(4));

/// All of it, however many calls that takes. `what` names the attempt in errors.
Status write_all(int fd, std::string_view text, const std::string& what);
/// Makes the names in the folder of `path` durable.
Status sync_folder_of(const std::filesystem::path& path);

/// A struct that base/describe.hpp can describe, as JSON for people.
template <class T>
Status write_record(const std::filesystem::path& path, const T& record,
                    Endures endures = Endures::power) {
  return write_file(path, to_json_pretty(to_value(record)), endures);
}
/// Errors: as read_file(), and `invalid` for what is no such record.
template <class T> Result<T> read_record(const std::filesystem::path& path) {
  ZED_TRY(std::string text, read_file(path));
  auto value = parse_json(text);
  if (!value) return fail(std::move(value).error().with("read " + path.string()));
  auto record = from_value<T>(*value);
  if (!record) return fail(std::move(record).error().with("read " + path.string()));
  return record;
}

}  // namespace zed::net
