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
  Sha256 hash;
  ByteVector block(static_cast<std::size_t>(std::min<std::uint64_t>(block_size, entry.size)));
  for (std::uint64_t at = 0; at < entry.size; at += block_size) {
    std::span<std::byte> part(block);
    part =
        part.first(static_cast<std::size_t>(std::min<std::uint64_t>(block_size, entry.size - at)));
    ZED_CHECK(disk::read_at(file.get(), at, part));
    hash.update(part);
  }
  return hash.finish();
}

}  // namespace zed::store
