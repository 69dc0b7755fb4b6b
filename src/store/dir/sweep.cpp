#include "store/dir/sweep.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "base/number.hpp"
#include "store/dir/index.hpp"
#include "store/dir/layout.hpp"

namespace zed::store {
namespace {

constexpr std::size_t index_limit = std::size_t{4} << 30;
/// Receives that may end within one commit.
constexpr std::size_t most_arrivals = 4;

/// The number that each of our names begins with.
std::optional<std::uint64_t> number_of(std::string_view name) {
  if (name.starts_with(layout::passing))
    name.remove_prefix(std::string_view(layout::passing).size());
  const std::size_t dash = name.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  return parse_number<std::uint64_t>(name.substr(0, dash), 10);
}

std::set<std::string> named_places(const Catalog& catalog) {
  std::set<std::string> named;
  for (const auto& [name, record] : catalog.datasets()) {
    if (!record->live.empty()) {
      named.insert(record->live);
      named.insert(layout::index_of_live(record->live));
    }
    if (record->partial) named.insert(record->partial->files);
    for (const SnapshotRef& snapshot : record->snapshots)
      named.insert(snapshot->files);
  }
  return named;
}

bool is_in(const std::string& place, std::string_view folder) {
  return place.size() > folder.size() && place.starts_with(folder) && place[folder.size()] == '/';
}

struct Unnamed {
  std::vector<std::string> whole;
  std::vector<std::string> rubbish;
  std::uint64_t highest = 0;  ///< of all numbers, named ones too
};

class Sweep {
public:
  Sweep(int root, const Catalog& catalog) : root_(root), catalog_(catalog) {}

  Result<std::uint64_t> run(std::optional<std::uint64_t> torn_at) {
    ZED_CHECK(look());
    if (torn_at && !is_one_commit()) return refuse(*torn_at);
    if (kept_before_ != 0)
      log_warning("store: lost/ holds " + std::to_string(kept_before_) +
                  " places of earlier starts; look whether you need their files, then remove them");
    for (const std::string& place : unnamed_.whole)
      set_aside(place, "is whole but the catalog does not name it");
    for (const std::string& place : unnamed_.rubbish) {
      auto removed = remove_place(root_, place);
      if (!removed)
        log_warning("store: " + place +
                    " is left until the next start: " + removed.error().describe());
    }
    check_indexes();
    return unnamed_.highest;
  }

private:
  Status look() {
    unnamed_.highest = catalog_.counter();
    const auto named = named_places(catalog_);
    for (const char* each : {layout::live, layout::snapshots, layout::receiving, layout::lost}) {
      const std::string folder = each;
      const bool is_lost = folder == layout::lost;
      auto fd = disk::open_folder(root_, folder);
      if (!fd && is_lost && fd.error().code == ErrorCode::not_found) continue;
      if (!fd) return fail(std::move(fd).error());
      ZED_CHECK(disk::for_each_name(fd->get(), [&](const std::string& name) -> Status {
        auto number = number_of(name);
        if (!number) return {};
        unnamed_.highest = std::max(unnamed_.highest, *number);
        const std::string place = folder + "/" + name;
        if (is_lost) ++kept_before_;
        if (is_lost || named.contains(place)) return {};
        (is_whole(place, name) ? unnamed_.whole : unnamed_.rubbish).push_back(place);
        return {};
      }));
    }
    return {};
  }

  bool is_whole(const std::string& place, const std::string& name) const {
    if (name.starts_with(layout::passing)) return false;
    if (is_in(place, layout::snapshots))
      return disk::status_at(root_, layout::index_of_snapshot(place)).has_value();
    auto folder = disk::open_folder(root_, place);
    if (!is_in(place, layout::live) || !folder) return false;
    bool is_empty = true;
    auto listed = disk::for_each_name(folder->get(), [&is_empty](const std::string&) -> Status {
      is_empty = false;
      return {};
    });
    return !listed || !is_empty;
  }

  /// Whether what is unnamed may be of one commit that was never acknowledged: of each dataset one
  /// snapshot, and a few that arrived from elsewhere.
  bool is_one_commit() const {
    std::set<std::string> sources;
    std::size_t others = 0;
    for (const std::string& place : unnamed_.whole) {
      std::string source;
      if (is_in(place, layout::snapshots)) {
        auto text = disk::read_all(root_, layout::index_of_snapshot(place), index_limit);
        auto index = text ? decode_index(*text) : fail(text.error());
        if (index) source = index->counterpart;
      }
      if (source.empty() ? ++others > most_arrivals : !sources.insert(source).second) return false;
    }
    return true;
  }

  tl::unexpected<Error> refuse(std::uint64_t torn_at) const {
    const std::string at = std::to_string(torn_at);
    return fail(ErrorCode::corrupt,
                "the catalog is cut after byte " + at + " and does not name " +
                    std::to_string(unnamed_.whole.size()) + " whole places, " +
                    unnamed_.whole.front() +
                    " among them: a crash tears one commit at most, so more of it is missing",
                "bring the file `catalog` back from a backup; or go on with what it still says "
                "(`truncate -s " +
                    at + " catalog`): what it does not name is then kept in lost/");
  }

  /// Never removes: what cannot be moved stays where it is.
  void set_aside(const std::string& place, const std::string& why) const {
    const std::string to = std::string(layout::lost) + place.substr(place.find('/'));
    auto moved = disk::make_folder(root_, layout::lost, 0755);
    if (!moved && moved.error().code == ErrorCode::exists) moved = {};
    if (moved) moved = move(place, to);
    if (moved)
      log_warning("store: " + place + " " + why + ": kept as " + to +
                  "; look whether you need its files, then remove it");
    else
      log_warning("store: " + place + " " + why +
                  ", and cannot be moved to lost/: " + moved.error().describe());
  }

  Status move(const std::string& place, const std::string& to) const {
    // Only what may be written can get another parent.
    ZED_TRY(auto folder, disk::open_folder(root_, place));
    ZED_TRY(auto status, disk::status_of(folder.get()));
    if ((status.st_mode & 0200) == 0)
      ZED_CHECK(disk::set_mode(folder.get(), (status.st_mode & 07777) | 0200));
    ZED_CHECK(disk::rename(root_, place, to));
    ZED_TRY(auto lost, disk::open_folder(root_, layout::lost));
    ZED_CHECK(disk::sync(lost.get()));
    ZED_TRY(auto parent, disk::open_folder(root_, place.substr(0, place.find('/'))));
    return disk::sync(parent.get());
  }

  /// The catalog forgets what is not there (FileSpace::missing).
  void check_indexes() const {
    for (const auto& [name, record] : catalog_.datasets())
      for (const SnapshotRef& snapshot : record->snapshots) {
        if (!disk::status_at(root_, snapshot->files) || has_index(snapshot->files)) continue;
        const std::string what =
            "(" + name.str() + "@" + snapshot->snapshot.name + ") has a damaged index";
        // A job may be reading its files, or they are what the dataset's live files are.
        if (!snapshot->holds.empty() ||
            (record->live.empty() && catalog_.content_of(*record) == snapshot))
          log_warning("store: " + snapshot->files + " " + what + "; it is in use and stays");
        else
          set_aside(snapshot->files, what + " and is no copy any more");
      }
  }

  /// Only what is sure to be none counts as none: a disk that cannot be read now may be later.
  bool has_index(const std::string& snapshot) const {
    auto file = disk::open_file(root_, layout::index_of_snapshot(snapshot));
    if (!file) return file.error().code != ErrorCode::not_found;
    auto status = disk::status_of(file->get());
    if (!status) return true;
    std::string head(index_head_size, '\0');
    auto size = static_cast<std::uint64_t>(status->st_size);
    if (size < head.size()) return false;
    auto read = disk::read_at(file->get(), 0, std::as_writable_bytes(std::span(head)));
    return !read || may_be_index(head, size);
  }

  int root_;
  const Catalog& catalog_;
  Unnamed unnamed_;
  std::size_t kept_before_ = 0;
};

}  // namespace

Result<std::uint64_t> sweep(int root, const Catalog& catalog,
                            std::optional<std::uint64_t> torn_at) {
  return Sweep(root, catalog).run(torn_at);
}

Status remove_place(int root, const std::string& place) {
  const bool is_passing = place.find(std::string("/") + layout::passing) != std::string::npos;
  if (!is_passing && !is_in(place, layout::receiving)) {
    // Fails if it is not there, or on a full disk: then it is removed as it is.
    const std::string passing = layout::passing_name_of(place);
    (void)disk::rename(root, place, passing);
    ZED_CHECK(disk::remove_tree(root, passing));
  }
  ZED_CHECK(disk::remove_tree(root, place));
  if (is_in(place, layout::live)) return disk::remove_file(root, layout::index_of_live(place));
  return {};
}

}  // namespace zed::store
