#include "controller/event_ring.hpp"

#include <algorithm>

namespace zed::controller {
namespace {

// What agents and people write ends up here; a line stays a line.
constexpr std::size_t longest_text = 2048;

void shorten(std::string& text) {
  if (text.size() <= longest_text) return;
  std::size_t end = longest_text;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
    --end;
  text.resize(end);
}

}  // namespace

void EventRing::add(std::string kind, std::string subject, std::string text, WallTime at,
                    std::vector<Effect>& out) {
  shorten(subject);
  shorten(text);
  events_.push_back({next_++, at, std::move(kind), std::move(subject), std::move(text)});
  if (events_.size() > capacity) events_.pop_front();
  out.push_back(Publish{events_.back()});
}

std::vector<api::FleetEvent> EventRing::since(std::uint64_t after, std::int64_t limit) const {
  auto wanted = static_cast<std::size_t>(std::clamp<std::int64_t>(limit, 1, 1000));
  std::vector<api::FleetEvent> found;
  for (auto event = events_.rbegin(); event != events_.rend() && found.size() < wanted; ++event) {
    if (event->number <= after) break;
    found.push_back(*event);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace zed::controller
