#include "store/zfs/work_folder.hpp"

#include <cerrno>
#include <set>

#include <fcntl.h>

#include "base/log.hpp"

namespace zed::store::zfs {
namespace {

constexpr char receiving[] = "receiving";
constexpr char indexes[] = "indexes";
constexpr char new_index[] = "new";
constexpr std::size_t index_limit = std::size_t{1} << 30;

std::string index_name(std::uint64_t guid, std::uint64_t createtxg) {
  return std::to_string(guid) + "-" + std::to_string(createtxg);
}

}  // namespace

Result<int> WorkFolder::open() {
  std::lock_guard lock(mutex_);
  if (top_) return top_.get();
  std::string full = zfs_.root() + "/" + name;
  auto found = zfs_.datasets(full, Reach::itself);
  if (!found && found.error().code == ErrorCode::not_found)
    ZED_CHECK(zfs_.run("make " + full, {"create", "-o", "atime=off", full}));
  for (bool tried : {false, true}) {
    for (const Mount& mount : zfs_.mounts())
      if (mount.source == full)
        top_.reset(::open(mount.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (top_ || tried) break;
    ZED_CHECK(zfs_.run("mount " + full, {"mount", full}));
  }
  if (!top_)
    return fail(ErrorCode::unsupported, full + " is not mounted",
                "give the pool a mount point: zfs set mountpoint=/" + zfs_.root() + " " +
                    zfs_.root());
  ZED_CHECK(disk::set_mode(top_.get(), 0700));
  return top_.get();
}

Result<disk::Fd> WorkFolder::inside(const char* folder) {
  ZED_TRY(int top, open());
  auto made = disk::make_folder(top, folder, 0700);
  if (!made && made.error().code != ErrorCode::exists) return fail(std::move(made).error());
  return disk::open_folder(top, folder);
}

Result<disk::Fd> WorkFolder::staging_folder(std::uint64_t dataset_guid) {
  ZED_TRY(auto folder, inside(receiving));
  std::string own = std::to_string(dataset_guid);
  auto made = disk::make_folder(folder.get(), own, 0700);
  if (!made && made.error().code != ErrorCode::exists) return fail(std::move(made).error());
  return disk::open_folder(folder.get(), own);
}

void WorkFolder::drop_staging(std::uint64_t dataset_guid) {
  auto folder = inside(receiving);
  auto dropped = folder ? disk::remove_tree(folder->get(), std::to_string(dataset_guid))
                        : Status(fail(folder.error()));
  if (!dropped)
    log_warning("store: what a receive left stays in " + zfs_.root() + "/" + name + ": " +
                dropped.error().describe());
}

std::optional<Index> WorkFolder::find_index(std::uint64_t guid, std::uint64_t createtxg) {
  auto folder = inside(indexes);
  if (!folder) return std::nullopt;
  auto text = disk::read_all(folder->get(), index_name(guid, createtxg), index_limit);
  if (!text) return std::nullopt;
  auto index = decode_index(*text);
  return index ? std::optional(std::move(*index)) : std::nullopt;
}

void WorkFolder::keep_index(std::uint64_t guid, std::uint64_t createtxg, const Index& index) {
  auto folder = inside(indexes);
  if (!folder) return;  // hashed again next time
  (void)disk::replace_file(folder->get(), index_name(guid, createtxg),
                           new_index + index_name(guid, createtxg), encode(index));
}

void WorkFolder::keep_only(const std::vector<SnapshotRow>& snapshots) {
  auto found = zfs_.datasets(zfs_.root() + "/" + name, Reach::itself);
  if (!found) return;  // nothing was ever kept
  auto folder = inside(indexes);
  if (!folder) return;
  std::set<std::string> wanted;
  for (const SnapshotRow& row : snapshots)
    wanted.insert(index_name(row.guid, row.createtxg));
  std::vector<std::string> old;
  auto listed = disk::for_each_name(folder->get(), [&](const std::string& file) -> Status {
    if (!wanted.contains(file)) old.push_back(file);
    return {};
  });
  for (const std::string& file : old)
    if (listed) (void)disk::remove_file(folder->get(), file);
}

}  // namespace zed::store::zfs
