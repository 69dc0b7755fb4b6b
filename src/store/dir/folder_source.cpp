#include "store/dir/folder_source.hpp"

#include <algorithm>

namespace zed::store {
namespace {

constexpr std::size_t block_size = std::size_t{1} << 20;

class FolderSource final : public ContentSource {
public:
  explicit FolderSource(disk::Fd files) : files_(std::move(files)) {}
  Status read(const Entry& file, std::uint64_t offset, std::span<std::byte> buffer) override {
    if (!open_ || path_ != file.path) {
      open_.reset();
      ZED_TRY(open_, disk::open_file(files_.get(), file.path));
      path_ = file.path;
    }
    return disk::read_at(open_.get(), offset, buffer);
  }

private:
  disk::Fd files_;
  disk::Fd open_;
  std::string path_;
};

}  // namespace

std::unique_ptr<ContentSource> make_folder_source(disk::Fd files) {
  return std::make_unique<FolderSource>(std::move(files));
}

Result<Digest> digest_of(int files, const Entry& entry) {
  ZED_TRY(auto file, disk::open_file(files, entry.path));
  ZED_TRY(auto status, disk::status_of(file.get()));
  if (static_cast<std::uint64_t>(status.st_size) < entry.size)
    return fail(ErrorCode::corrupt, "a file is shorter than it was");
  Sha256 hash;
  ByteVector block(static_cast<std::size_t>(std::min<std::uint64_t>(block_size, entry.size)));
  // Holes are hashed as the zeros that they are, without asking the file for them.
  const ByteVector zeros(block.size());
  disk::Extent data;
  for (std::uint64_t at = 0; at < entry.size;) {
    if (at >= data.end) data = disk::data_from(file.get(), at, entry.size);
    const bool is_hole = at < data.begin;
    const std::uint64_t end = is_hole ? data.begin : data.end;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(block_size, end - at));
    if (!is_hole) ZED_CHECK(disk::read_at(file.get(), at, std::span(block).first(size)));
    hash.update(std::span<const std::byte>(is_hole ? zeros : block).first(size));
    at += size;
  }
  return hash.finish();
}

}  // namespace zed::store
