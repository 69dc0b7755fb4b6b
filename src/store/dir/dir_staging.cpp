#include "store/dir/dir_staging.hpp"

#include <charconv>

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
    file_.reset();
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
    return disk::write_at(file_.get(), offset, bytes);
  }

  Status read(std::size_t file, std::uint64_t offset, std::span<std::byte> buffer) override {
    ZED_CHECK(open(file));
    return disk::read_at(file_.get(), offset, buffer);
  }

  Status keep_offset(std::uint64_t body_offset) override {
    if (file_) ZED_CHECK(disk::sync(file_.get()));
    ZED_CHECK(disk::sync(folder_.get()));
    std::string text = std::to_string(body_offset);
    return disk::replace_file(folder_.get(), layout::kept, layout::new_kept,
                              std::as_bytes(std::span(text.data(), text.size())));
  }

private:
  /// The file before is synced when the next one begins, so that keep_offset() need sync only one.
  Status open(std::size_t file) {
    if (file_ && file == number_) return {};
    if (file_) ZED_CHECK(disk::sync(file_.get()));
    file_.reset();
    ZED_TRY(file_, disk::open_for_writing(folder_.get(), std::to_string(file), false));
    number_ = file;
    return {};
  }

  disk::Fd folder_;
  disk::Fd file_;
  std::size_t number_ = 0;
};

}  // namespace

std::unique_ptr<Staging> make_dir_staging(disk::Fd folder) {
  return std::make_unique<DirStaging>(std::move(folder));
}

}  // namespace zed::store
