#pragma once
// Blocking work off the loop's thread: a fixed number of threads, a bounded queue, results posted
// back.

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "base/result.hpp"
#include "net/loop.hpp"

namespace zed::net {

class WorkerPool {
public:
  /// `threads`, at least 1, are started as work comes that nobody is free for; at most `max_queued`
  /// pieces of it wait beside those being done.
  WorkerPool(Loop& loop, std::size_t threads, std::size_t max_queued);
  /// Waits for work that has begun; drops what waits. Nothing is posted afterwards.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Runs `work` on a worker, then `done` on the loop. `work` must not throw. Error: `busy` if the
  /// queue is full or no thread can be started (neither is called then). Thread-safe.
  Status post(std::function<void()> work, std::function<void()> done);

  /// The same for work with a result: run<T>([] { return compute(); }, [](T t) { … }).
  template <class T, class Work, class Done> Status run(Work work, Done done) {
    auto result = std::make_shared<std::unique_ptr<T>>();
    return post(
        [result, work = std::move(work)]() mutable { *result = std::make_unique<T>(work()); },
        [result, done = std::move(done)]() mutable { done(std::move(**result)); });
  }

private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace zed::net
