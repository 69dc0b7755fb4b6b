#pragma once
// The lines of a catalog's text (dir/metadata.hpp), one record each.

#include "base/describe.hpp"
#include "store/catalog.hpp"

namespace zed::store {

/// Without its snapshots.
Value dataset_line(const DatasetName& name, const DatasetRecord& record);
Value snapshot_line(const SnapshotRecord& record);
/// Errors: `corrupt` and what decoding says.
Result<DatasetRecord> read_dataset(const Value& line);
Result<SnapshotRecord> read_snapshot(const Value& line);

/// A member that may be absent: then `out` stays as it is.
template <class T> Status read_member(const Value& line, std::string_view key, T& out) {
  const Value* member = line.find(key);
  if (member == nullptr) return {};
  auto decoded = from_value<T>(*member);
  if (!decoded) return fail(std::move(decoded).error().with(std::string(key)));
  out = std::move(*decoded);
  return {};
}

}  // namespace zed::store
