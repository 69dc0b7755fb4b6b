#pragma once
// Where connections wait until they have said who they are. There is room for so many; when it is
// full, whoever takes the most room makes it: the oldest of the address that has the most waiting.
// So a flood from one address, or from some, shows out its own and nobody else. Pure.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace zed::net {

class Lobby {
public:
  using Id = std::uint64_t;

  /// `room`: at least 1.
  explicit Lobby(std::size_t room) : room_(room) {}

  /// Lets a connection in; ids grow with time and are used once. `host`: its address in numbers;
  /// IPv6 addresses of one /64 count as one. Returns who is to be closed to make room, and has
  /// forgotten it; this may be the new one's elder of the same address, never the new one.
  std::optional<Id> enter(Id id, std::string_view host);
  /// It is known now, or gone. Nothing for one who is not here.
  void leave(Id id);
  void clear();

  std::size_t size() const { return source_of_.size(); }

private:
  Id most_crowded_oldest() const;

  std::size_t room_;
  std::map<Id, std::string> source_of_;
  std::map<std::string, std::set<Id>> waiting_;  ///< by source; the oldest first
};

}  // namespace zed::net
