#pragma once
// The catalog of a store while it is in use: what is durable, which is what everybody reads, and
// what is on its way there. Changes that come while others are being written wait together and
// share the next write, so that a disk's fsync is paid once for all of them (group commit).

#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <condition_variable>

#include "store/catalog.hpp"
#include "store/file_space.hpp"

namespace zed::store {

/// Thread-safe.
class CommitQueue {
public:
  /// `files` must outlive it.
  CommitQueue(FileSpace& files, Catalog catalog)
      : files_(files), durable_(catalog), newest_(std::move(catalog)) {}

  /// Everything that is durable.
  Catalog durable() const {
    std::lock_guard lock(mutex_);
    return durable_;
  }

  /// Applies `change` (Catalog& -> Status or Result) to the newest catalog and returns when that is
  /// durable. What it returns without having changed anything, an error among it, is returned once
  /// all that it was judged by is durable. If the write fails, neither this change nor any that was
  /// made on top of it has happened: all of them return the write's error.
  template <class Change> std::invoke_result_t<Change, Catalog&> commit(Change&& change) {
    std::unique_lock lock(mutex_);
    for (int look = 1;; ++look) {
      Catalog next = newest_;
      auto result = change(next);
      const bool is_change = result && next.counter() != newest_.counter();
      if (is_change) enter(std::move(next));
      auto settled = settle(lock);
      if (settled) return result;
      // What a refusal was judged by has not happened: look again at what is true.
      if (is_change || look == most_looks) return fail(std::move(settled).error());
    }
  }

private:
  static constexpr int most_looks = 3;

  /// Changes that are written together.
  struct Batch {
    std::vector<DatasetName> touched;
    bool over = false;
    std::optional<Error> error;
  };
  using BatchRef = std::shared_ptr<Batch>;

  void enter(Catalog next);
  /// Until everything entered so far is durable or has failed; whoever finds nobody writing writes.
  Status settle(std::unique_lock<std::mutex>& lock);
  void write(std::unique_lock<std::mutex>& lock);

  FileSpace& files_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Catalog durable_;
  Catalog newest_;      ///< durable_ with both batches
  BatchRef writing_;    ///< null: nobody writes
  BatchRef gathering_;  ///< null: nothing waits for the next write
};

}  // namespace zed::store
