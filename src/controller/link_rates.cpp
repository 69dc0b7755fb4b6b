#include "controller/link_rates.hpp"

#include <algorithm>

namespace zed::controller {
namespace {

void blend(Bytes& known, Bytes rate) {
  known = known.value == 0 ? rate : Bytes{(known.value / 4) * 3 + rate.value / 4};
}

}  // namespace

LinkRates::Link* LinkRates::link(const NodeName& source, const NodeName& target) {
  const std::pair key{source, target};
  if (links_.size() >= most_links && !links_.contains(key)) return nullptr;
  return &links_[key];
}

void LinkRates::note(const NodeName& source, const NodeName& target, Bytes rate) {
  if (rate.value <= 0) return;
  if (Link* known = link(source, target)) blend(known->rate, rate);
}

void LinkRates::finished(const NodeName& source, const NodeName& target, Bytes moved, Millis took,
                         WallTime at) {
  if (moved < least_moved || took < least_time) return;
  Link* known = link(source, target);
  if (known == nullptr) return;
  const auto seconds = static_cast<double>(took.value) / 1000;
  const Bytes rate{static_cast<std::int64_t>(static_cast<double>(moved.value) / seconds)};
  blend(known->rate, rate);
  known->recent.push_back(rate);
  if (known->recent.size() > longest) known->recent.pop_front();
  known->at = at;
}

void LinkRates::forget(const NodeName& node) {
  std::erase_if(links_, [&node](const auto& entry) {
    return entry.first.first == node || entry.first.second == node;
  });
}

Bytes LinkRates::rate(const NodeName& source, const NodeName& target) const {
  auto found = links_.find({source, target});
  return found == links_.end() ? Bytes{} : found->second.rate;
}

Bytes LinkRates::best_to(const NodeName& target) const {
  Bytes best;
  for (const auto& [ends, link] : links_)
    if (ends.second == target) best = std::max(best, link.rate);
  return best;
}

std::map<NodeName, LinkRates::Link> LinkRates::from(const NodeName& source) const {
  std::map<NodeName, Link> found;
  for (const auto& [ends, link] : links_)
    if (ends.first == source) found.emplace(ends.second, link);
  return found;
}

std::map<NodeName, Bytes> LinkRates::rates_from(const NodeName& source) const {
  std::map<NodeName, Bytes> found;
  for (const auto& [target, link] : from(source))
    found.emplace(target, link.rate);
  return found;
}

}  // namespace zed::controller
