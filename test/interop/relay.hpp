#pragma once
// A TCP relay that holds back what it was given until told: two attempts to connect can be made to
// cross, whatever the machine is doing.

#include <memory>
#include <vector>

#include "net/connection.hpp"
#include "net/listener.hpp"
#include "net/socket.hpp"

namespace zed::interop {

class Relay {
public:
  /// Passes connections on to `target` once open() was called.
  Relay(net::Loop& loop, net::Endpoint target) : loop_(loop), target_(std::move(target)) {
    auto listener = net::Listener::tcp(loop, {"127.0.0.1", 0}, net::Exposure::loopback_only,
                                       [this](net::Fd fd) { accept(std::move(fd)); });
    if (!listener) std::abort();
    listener_ = std::make_unique<net::Listener>(std::move(*listener));
  }

  std::uint16_t port() const { return listener_->endpoint().port; }
  std::size_t accepted() const { return pairs_.size(); }
  void open() {
    open_ = true;
    for (const auto& pair : pairs_)
      pass_on(pair);
  }

private:
  struct Pair {
    net::Connection near;
    net::Connection far;
    std::string held;  ///< until the far side is connected
    bool connected = false;
  };

  void accept(net::Fd fd) {
    auto pair = std::make_shared<Pair>();
    pair->near = net::Connection(loop_, std::move(fd));
    pair->near.start({[pair = std::weak_ptr<Pair>(pair)](std::span<const std::uint8_t> bytes) {
                        const auto self = pair.lock();
                        if (!self) return;
                        const std::string text(bytes.begin(), bytes.end());
                        if (self->connected)
                          (void)self->far.send(text);
                        else
                          self->held += text;
                      },
                      [pair = std::weak_ptr<Pair>(pair)](const Error&) {
                        if (const auto self = pair.lock()) self->far.close();
                      },
                      {}});
    pairs_.push_back(pair);
    if (open_) pass_on(pair);
  }

  void pass_on(const std::shared_ptr<Pair>& pair) {
    net::connect_tcp(loop_, target_, {}, [this, pair](Result<net::Fd> fd) {
      if (!fd) return pair->near.close();
      pair->far = net::Connection(loop_, std::move(*fd));
      pair->far.start({[near = std::weak_ptr<Pair>(pair)](std::span<const std::uint8_t> bytes) {
                         if (const auto self = near.lock())
                           (void)self->near.send(std::string(bytes.begin(), bytes.end()));
                       },
                       [near = std::weak_ptr<Pair>(pair)](const Error&) {
                         if (const auto self = near.lock()) self->near.finish();
                       },
                       {}});
      pair->connected = true;
      (void)pair->far.send(std::exchange(pair->held, {}));
    });
  }

  net::Loop& loop_;
  net::Endpoint target_;
  std::unique_ptr<net::Listener> listener_;
  std::vector<std::shared_ptr<Pair>> pairs_;
  bool open_ = false;
};

}  // namespace zed::interop
