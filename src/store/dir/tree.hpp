#pragma once
// Trees of files on disk: looking at one, and the three ways in which one is made from others.
//
// What is kept of a job's folder: regular files (each name a file of its own, sparse ones with
// their holes), folders, symlinks (as text, never followed), permission bits without set-id bits,
// files' times. What is left out: sockets, pipes and devices, which mean nothing on another day;
// owners (kept on this machine where the agent is root, not sent); extended attributes.
// A snapshot is as consistent as the job leaves its files: each file is read once, in no order.

#include <cstdint>
#include <optional>
#include <string>

#include "store/dir/disk.hpp"
#include "store/dir/index.hpp"
#include "store/files/receiver.hpp"

namespace zed::store {

/// A snapshot as a source: its open files folder and its index.
struct SnapshotTree {
  disk::Fd files;
  Index index;
};

/// How a snapshot's file came to be in it; for `used`.
struct TreeCost {
  std::uint64_t written = 0;  ///< bytes not shared with another snapshot
};

/// Entries and present stamps of all in a folder. Errors: `io`, `invalid` (a path or a tree beyond
/// the limits of files/manifest.hpp, or nested deeper than 128).
Result<Index> scan(int folder);

/// Whether a live folder equals the index, whose stamps are its own, of a snapshot. Files without a
/// proving stamp are compared with `files` up to 16 MiB in all; beyond that they count as changed.
Result<bool> differs(int live, const Index& index, int files);

/// Fills the empty folder `to` from a live folder, sharing with `previous` what `stamps` (of the
/// same snapshot) prove unchanged. Durable on return. The index has the live files' stamps.
struct TakeRequest {
  int live = -1;
  int to = -1;
  const SnapshotTree* previous = nullptr;
  const Index* stamps = nullptr;
  disk::Abilities abilities;
};
Result<Index> take_tree(const TakeRequest& request, TreeCost& cost);

/// Fills the empty folder `to` with a snapshot's files, sharing nothing that a write could reach.
/// Durable on return. The index is the snapshot's with the stamps of the new files.
Result<Index> make_live_tree(const SnapshotTree& snapshot, int to,
                             const disk::Abilities& abilities);

/// Fills the empty folder `to` with what arrived: contents from `staged` (a folder of numbered
/// files) and from the base. Durable on return.
Result<Index> assemble_tree(const Arrival& arrival, const SnapshotTree* base, int staged, int to,
                            const disk::Abilities& abilities, TreeCost& cost);

}  // namespace zed::store
