#include "store/commit_queue.hpp"

#include <algorithm>

namespace zed::store {

void CommitQueue::enter(Catalog next) {
  newest_ = std::move(next);
  if (!gathering_) gathering_ = std::make_shared<Batch>();
  auto touched = newest_.take_touched();
  gathering_->touched.insert(gathering_->touched.end(), touched.begin(), touched.end());
}

Status CommitQueue::settle(std::unique_lock<std::mutex>& lock) {
  BatchRef batch = gathering_ ? gathering_ : writing_;
  while (batch && !batch->over) {
    if (writing_)
      changed_.wait(lock);
    else
      write(lock);
  }
  if (batch && batch->error) return fail(*batch->error);
  return {};
}

void CommitQueue::write(std::unique_lock<std::mutex>& lock) {
  writing_ = std::exchange(gathering_, nullptr);
  std::vector<DatasetName> touched = std::move(writing_->touched);
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  const Catalog before = durable_;
  Catalog after = newest_;
  lock.unlock();
  Status kept = files_.keep({before, after, touched});
  lock.lock();
  if (kept) {
    durable_ = std::move(after);
  } else {
    // What was gathered meanwhile stands on what has failed, so it fails with it.
    writing_->error = kept.error();
    if (gathering_) {
      gathering_->error = kept.error();
      gathering_->over = true;
      gathering_.reset();
    }
    newest_ = durable_;
  }
  writing_->over = true;
  writing_.reset();
  changed_.notify_all();
}

}  // namespace zed::store
