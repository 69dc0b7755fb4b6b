#pragma once
// Registration with the Erlang port mapper, where one runs.

#include <cstdint>
#include <memory>
#include <string>

#include "net/loop.hpp"

namespace zed::beam {

/// Keeps a node's name and port registered while it lives: epmd forgets a node whose connection
/// closes, so it is held open, and made anew when epmd comes back. Every failure is silent: without
/// epmd everything works that is given a port.
class EpmdRegistration {
public:
  /// `short_name` is what stands before '@'. `epmd_port` on 127.0.0.1, usually 4369.
  EpmdRegistration(net::Loop& loop, std::string short_name, std::uint16_t node_port,
                   std::uint16_t epmd_port);
  ~EpmdRegistration();

  /// Whether epmd has accepted the name on the connection that is open.
  bool is_registered() const;

private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace zed::beam
