#include "beam/outbox.hpp"

#include <utility>

namespace zed::beam {

void Outbox::add(const std::string& to, std::vector<std::string> frames) {
  if (frames.empty()) return;
  auto& waiting = frames_[to];
  if (waiting.empty()) turns_.push_back(to);
  for (std::string& frame : frames) {
    size_ += frame.size();
    waiting.push_back(std::move(frame));
  }
}

std::string Outbox::take(std::size_t most) {
  std::string out;
  while (!turns_.empty()) {
    const auto next = frames_.find(turns_.front());
    std::string& frame = next->second.front();
    if (!out.empty() && out.size() + frame.size() > most) break;
    size_ -= frame.size();
    // A single message is the usual case, and is not copied.
    if (out.empty())
      out = std::move(frame);
    else
      out += frame;
    next->second.pop_front();
    std::string receiver = std::move(turns_.front());
    turns_.pop_front();
    if (next->second.empty())
      frames_.erase(next);
    else
      turns_.push_back(std::move(receiver));
  }
  return out;
}

}  // namespace zed::beam
