#pragma once
// The file `catalog` of a dir store: a whole catalog, then each edit since, a record each
// (dir/metadata.hpp says what they hold). An edit is one write and one fdatasync. Once the edits
// are longer than what they began with, the file is replaced by a whole catalog again (write,
// fsync, rename, fsync of the folder), so its length and the cost of an edit stay in proportion to
// what the catalog holds.
//
// Only the last write can be torn by a crash, and nobody was told of it: it does not count and is
// cut off once nothing contradicts that (dir/sweep.hpp). Other damage is `corrupt`, never skipped.

#include <cstdint>
#include <optional>
#include <string>

#include "store/dir/disk.hpp"
#include "store/dir/metadata.hpp"
#include "store/file_space.hpp"

namespace zed::store {

/// One call at a time.
class CatalogFile {
public:
  /// `root` is the store's folder; it outlives this.
  explicit CatalogFile(int root) : root_(root) {}

  /// Reads the file and makes ready to append. Errors: `not_found`, `corrupt`, `unsupported`, `io`.
  Result<Metadata> load();
  /// The byte from which on the file seems torn by a crash; none if it ends with a whole record.
  std::optional<std::uint64_t> torn_at() const;
  /// Makes that so.
  Status cut_torn_end();
  /// Replaces everything.
  Status replace(const std::string& pool, const Catalog& catalog);
  /// After an error the file is as before, or as good as: what may have got into it is cut off or
  /// written over before anything else is said to be durable.
  Status append(const std::string& pool, const CatalogEdit& edit);

private:
  Status append_record(const std::string& record);
  bool is_long(std::size_t more) const;

  int root_;
  disk::Fd file_;
  std::uint64_t whole_ = 0;  ///< bytes of the catalog that the file begins with
  std::uint64_t size_ = 0;   ///< bytes that count
  bool is_torn_ = false;     ///< beyond size_ there may be bytes that do not count
};

}  // namespace zed::store
