#include "store/dir/tree_maker.hpp"

#include <algorithm>

namespace zed::store {

Result<TreeMaker::Place> TreeMaker::place_of(const std::string& path) {
  std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return Place{top_, path};
  std::string folder = path.substr(0, slash);
  if (!open_folder_ || folder != open_path_) {
    ZED_TRY(open_folder_, disk::open_folder(top_, folder));
    open_path_ = folder;
  }
  return Place{open_folder_.get(), path.substr(slash + 1)};
}

Status TreeMaker::add_folder(const Entry& entry) {
  ZED_TRY(auto place, place_of(entry.path));
  ZED_CHECK(disk::make_folder(place.folder, place.name, 0700));
  folders_.push_back(entry);
  return {};
}

Status TreeMaker::add_symlink(const Entry& entry) {
  ZED_TRY(auto place, place_of(entry.path));
  return disk::make_symlink(entry.target, place.folder, place.name);
}

Status TreeMaker::dress(int fd, const Entry& entry) {
  ZED_CHECK(disk::set_mtime(fd, entry.mtime_ns));
  return disk::set_mode(fd, use_ == Use::snapshot ? snapshot_mode(entry.mode) : entry.mode);
}

/// A few files are synced one by one, so that a small checkpoint does not wait for what other
/// programs have written; many by syncing the file system once.
Status TreeMaker::sync_file(int fd) {
  if (++unsynced_ > sync_each_up_to) return {};
  return disk::sync(fd);
}

Status TreeMaker::add_copy(const Entry& entry, int from) {
  ZED_TRY(auto place, place_of(entry.path));
  disk::NewFile to;
  if (abilities_.reflinks) {
    ZED_TRY(to, disk::create_sharing(from, place.folder, place.name, 0600));
  } else {
    ZED_TRY(to.file, disk::create_file(place.folder, place.name, 0600));
  }
  const int file = to.file.get();
  if (!to.shares) ZED_CHECK(disk::copy(from, file));
  ZED_TRY(auto status, disk::status_of(from));
  ZED_CHECK(disk::set_owner(file, status));
  ZED_CHECK(dress(file, entry));
  return sync_file(file);
}

Status TreeMaker::add_empty(const Entry& entry) {
  ZED_TRY(auto place, place_of(entry.path));
  ZED_TRY(auto to, disk::create_file(place.folder, place.name, 0600));
  ZED_CHECK(dress(to.get(), entry));
  return sync_file(to.get());
}

Status TreeMaker::add_link(const Entry& entry, int from_folder, const std::string& from) {
  ZED_TRY(auto place, place_of(entry.path));
  std::size_t slash = from.rfind('/');
  if (slash == std::string::npos) return disk::link(from_folder, from, place.folder, place.name);
  ZED_TRY(auto folder, disk::open_folder(from_folder, from.substr(0, slash)));
  return disk::link(folder.get(), from.substr(slash + 1), place.folder, place.name);
}

Status TreeMaker::finish() {
  open_folder_.reset();
  bool each = unsynced_ + folders_.size() <= sync_each_up_to;
  // Deepest first: a readonly folder could not be entered by name order otherwise.
  for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) {
    ZED_TRY(auto fd, disk::open_folder(top_, folder->path));
    mode_t mode = use_ == Use::snapshot ? snapshot_mode(folder->mode) : folder->mode;
    if (use_ == Use::snapshot) mode |= 0100;
    ZED_CHECK(disk::set_mode(fd.get(), mode));
    if (each) ZED_CHECK(disk::sync(fd.get()));
  }
  return each ? disk::sync(top_) : disk::sync_all(top_);
}

}  // namespace zed::store
