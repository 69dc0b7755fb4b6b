#include "store/dir/dir_staging.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <future>
#include <memory>
#include <utility>

#include <fcntl.h>

#include "store/dir/layout.hpp"

namespace zed::store {
namespace {

constexpr std::size_t plan_limit = (std::size_t{1} << 30) + preamble_size;
constexpr std::size_t kept_limit = 32;

class DirStaging final : public Staging {
public:
  explicit DirStaging(disk::Fd folder) : folder_(std::move(folder)) {}

  Result<std::optional<Found>> find() override {
    auto plan = disk::read_all(folder_.get(), layout::plan, plan_limit);
    if (!plan && plan.error().code == ErrorCode::not_found) return std::optional<Found>();
    if (!plan) return fail(std::move(plan).error());
    auto bytes = std::as_bytes(std::span(plan->data(), plan->size()));
    Found found{ByteVector(bytes.begin(), bytes.end()), 0};
    auto kept = disk::read_all(folder_.get(), layout::kept, kept_limit);
    if (!kept && kept.error().code != ErrorCode::not_found) return fail(std::move(kept).error());
    if (kept) std::from_chars(kept->data(), kept->data() + kept->size(), found.kept);
    return std::optional(std::move(found));
  }

  Status clear() override {
    // Whether the offset was kept matters no more.
    (void)settle();
    file_.reset();
    others_unsynced_ = false;
    // The plan goes first: without it nothing else here means anything.
    for (const char* name : {layout::plan, layout::kept})
      ZED_CHECK(disk::remove_file(folder_.get(), name));
    ZED_CHECK(disk::sync(folder_.get()));
    std::vector<std::string> names;
    ZED_CHECK(disk::for_each_name(folder_.get(), [&names](const std::string& name) -> Status {
      names.push_back(name);
      return {};
    }));
    for (const std::string& name : names)
      ZED_CHECK(disk::remove_file(folder_.get(), name));
    return {};
  }

  Status keep_plan(std::span<const std::byte> plan) override {
    return disk::replace_file(folder_.get(), layout::plan, layout::new_kept, plan);
  }

  Status append(std::size_t file, std::uint64_t offset, std::span<const std::byte> bytes) override {
    ZED_CHECK(open(file));
    // What an earlier receive wrote beyond the offset that it kept does not count: a hole must not
    // show it.
    if (size_ > offset) ZED_CHECK(resize(offset));
    ZED_CHECK(write_data(offset, bytes));
    const std::uint64_t end = offset + bytes.size();
    if (size_ < end) ZED_CHECK(resize(end));
    if (end - begun_ < begin_every) return {};
    disk::begin_writing(file_.get(), begun_, end - begun_);
    begun_ = end;
    return {};
  }

  Status read(std::size_t file, std::uint64_t offset, std::span<std::byte> buffer) override {
    ZED_CHECK(open(file));
    return disk::read_at(file_.get(), offset, buffer);
  }

  Status keep_offset(std::uint64_t body_offset) override {
    ZED_CHECK(settle());
    return keep({file_.get(), folder_.get(), std::exchange(others_unsynced_, false), body_offset});
  }

  Status keep_offset_soon(std::uint64_t body_offset) override {
    ZED_CHECK(settle());
    // Descriptors of its own: ours go on to the next file.
    auto file = std::make_shared<disk::Fd>(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
    if (!*file) return keep_offset(body_offset);
    Kept kept{file->get(), folder_.get(), std::exchange(others_unsynced_, false), body_offset};
    keeping_ = std::async(std::launch::async, [file, kept] { return keep(kept); });
    return {};
  }

private:
  /// Zeros are left out in blocks of this size, which is a page and most file systems' block.
  static constexpr std::size_t hole_size = 4096;
  static constexpr std::uint64_t begin_every = std::uint64_t{8} << 20;

  struct Kept {
    int file;  ///< -1: none
    int folder;
    bool others;  ///< files before it are not synced yet either
    std::uint64_t offset;
  };

  static Status keep(const Kept& kept) {
    // Many small files are synced with the whole file system at once, not one by one.
    if (kept.others) ZED_CHECK(disk::sync_all(kept.folder));
    if (!kept.others && kept.file >= 0) ZED_CHECK(disk::sync(kept.file));
    if (!kept.others) ZED_CHECK(disk::sync(kept.folder));
    std::string text = std::to_string(kept.offset);
    return disk::replace_file(kept.folder, layout::kept, layout::new_kept,
                              std::as_bytes(std::span(text.data(), text.size())));
  }

  /// Waits for what keep_offset_soon() began.
  Status settle() { return keeping_.valid() ? keeping_.get() : Status(); }

  Status resize(std::uint64_t size) {
    ZED_CHECK(disk::set_size(file_.get(), size));
    size_ = size;
    return {};
  }

  /// Writes what is not zeros; the rest stays the hole that it was, most likely, at the source.
  Status write_data(std::uint64_t offset, std::span<const std::byte> bytes) {
    std::size_t begun = 0;
    for (std::size_t at = 0; at < bytes.size();) {
      // Up to the next border in the file.
      const std::size_t size = std::min(
          bytes.size() - at, hole_size - static_cast<std::size_t>((offset + at) % hole_size));
      if (is_zero(bytes.subspan(at, size))) {
        ZED_CHECK(write_run(offset + begun, bytes.subspan(begun, at - begun)));
        begun = at + size;
      }
      at += size;
    }
    return write_run(offset + begun, bytes.subspan(begun));
  }

  Status write_run(std::uint64_t offset, std::span<const std::byte> bytes) {
    if (bytes.empty()) return {};
    ZED_CHECK(disk::write_at(file_.get(), offset, bytes));
    size_ = std::max(size_, offset + bytes.size());
    return {};
  }

  static bool is_zero(std::span<const std::byte> bytes) {
    return bytes[0] == std::byte{0} &&
           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
  }

  Status open(std::size_t file) {
    if (file_ && file == number_) return {};
    others_unsynced_ = others_unsynced_ || file_;
    file_.reset();
    ZED_TRY(file_, disk::open_for_writing(folder_.get(), std::to_string(file), false));
    ZED_TRY(auto status, disk::status_of(file_.get()));
    size_ = static_cast<std::uint64_t>(status.st_size);
    number_ = file;
    begun_ = 0;
    return {};
  }

  disk::Fd folder_;
  disk::Fd file_;
  std::size_t number_ = 0;
  std::uint64_t size_ = 0;   ///< of the open file
  std::uint64_t begun_ = 0;  ///< the kernel was told to write up to here
  bool others_unsynced_ = false;
  std::future<Status> keeping_;  // last: it ends before the folder closes
};

}  // namespace

std::unique_ptr<Staging> make_dir_staging(disk::Fd folder) {
  return std::make_unique<DirStaging>(std::move(folder));
}

}  // namespace zed::store
