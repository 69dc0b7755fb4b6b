#pragma once
// What a receive leaves on its dataset, as user properties, from before its first byte until its
// snapshot counts, so that an agent that starts after a crash can finish or undo it alone:
//
//   com.zed:rx            "<kind> <id> <base or -> <made> <phase> <snapshot's name>"
//   com.zed:rx.s.<name>   a property that the snapshot gets                     (zfs streams only:
//   com.zed:rx.d.<name>   one that the dataset gets                              the snapshot is
//   com.zed:rx.x.<name>   one that the dataset loses                             there before them)
//
// While it is there, the snapshot of that name is nobody's: OpenZFS has made it, but its properties
// are not there yet.

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/dataset.hpp"
#include "core/plan.hpp"
#include "env/store.hpp"

namespace zed::store::zfs {

struct Marker {
  /// applying: files are being put into place; sealing: the snapshot counts, the dataset is to be
  /// made readonly again.
  enum class Phase { receiving, applying, sealing };

  StreamKind kind = StreamKind::files;
  CheckpointId snapshot;
  std::optional<CheckpointId> base;
  bool made_dataset = false;  ///< nothing else is in it: aborting removes it
  Phase phase = Phase::receiving;
  std::string word;

  std::string str() const;
  static std::optional<Marker> parse(std::string_view text);
  /// Whether an interrupted receive of this marker can be gone on with by that request.
  bool continues(const env::ReceiveRequest& request) const;
  static Marker of(const env::ReceiveRequest& request, bool made_dataset);
};

constexpr auto enum_names(Marker::Phase) {
  return std::array<std::string_view, 3>{"receiving", "applying", "sealing"};
}

inline constexpr std::string_view marker_name = "rx";

/// The properties (without prefix) that keep the marker and, for a zfs stream, what is to be set
/// after it.
Properties marker_properties(const Marker& marker, const env::ReceiveRequest& request);

/// A dataset's own properties, taken apart.
struct MarkedProperties {
  Properties plain;  ///< all others
  std::optional<Marker> marker;
  Properties for_snapshot;
  PropertyChanges for_dataset;
  std::vector<std::string> kept;  ///< names of all that belong to the marker: to be removed with it
};
MarkedProperties take_apart(const Properties& own);

}  // namespace zed::store::zfs
