#pragma once
// What lies under the root of a dir store, drawn once.
//
//   <root>/lock                       flock()ed by the one process that has the store open; its pid
//   <root>/catalog                    datasets, snapshots, properties (dir/metadata.hpp), appended
//   to <root>/catalog.new                and now and then replaced (dir/catalog_file.hpp)
//   <root>/live/<n>-<leaf>/           the live files of a dataset; the job's folder
//   <root>/live/<n>-<leaf>.index      what they were, if they were made from a snapshot
//   <root>/snapshots/<n>-<name>/      readonly, outside every job's folder
//       files/                        the snapshot's files
//       index                         their list, with hashes once known (dir/index.hpp)
//   <root>/receiving/<n>-<name>/      an unfinished receive
//       plan                          what was announced and checked
//       kept                          from where it can go on
//       <number>                      contents that arrived
//   <root>/{live,snapshots}/passing-<n>-…   live files being made, or a place being removed
//   <root>/lost/<n>-…                 whole places that the catalog does not name (dir/sweep.hpp)
//
// A place (`live/7-train-001`) is filled before the catalog that names it is kept, dropped after
// the one that no longer does, and what a crash left of it is removed at the next start, or moved
// to `lost` if it is whole. <n> is not reused while the name could be remembered. Renaming a
// dataset moves no folder.

#include <string>

namespace zed::store::layout {

inline constexpr char lock[] = "lock";
inline constexpr char catalog[] = "catalog";
inline constexpr char new_catalog[] = "catalog.new";
inline constexpr char live[] = "live";
inline constexpr char snapshots[] = "snapshots";
inline constexpr char receiving[] = "receiving";
inline constexpr char lost[] = "lost";
inline constexpr char passing[] = "passing-";
inline constexpr char files[] = "files";
inline constexpr char index[] = "index";
inline constexpr char new_index[] = "index.new";
inline constexpr char plan[] = "plan";
inline constexpr char kept[] = "kept";
inline constexpr char new_kept[] = "kept.new";

inline std::string files_of(const std::string& snapshot) {
  return snapshot + "/" + files;
}
inline std::string index_of_snapshot(const std::string& snapshot) {
  return snapshot + "/" + index;
}
/// The name that a place in `live` or `snapshots` has while it is made or removed: nobody misses
/// it.
inline std::string passing_name_of(const std::string& place) {
  const std::size_t name = place.find('/') + 1;
  return place.substr(0, name) + passing + place.substr(name);
}
inline std::string index_of_live(const std::string& live_place) {
  return live_place + ".index";
}

}  // namespace zed::store::layout
