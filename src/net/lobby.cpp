#include "net/lobby.hpp"

#include <array>

#include <arpa/inet.h>
#include <sys/socket.h>

#include "base/result.hpp"

namespace zed::net {
namespace {

constexpr std::size_t network_bytes = 8;  ///< of an IPv6 address; the rest is its owner's to choose

std::string source_of(std::string_view host) {
  std::array<unsigned char, 16> address{};
  std::string text(host.substr(0, host.find('%')));
  if (::inet_pton(AF_INET6, text.c_str(), address.data()) != 1) return text;
  // IPv4 in IPv6's clothes: the whole address says who it is.
  const bool mapped = text.find('.') != std::string::npos;
  const std::size_t length = mapped ? address.size() : network_bytes;
  return {address.begin(), address.begin() + length};
}

}  // namespace

std::optional<Lobby::Id> Lobby::enter(Id id, std::string_view host) {
  ZED_ASSERT(source_of_.empty() || source_of_.rbegin()->first < id);
  const std::string source = source_of(host);
  waiting_[source].insert(id);
  source_of_.emplace(id, source);
  if (source_of_.size() <= room_) return std::nullopt;
  const Id oldest = most_crowded_oldest();
  leave(oldest);
  return oldest;
}

Lobby::Id Lobby::most_crowded_oldest() const {
  const std::set<Id>* crowd = nullptr;
  for (const auto& [source, ids] : waiting_) {
    const bool larger = crowd == nullptr || ids.size() > crowd->size();
    const bool as_large_and_older =
        crowd != nullptr && ids.size() == crowd->size() && *ids.begin() < *crowd->begin();
    if (larger || as_large_and_older) crowd = &ids;
  }
  return *crowd->begin();
}

void Lobby::leave(Id id) {
  const auto found = source_of_.find(id);
  if (found == source_of_.end()) return;
  const auto crowd = waiting_.find(found->second);
  crowd->second.erase(id);
  if (crowd->second.empty()) waiting_.erase(crowd);
  source_of_.erase(found);
}

void Lobby::clear() {
  source_of_.clear();
  waiting_.clear();
}

}  // namespace zed::net
