#include "net/loop.hpp"

#include <chrono>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.hpp"
#include "net/asio.hpp"

namespace zed::net {

Loop::Loop() : internals_(std::make_unique<Internals>()) {}
Loop::~Loop() = default;

void Loop::run() {
  auto& context = internals_->context;
  if (context.stopped()) context.restart();
  context.run();
  context.restart();
}

bool Loop::run_until(const std::function<bool()>& done, Millis limit) {
  auto& context = internals_->context;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit.value);
  bool held = done();
  while (!held && context.run_one_until(deadline) > 0)
    held = done();
  context.restart();
  return held;
}

void Loop::stop() {
  // Posted, so that a stop() before run() is not forgotten by run()'s restart().
  boost::asio::post(internals_->context, [&context = internals_->context] { context.stop(); });
}

void Loop::post(std::function<void()> work) {
  boost::asio::post(internals_->context, std::move(work));
}

Instant Loop::now() const {
  return monotonic_now();
}

Now Loop::clocks() const {
  return {now(), wall_now()};
}

struct Timer::State : std::enable_shared_from_this<Timer::State> {
  explicit State(boost::asio::io_context& context) : timer(context) {}

  void fire(std::uint64_t armed) {
    // asio may have queued the handler of a timer cancelled since.
    if (armed != generation || !work) return;
    auto call = std::exchange(work, nullptr);
    call();
  }

  boost::asio::steady_timer timer;
  std::function<void()> work;
  std::uint64_t generation = 0;
};

Timer::Timer(Loop& loop) : state_(std::make_shared<State>(context(loop))) {}
Timer::~Timer() {
  cancel();
}
Timer::Timer(Timer&&) noexcept = default;
Timer& Timer::operator=(Timer&& other) noexcept {
  if (this == &other) return *this;
  cancel();
  state_ = std::move(other.state_);
  return *this;
}

void Timer::start(Millis delay, std::function<void()> work) {
  cancel();
  state_->work = std::move(work);
  state_->timer.expires_after(std::chrono::milliseconds(delay.value));
  state_->timer.async_wait(
      [state = state_, armed = state_->generation](const boost::system::error_code& error) {
        if (!error) state->fire(armed);
      });
}

void Timer::cancel() {
  if (!state_) return;
  ++state_->generation;
  state_->work = nullptr;
  state_->timer.cancel();
}

bool Timer::pending() const {
  return state_ && state_->work;
}

}  // namespace zed::net
