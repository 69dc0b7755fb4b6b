#pragma once
// What a machine keeps when its power goes: the store, and the small durable facts of agent and
// controller.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/identity.hpp"
#include "env/attempts.hpp"
#include "sim/memory_store.hpp"

namespace zed::sim {

class SimJob;

struct AttemptRecord {
  env::LaunchRequest launch;
  std::optional<ExitRecord> exit;
  std::shared_ptr<SimJob> process;  ///< none: never started, or the machine went down since
};

struct JournalDisk {
  std::vector<std::string> records;
  std::uint64_t last_seq = 0;
};

struct Disk {
  explicit Disk(std::uint64_t seed) : store(seed) {}

  MemoryStore store;
  ControllerTerm highest_term;
  NodeName journal_second;
  JournalDisk journal;  ///< of a controller here
  JournalDisk copy;     ///< of another controller's journal
  ControllerTerm copy_term;
  std::map<std::pair<JobId, Generation>, AttemptRecord> attempts;

  /// A live file's text, or "" where there is none.
  std::string read_live(const DatasetName& dataset, const std::string& file) const;
  /// False if the dataset is gone or readonly, or the disk is full.
  bool write_live(const DatasetName& dataset, const std::string& file, const std::string& text);
  bool remove_live(const DatasetName& dataset, const std::string& file);
  std::map<std::string, std::string> live_files(const DatasetName& dataset) const;
  std::map<std::string, std::string> snapshot_files(const SnapshotName& snapshot) const;
  /// Nothing that needs space succeeds, journals included.
  void be_full(bool is_full);
  bool full = false;
  /// One call in ten fails, in half of the cases after it happened.
  void fail_at_random(std::uint64_t seed);
  void fail_no_more();
  /// For observers: never fails by chance.
  std::vector<Dataset> look_at_all();
  std::optional<Dataset> look_at(const DatasetName& dataset);

private:
  bool observed_ = false;
};

}  // namespace zed::sim
