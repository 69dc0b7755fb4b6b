#include "net/workers.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace zed::net {

struct WorkerPool::State : std::enable_shared_from_this<State> {
  struct Item {
    std::function<void()> work;
    std::function<void()> done;
  };

  State(Loop& owner, std::size_t most, std::size_t limit)
      : loop(owner), most_threads(most), max_queued(limit) {}

  /// The caller has the lock. False: there is none to do any work.
  bool have_thread() {
    if (queue.size() <= idle || threads.size() == most_threads) return true;
    try {
      threads.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
      // Those that there are do the work too, later.
    }
    return !threads.empty();
  }

  void serve() {
    while (auto item = next()) {
      item->work();
      // The function may own what must be freed before `done` sees the result.
      item->work = nullptr;
      const std::lock_guard lock(mutex);
      // The pool may go before the loop comes to it, and its owner with it.
      if (!stopping)
        loop.post([pool = weak_from_this(), done = std::move(item->done)] {
          if (!pool.expired()) done();
        });
    }
  }

  std::unique_ptr<Item> next() {
    std::unique_lock lock(mutex);
    ++idle;
    changed.wait(lock, [this] { return stopping || !queue.empty(); });
    --idle;
    if (stopping) return nullptr;
    auto item = std::make_unique<Item>(std::move(queue.front()));
    queue.pop_front();
    return item;
  }

  Loop& loop;
  const std::size_t most_threads;
  const std::size_t max_queued;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Item> queue;
  bool stopping = false;
  std::size_t idle = 0;  ///< threads that wait for work
  std::vector<std::thread> threads;
};

WorkerPool::WorkerPool(Loop& loop, std::size_t threads, std::size_t max_queued)
    : state_(std::make_shared<State>(loop, threads, max_queued)) {
  ZED_ASSERT(threads > 0);
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->queue.clear();
  }
  state_->changed.notify_all();
  for (std::thread& thread : state_->threads)
    thread.join();
}

Status WorkerPool::post(std::function<void()> work, std::function<void()> done) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->queue.size() >= state_->max_queued)
      return fail(ErrorCode::busy, std::to_string(state_->queue.size()) +
                                       " pieces of work already wait for a worker");
    state_->queue.push_back({std::move(work), std::move(done)});
    if (!state_->have_thread()) {
      state_->queue.pop_back();
      return fail(ErrorCode::busy, "this process may start no thread",
                  "raise the limit of processes (ulimit -u)");
    }
  }
  state_->changed.notify_one();
  return {};
}

}  // namespace zed::net
