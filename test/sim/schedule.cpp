#include "sim/schedule.hpp"

#include <fmt/format.h>

#include <tuple>

namespace zed::sim {

bool Schedule::Later::operator()(const Entry& a, const Entry& b) const {
  return std::tie(a.at, a.tie, a.sequence) > std::tie(b.at, b.tie, b.sequence);
}

void Schedule::after(Millis delay, std::string_view what, Action action) {
  const std::int64_t at = now_.ms + (delay.value > 0 ? delay.value : 0);
  entries_.push({at, ties_.next(), ++sequence_, what, std::move(action)});
}

bool Schedule::step(Instant end) {
  if (entries_.empty() || entries_.top().at > end.ms) {
    now_ = end;
    return false;
  }
  // The queue only gives out const references; the action is moved out right before the pop.
  Entry entry = std::move(const_cast<Entry&>(entries_.top()));
  entries_.pop();
  now_ = Instant{entry.at};
  ++count_;
  hash_ = (hash_ ^ static_cast<std::uint64_t>(entry.at)) * 0x100000001b3ULL;
  mix(entry.what);
  entry.action();
  return true;
}

void Schedule::mix(std::string_view text) {
  for (char c : text)
    hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
}

void Schedule::note(std::string_view text) {
  mix(text);
  if (trace_) trace_(fmt::format("{:>9.3f} {}", static_cast<double>(now_.ms) / 1000, text));
}

}  // namespace zed::sim
