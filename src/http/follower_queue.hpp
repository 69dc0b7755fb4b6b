#pragma once
// INTERNAL to src/http: what a follower of events is still to be sent, without a socket in sight.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "base/units.hpp"

namespace zed::http {

/// First what the follower missed, then what happens; each event once, and bounded: a follower that
/// is too far behind is told so and let go.
class FollowerQueue {
public:
  using Text = std::shared_ptr<const std::string>;  ///< encoded once for all followers

  /// `most`: bytes of events that may wait.
  explicit FollowerQueue(Bytes most) : most_(static_cast<std::size_t>(most.value)) {}

  /// The follower knows the events up to this number, and what came after it will be pushed as its
  /// backlog. Events that happen meanwhile wait.
  void expect_backlog(std::uint64_t known);
  /// The backlog has been pushed, by push_backlog(). False: there is no room for what waited.
  [[nodiscard]] bool backlog_ends();

  /// An event that is known already is left out. False: there is no room for it.
  [[nodiscard]] bool push_backlog(std::uint64_t number, Text text);
  [[nodiscard]] bool push(std::uint64_t number, Text text);
  /// What is no event: the head of the stream, a comment.
  void say(Text text);
  /// Nothing else follows; of what waits only that remains which is being written.
  void end_with(Text last_words);

  /// What is to be written, or being written.
  const Text& front() const { return waiting_.front(); }
  void pop();
  bool is_empty() const { return waiting_.empty(); }
  bool is_ending() const { return ending_; }
  std::size_t size() const { return waiting_.size(); }
  /// The last event that the follower has been, or will be, sent.
  std::uint64_t last_number() const { return last_number_; }

private:
  bool has_room_for(const Text& text) const { return bytes_ + text->size() <= most_; }

  std::size_t most_;
  std::size_t bytes_ = 0;  ///< of `waiting_` and of `early_`
  std::deque<Text> waiting_;
  /// A backlog that never comes must not make room for ever more, so that these count as well.
  std::deque<std::pair<std::uint64_t, Text>> early_;
  std::uint64_t last_number_ = 0;
  bool has_backlog_ = true;
  bool ending_ = false;
};

}  // namespace zed::http
