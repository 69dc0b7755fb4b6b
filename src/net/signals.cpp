#include "net/signals.hpp"

#include <boost/asio/signal_set.hpp>

#include "net/asio.hpp"

namespace zed::net {

struct Signals::State : std::enable_shared_from_this<Signals::State> {
  State(Loop& loop, std::function<void(int)> handler)
      : set(context(loop)), on_signal(std::move(handler)) {}

  void wait() {
    set.async_wait([self = shared_from_this()](const boost::system::error_code& error, int number) {
      if (error || !self->open) return;
      self->on_signal(number);
      if (self->open) self->wait();
    });
  }

  void close() {
    open = false;
    boost::system::error_code ignored;
    set.clear(ignored);
    set.cancel(ignored);
  }

  boost::asio::signal_set set;
  std::function<void(int)> on_signal;
  bool open = true;
};

Signals::Signals(std::shared_ptr<State> state) : state_(std::move(state)) {
  state_->wait();
}
Signals::~Signals() {
  if (state_) state_->close();
}
Signals::Signals(Signals&&) noexcept = default;
Signals& Signals::operator=(Signals&& other) noexcept {
  if (this == &other) return *this;
  if (state_) state_->close();
  state_ = std::move(other.state_);
  return *this;
}

Result<Signals> Signals::watch(Loop& loop, std::initializer_list<int> signals,
                               std::function<void(int)> on_signal) {
  auto state = std::make_shared<State>(loop, std::move(on_signal));
  for (int number : signals) {
    boost::system::error_code error;
    state->set.add(number, error);
    if (error) return fail(system_error(error.value(), "watch signal " + std::to_string(number)));
  }
  return Signals(std::move(state));
}

}  // namespace zed::net
