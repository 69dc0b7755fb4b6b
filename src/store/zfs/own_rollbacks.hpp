#pragma once
// The pool's events tell of every rollback and not of who asked for it: this tells the store's own
// from a person's.

#include <map>
#include <mutex>
#include <string>

namespace zed::store::zfs {

/// The rollbacks of this store that the events have not told of yet. Thread-safe.
class OwnRollbacks {
public:
  /// Call it before the command is run, since the event may come before the command ends.
  /// `dataset`: full name.
  void expect(const std::string& dataset);
  /// The command has failed: no event will come.
  void withdraw(const std::string& dataset) { (void)claim(dataset); }
  /// An event tells of a rollback: whether it is one of ours, which is then expected no more.
  [[nodiscard]] bool claim(const std::string& dataset);

private:
  std::mutex mutex_;
  std::map<std::string, int> expected_;  ///< how many, by full name
};

}  // namespace zed::store::zfs
