#include "net/workers.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace zed::net {

struct WorkerPool::State {
  struct Item {
    std::function<void()> work;
    std::function<void()> done;
  };

  State(Loop& owner, std::size_t limit) : loop(owner), max_queued(limit) {}

  void serve() {
    while (auto item = next()) {
      item->work();
      // The function may own what must be freed before `done` sees the result.
      item->work = nullptr;
      const std::lock_guard lock(mutex);
      if (!stopping) loop.post(std::move(item->done));
    }
  }

  std::unique_ptr<Item> next() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return stopping || !queue.empty(); });
    if (stopping) return nullptr;
    auto item = std::make_unique<Item>(std::move(queue.front()));
    queue.pop_front();
    return item;
  }

  Loop& loop;
  const std::size_t max_queued;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Item> queue;
  bool stopping = false;
  std::vector<std::thread> threads;
};

WorkerPool::WorkerPool(Loop& loop, std::size_t threads, std::size_t max_queued)
    : state_(std::make_shared<State>(loop, max_queued)) {
  ZED_ASSERT(threads > 0);
  for (std::size_t i = 0; i < threads; ++i)
    state_->threads.emplace_back([state = state_.get()] { state->serve(); });
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
  }
  state_->changed.notify_one();
  return {};
}

}  // namespace zed::net
