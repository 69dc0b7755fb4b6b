#include "store/dir/catalog_file.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "store/dir/edits.hpp"
#include "store/dir/layout.hpp"

namespace zed::store {
namespace {

constexpr std::size_t catalog_limit = std::size_t{2} << 30;
/// Edits up to this many bytes are kept however small the catalog is.
constexpr std::uint64_t always_kept = std::uint64_t{1} << 20;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

Result<Metadata> CatalogFile::load() {
  ZED_TRY(auto text, disk::read_all(root_, layout::catalog, catalog_limit));
  ZED_TRY(auto metadata, parse_metadata(text));
  ZED_TRY(file_, disk::open_for_writing(root_, layout::catalog, false));
  whole_ = metadata.whole;
  size_ = metadata.size;
  is_torn_ = size_ < text.size();
  return metadata;
}

std::optional<std::uint64_t> CatalogFile::torn_at() const {
  return is_torn_ ? std::optional(size_) : std::nullopt;
}

Status CatalogFile::cut_torn_end() {
  if (!is_torn_) return {};
  log_warning("store: the last change of the catalog was cut off by a crash and never counted");
  ZED_CHECK(disk::set_size(file_.get(), size_));
  ZED_CHECK(disk::sync(file_.get()));
  is_torn_ = false;
  return {};
}

Status CatalogFile::replace(const std::string& pool, const Catalog& catalog) {
  std::string text = render_catalog(pool, catalog);
  ZED_TRY(auto fresh, disk::open_for_writing(root_, layout::new_catalog, true));
  ZED_CHECK(disk::write_at(fresh.get(), 0, bytes_of(text)));
  ZED_CHECK(disk::sync(fresh.get()));
  ZED_CHECK(disk::rename(root_, layout::new_catalog, layout::catalog));
  file_ = std::move(fresh);
  whole_ = size_ = text.size();
  is_torn_ = false;
  return disk::sync(root_);
}

bool CatalogFile::is_long(std::size_t more) const {
  return size_ - whole_ + more > std::max(whole_, always_kept);
}

Status CatalogFile::append(const std::string& pool, const CatalogEdit& edit) {
  std::string record = render_edit(edit);
  if (is_torn_) return replace(pool, edit.after);
  if (is_long(record.size())) {
    auto replaced = replace(pool, edit.after);
    if (replaced) return replaced;
    // The old file still is what counts, unless it is the folder's fsync that failed: then either
    // may be there after a crash, and only writing both anew would tell.
    if (size_ == whole_) {
      is_torn_ = true;
      return replaced;
    }
    log_warning("store: the catalog was not made shorter: " + replaced.error().describe());
  }
  return append_record(record);
}

Status CatalogFile::append_record(const std::string& record) {
  auto written = disk::write_at(file_.get(), size_, bytes_of(record));
  if (!written) {
    is_torn_ = !disk::set_size(file_.get(), size_);
    return written;
  }
  // After a failed fsync nobody knows what the disk has, and asking again would not tell: the next
  // change writes the whole catalog into another file.
  auto synced = disk::sync_data(file_.get());
  is_torn_ = !synced;
  if (synced) size_ += record.size();
  return synced;
}

}  // namespace zed::store
