#include "http/follower_queue.hpp"

namespace zed::http {

void FollowerQueue::expect_backlog(std::uint64_t known) {
  last_number_ = known;
  has_backlog_ = false;
}

bool FollowerQueue::backlog_ends() {
  has_backlog_ = true;
  for (auto& [number, text] : std::exchange(early_, {})) {
    bytes_ -= text->size();
    if (!push(number, std::move(text))) return false;
  }
  return true;
}

bool FollowerQueue::push_backlog(std::uint64_t number, Text text) {
  if (number <= last_number_) return true;
  if (!has_room_for(text)) return false;
  last_number_ = number;
  say(std::move(text));
  return true;
}

bool FollowerQueue::push(std::uint64_t number, Text text) {
  if (has_backlog_) return push_backlog(number, std::move(text));
  if (!has_room_for(text)) return false;
  bytes_ += text->size();
  early_.emplace_back(number, std::move(text));
  return true;
}

void FollowerQueue::say(Text text) {
  bytes_ += text->size();
  waiting_.push_back(std::move(text));
}

void FollowerQueue::end_with(Text last_words) {
  ending_ = true;
  early_.clear();
  if (waiting_.size() > 1) waiting_.erase(waiting_.begin() + 1, waiting_.end());
  bytes_ = waiting_.empty() ? 0 : waiting_.front()->size();
  say(std::move(last_words));
}

void FollowerQueue::pop() {
  bytes_ -= waiting_.front()->size();
  waiting_.pop_front();
}

}  // namespace zed::http
