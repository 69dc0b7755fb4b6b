#pragma once
// Datasets and snapshots as a store reports them, and the properties that carry every fact.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "core/identity.hpp"
#include "core/names.hpp"

namespace zed {

/// com.zed:* properties without the prefix, values decoded, of source local or received only (an
/// inherited value says something about the parent).
using Properties = std::map<std::string, std::string>;
/// nullopt removes the property.
using PropertyChanges = std::map<std::string, std::optional<std::string>>;

// Names of the properties that Zed itself acts upon.
namespace property {
inline constexpr char type[] = "type";              ///< model | job | data | code | node | branch
inline constexpr char uuid[] = "uuid";              ///< identity of the dataset on every node
inline constexpr char name[] = "name";              ///< the declared name
inline constexpr char home[] = "home";              ///< node whose copy may be written
inline constexpr char status[] = "status";          ///< a JobState, for people
inline constexpr char generation[] = "generation";  ///< of the attempt that last wrote here
inline constexpr char timeline[] = "timeline";      ///< the current one
inline constexpr char lineage[] = "lineage";  ///< forks so far: "<timeline>@<id>,…", last 20
inline constexpr char checkpoint[] = "checkpoint";  ///< "@epoch-15"
inline constexpr char branch_of[] = "branch_of";    ///< uuid of the dataset that this left
inline constexpr char intent[] = "intent";          ///< a fork that was begun here (JSON)
/// Written by a store that saw the live files go back under whoever uses them: to "@epoch-20". The
/// job's fork, or a change of its home, removes it.
inline constexpr char reverted[] = "reverted";
inline constexpr char code[] = "code";  ///< content of a job's code, 32 digits
inline constexpr char data[] = "data";  ///< "datasets/x@<id>,…": what a job was given to read
// On snapshots, write-once:
inline constexpr char id[] = "id";          ///< CheckpointId
inline constexpr char job[] = "job";        ///< uuid of the job
inline constexpr char seq[] = "seq";        ///< parent's + 1; checkpoints only
inline constexpr char parent[] = "parent";  ///< CheckpointId of the checkpoint before
inline constexpr char epoch[] = "epoch";
inline constexpr char step[] = "step";
inline constexpr char metrics[] = "metrics";  ///< JSON of all metrics, at most 1 KiB
inline constexpr char submitted[] =
    "submitted";  ///< the name of the snapshot that pins a job's code
inline constexpr char closing[] =
    "closing";  ///< outcome of the attempt that ended: a closing snapshot
}  // namespace property

/// Where submitted code is kept, a dataset for each content.
inline constexpr std::string_view code_root = "zed/code";
/// zed/code/<content>. The dataset and its one snapshot have the content as their identity, on
/// whichever node it was packed.
DatasetName code_dataset(const CheckpointId& content);

struct Snapshot {
  std::string name;             ///< the part after '@'
  CheckpointId id;              ///< com.zed:id, or derived from the guid for one taken by hand
  std::uint64_t guid = 0;       ///< local to a store kind: finds the base of a zfs stream
  std::uint64_t createtxg = 0;  ///< orders within one pool
  WallTime created;             ///< for people only
  Bytes used;                   ///< freed if it were destroyed
  Bytes referenced;
  Properties properties;

  /// The checkpoint's sequence number; none for closing snapshots and those taken by hand.
  std::optional<std::uint64_t> seq() const;
  std::optional<Timeline> timeline() const;

  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("id", self.id);
    visit("guid", self.guid);
    visit("createtxg", self.createtxg);
    visit("created", self.created);
    visit("used", self.used);
    visit("referenced", self.referenced);
    visit("properties", self.properties);
  }
  friend bool operator==(const Snapshot&, const Snapshot&) = default;
};

/// What is left of a snapshot that was sent to a node, kept so that an increment from it is
/// possible after the snapshot itself is gone (OpenZFS only). At most one for each peer.
struct Bookmark {
  std::string peer;             ///< the node that has the snapshot
  CheckpointId id;              ///< of the snapshot
  std::uint64_t guid = 0;       ///< the snapshot's
  std::uint64_t createtxg = 0;  ///< the snapshot's

  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("peer", self.peer);
    visit("id", self.id);
    visit("guid", self.guid);
    visit("createtxg", self.createtxg);
  }
  friend bool operator==(const Bookmark&, const Bookmark&) = default;
};

/// The identity of a snapshot that carries none of its own: equal on every node of one zfs history.
CheckpointId id_from_guid(std::uint64_t guid);

struct Dataset {
  DatasetName name;
  DatasetId uuid;  ///< com.zed:uuid; nil where none is set
  bool readonly = false;
  bool receiving = false;  ///< a partial receive is under way or interrupted
  bool changed =
      false;  ///< the live files differ from the newest snapshot, as far as the store can tell
  Bytes used;
  Properties properties;
  std::vector<Snapshot> snapshots;  ///< oldest first, by createtxg
  std::vector<Bookmark> bookmarks;  ///< oldest first

  const Snapshot* find(const CheckpointId& id) const;
  const Snapshot* find(std::string_view snapshot_name) const;
  /// A bookmark of that snapshot, or nullptr.
  const Bookmark* find_bookmark(const CheckpointId& id) const;
  const Snapshot* newest() const { return snapshots.empty() ? nullptr : &snapshots.back(); }
  /// The checkpoint of the highest seq here (all are of the current timeline and its ancestors), or
  /// nullptr. Never a closing snapshot, nor one taken by hand.
  const Snapshot* newest_checkpoint() const;
  /// A textual property, or "" where unset.
  std::string property(std::string_view name) const;
  std::optional<Timeline> timeline() const;
  std::optional<Generation> generation() const;

  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("uuid", self.uuid);
    visit("readonly", self.readonly);
    visit("receiving", self.receiving);
    visit("changed", self.changed);
    visit("used", self.used);
    visit("properties", self.properties);
    visit("snapshots", self.snapshots);
    visit("bookmarks", self.bookmarks);
  }
  friend bool operator==(const Dataset&, const Dataset&) = default;
};

}  // namespace zed
