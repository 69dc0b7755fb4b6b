#pragma once
// INTERNAL to src/http: a request whose answer is due.

#include <functional>
#include <utility>

#include "http/server.hpp"

namespace zed::http {

/// Lives in the copies of a Reply: the last one that goes without a word answers for them all.
class PendingReply {
public:
  explicit PendingReply(std::function<void(Result<Value>)> done) : done_(std::move(done)) {}
  ~PendingReply() {
    finish(fail(ErrorCode::internal, "the controller dropped the request without an answer"));
  }
  PendingReply(const PendingReply&) = delete;
  PendingReply& operator=(const PendingReply&) = delete;

  bool is_due() const { return static_cast<bool>(done_); }
  /// Whom to tell if the client goes away before the answer.
  void on_gone(OnGone on_gone) { on_gone_ = std::move(on_gone); }

  /// Only the first answer counts.
  void finish(Result<Value> result) {
    on_gone_ = nullptr;
    if (auto call = std::exchange(done_, nullptr)) call(std::move(result));
  }
  /// No answer came in time: for the handler that is a client that went away.
  void give_up(Error why) {
    tell_gone();
    finish(fail(std::move(why)));
  }
  /// The client went away.
  void abandon() {
    done_ = nullptr;
    tell_gone();
  }

private:
  void tell_gone() {
    if (auto call = std::exchange(on_gone_, nullptr)) call();
  }

  std::function<void(Result<Value>)> done_;
  OnGone on_gone_;
};

}  // namespace zed::http
