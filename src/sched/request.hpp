#pragma once
// What the caller knows about one job that looks for a place.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/job.hpp"
#include "core/names.hpp"

namespace zed::sched {

/// A dataset that must be on the node before the job starts: its model, its data, its own.
struct InputData {
  DatasetName dataset;
  Bytes size;  ///< to move to a node that has nothing of it
  /// Still to move to the nodes that have a part of it (0: it is there).
  std::map<NodeName, Bytes> missing;
};

/// A node that this job must avoid: it failed there, it leaves it.
struct Exclusion {
  NodeName node;
  std::string why;      ///< "the last 3 attempts failed to start there"
  bool for_now = true;  ///< false: it will never do
};

/// GPUs promised to a job whose attempt is not visible yet.
struct Reservation {
  NodeName node;
  JobId job;
  std::vector<std::string> gpus;  ///< UUIDs
  bool share = false;
  Bytes vram;  ///< on each GPU, when shared
  friend bool operator==(const Reservation&, const Reservation&) = default;
};

struct PlaceRequest {
  Job job;
  std::vector<InputData> inputs;
  std::vector<Exclusion> exclusions;
  std::vector<Reservation> reservations;
  std::optional<NodeName> only;  ///< a person's `--on NODE`: hard, unlike a preference
};

}  // namespace zed::sched
