#include "store/zfs/apply_tree.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace zed::store::zfs {
namespace {

using disk::Fd;

/// OpenZFS's usual record: what differs within one is written as one.
constexpr std::size_t block = std::size_t{128} << 10;

struct Place {
  Fd folder;
  std::string name;
};

std::string parent_of(const std::string& path) {
  std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::string leaf_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

class Applier {
public:
  Applier(const Arrival& arrival, int base, int staged, int live)
      : arrival_(arrival), base_(base), staged_(staged), live_(live), left_(block), right_(block) {}

  Status run() {
    if (base_ < 0) ZED_CHECK(empty());
    // What is in a folder comes after it in the list, so it goes first.
    const auto& removed = arrival_.delta.removed;
    for (auto path = removed.rbegin(); path != removed.rend(); ++path) {
      ZED_TRY(auto place, place_of(*path));
      ZED_CHECK(disk::remove_tree(place.folder.get(), place.name));
    }
    const auto& put = arrival_.delta.put;
    for (std::size_t i = 0; i < put.size(); ++i)
      ZED_CHECK(make(put[i], arrival_.places[i]));
    // A folder's own bits may forbid what was just done in it.
    for (auto entry = put.rbegin(); entry != put.rend(); ++entry)
      if (entry->kind == EntryKind::folder) ZED_CHECK(dress_folder(*entry));
    return {};
  }

private:
  Status empty() {
    std::vector<std::string> names;
    ZED_CHECK(disk::for_each_name(live_, [&names](const std::string& name) -> Status {
      names.push_back(name);
      return {};
    }));
    for (const std::string& name : names)
      ZED_CHECK(disk::remove_tree(live_, name));
    return {};
  }

  Result<Fd> folder_of(const std::string& parent) {
    if (parent.empty()) {
      Fd same(::openat(live_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (!same) return fail(net::system_error(errno, "open the live files"));
      return same;
    }
    return disk::open_folder(live_, parent);
  }

  Result<Place> place_of(const std::string& path) {
    ZED_TRY(auto folder, folder_of(parent_of(path)));
    return Place{std::move(folder), leaf_of(path)};
  }

  Status make(const Entry& entry, const std::optional<ContentPlace>& place) {
    ZED_TRY(auto at, place_of(entry.path));
    ZED_CHECK(clear_for(entry, at));
    switch (entry.kind) {
    case EntryKind::folder: return make_folder(at);
    case EntryKind::symlink: return disk::make_symlink(entry.target, at.folder.get(), at.name);
    case EntryKind::file: break;
    }
    ZED_TRY(auto file, disk::open_for_writing(at.folder.get(), at.name, false));
    if (entry.size != 0) {
      ZED_ASSERT(place.has_value());  // the receiver gives each file with content a place
      ZED_TRY(auto from, open_content(*place));
      ZED_CHECK(copy_differences(from.get(), file.get(), entry.size));
    }
    ZED_CHECK(disk::set_size(file.get(), entry.size));
    ZED_CHECK(disk::set_mode(file.get(), entry.mode));
    return disk::set_mtime(file.get(), entry.mtime_ns);
  }

  /// Removes what stands in the way: another kind of thing, a symlink (they are made anew), a file
  /// that has a second name (a write would reach both) or that may not be written.
  Status clear_for(const Entry& entry, const Place& at) {
    auto status = disk::status_at(at.folder.get(), at.name);
    if (!status && status.error().code == ErrorCode::not_found) return {};
    if (!status) return fail(std::move(status).error());
    bool fits =
        (entry.kind == EntryKind::folder && S_ISDIR(status->st_mode)) ||
        (entry.kind == EntryKind::file && S_ISREG(status->st_mode) && status->st_nlink == 1);
    return fits ? Status() : disk::remove_tree(at.folder.get(), at.name);
  }

  static Status make_folder(const Place& at) {
    auto made = disk::make_folder(at.folder.get(), at.name, 0700);
    return !made && made.error().code == ErrorCode::exists ? Status() : made;
  }

  Status dress_folder(const Entry& entry) {
    ZED_TRY(auto folder, disk::open_folder(live_, entry.path));
    return disk::set_mode(folder.get(), entry.mode);
  }

  Result<Fd> open_content(const ContentPlace& place) {
    switch (place.from) {
    case ContentPlace::From::staged:
      return disk::open_file(staged_, std::to_string(place.staged_file));
    case ContentPlace::From::base: return disk::open_file(base_, place.path);
    case ContentPlace::From::earlier: break;
    }
    return disk::open_file(live_, place.path);
  }

  Status copy_differences(int from, int to, std::uint64_t size) {
    ZED_TRY(auto there, disk::status_of(to));
    std::uint64_t has = static_cast<std::uint64_t>(there.st_size);
    for (std::uint64_t at = 0; at < size; at += block) {
      std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(block, size - at));
      auto wanted = std::span(left_).first(part);
      ZED_CHECK(disk::read_at(from, at, wanted));
      if (at + part <= has) {
        // Readable too: open_for_writing() opens for both.
        auto present = std::span(right_).first(part);
        ZED_CHECK(disk::read_at(to, at, present));
        if (std::equal(wanted.begin(), wanted.end(), present.begin())) continue;
      }
      ZED_CHECK(disk::write_at(to, at, wanted));
    }
    return {};
  }

  const Arrival& arrival_;
  int base_;
  int staged_;
  int live_;
  ByteVector left_;
  ByteVector right_;
};

}  // namespace

Status apply_in_place(const Arrival& arrival, int base, int staged, int live) {
  return Applier(arrival, base, staged, live).run();
}

}  // namespace zed::store::zfs
