#pragma once
// Signals as events on the loop.

#include <functional>
#include <initializer_list>
#include <memory>

#include "base/result.hpp"
#include "net/fd.hpp"
#include "net/loop.hpp"

namespace zed::net {

/// Calls `on_signal` on the loop's thread for each of `signals` until destroyed. One program may
/// have several; each gets every signal that it asked for.
class Signals {
public:
  static Result<Signals> watch(Loop& loop, std::initializer_list<int> signals,
                               std::function<void(int)> on_signal);
  ~Signals();
  Signals(Signals&&) noexcept;
  Signals& operator=(Signals&&) noexcept;

private:
  struct State;
  explicit Signals(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace zed::net
