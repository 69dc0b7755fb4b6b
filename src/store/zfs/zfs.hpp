#pragma once
// OpenZFS's command line as functions: builds argument arrays, parses what comes back, turns
// complaints into Errors. No policy and no state but the name of the root.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/names.hpp"
#include "store/zfs/command.hpp"
#include "store/zfs/output.hpp"

namespace zed::store::zfs {

/// How much of the pool a listing is about.
enum class Reach {
  itself,  ///< the dataset that is named
  tree,    ///< and all that lie under it
};

/// The table that a channel program returned.
struct ProgramAnswer {
  std::map<std::string, std::string> values;

  std::string text(const std::string& key) const;  ///< "" if it is not there
  int error_number() const;                        ///< "errno"; EIO if it is not there
};

/// Thread-safe.
class Zfs {
public:
  /// `root`: a pool ("tank") or a dataset in one under which ours lie ("tank/zed"). Legal by
  /// is_root().
  Zfs(std::unique_ptr<Commands> commands, std::string root);
  static bool is_root(std::string_view root);

  const std::string& root() const { return root_; }
  const std::string& pool() const { return pool_; }
  std::string full(const DatasetName& name) const { return root_ + "/" + name.str(); }
  std::string full(const SnapshotName& name) const { return root_ + "/" + name.str(); }
  /// None for the root itself, for what is elsewhere and for names that core does not allow (with a
  /// space; too deep): those are not ours.
  std::optional<DatasetName> relative(std::string_view full_name) const;

  /// Runs `zfs` with these arguments; what it printed. `what` is for the error.
  Result<std::string> run(const std::string& what, Arguments arguments) const;
  Commands& commands() const { return *commands_; }

  /// Everything about file systems, by their full names. Errors: `not_found`.
  Result<std::map<std::string, Facts>> datasets(const std::string& full_name, Reach reach) const;
  /// Snapshots of all under the root: name, guid and createtxg only, which OpenZFS lists fast from
  /// 2.2 on; or every column.
  enum class Columns { fast, all };
  Result<std::vector<SnapshotRow>> all_snapshots(Columns columns) const;
  /// Of one dataset, every column.
  Result<std::vector<SnapshotRow>> snapshots(const std::string& full_name) const;
  /// Our own, in ascending createtxg within a dataset.
  Result<std::vector<BookmarkRow>> bookmarks(const std::string& full_name, Reach reach) const;
  /// Everything about these snapshots; of some that vanish meanwhile nothing is said.
  Result<std::map<std::string, Facts>> snapshot_facts(const std::vector<std::string>& names) const;

  /// The own properties of these snapshots by a channel program; of some that vanish meanwhile
  /// nothing is said. None where that does not work: without root, or because of one of the values.
  std::optional<std::map<std::string, Properties>>
  own_properties(const std::vector<std::string>& names) const;

  /// Runs a channel program. Root only. Errors: as its own failure says: `unsupported`, `refused`,
  /// `io`.
  Result<ProgramAnswer> program(const std::string& what, const std::string& text,
                                Arguments arguments) const;
  /// How many commands of ours may have changed something.
  std::uint64_t changes() const { return changes_; }
  /// Until what was written is counted.
  Status sync() const;
  std::vector<Mount> mounts() const;
  /// "-o com.zed:a=b" for each.
  static void add_options(Arguments& arguments, const Properties& properties);

private:
  std::unique_ptr<Commands> commands_;
  std::string root_;
  std::string pool_;
  mutable std::atomic<std::uint64_t> changes_{0};
};

}  // namespace zed::store::zfs
