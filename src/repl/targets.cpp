#include "repl/targets.hpp"

#include <algorithm>
#include <tuple>

#include "base/enum.hpp"
#include "base/text.hpp"

namespace zed::repl {
namespace {

bool is_laptop(const Node& node) {
  auto says_so = [](const std::vector<std::string>& labels) {
    return std::find(labels.begin(), labels.end(), "laptop") != labels.end();
  };
  return !node.facts.dialable || says_so(node.facts.labels) ||
         (node.declared && says_so(node.declared->labels));
}

/// A draining node is about to go: nothing new is put there.
bool takes_copies(NodeStatus status, bool has_one) {
  switch (status) {
  case NodeStatus::up:
  case NodeStatus::cordoned: return true;
  case NodeStatus::suspect: return has_one;  // silence of seconds is no reason to copy again
  case NodeStatus::lost:
  case NodeStatus::draining: return false;
  }
  return false;
}

std::vector<Shortfall> shortfalls_of(const CopyRequest& request, const Node& node,
                                     const Dataset* copy) {
  std::vector<Shortfall> shortfalls;
  if (!takes_copies(node.status, copy != nullptr))
    shortfalls.push_back({"status", "up", std::string(to_string(node.status)), true});
  if (!node.facts.may_write_pool)
    shortfalls.push_back({"permission", "an agent that may write its pool", "read only", false});
  if (node.declared && !node.declared->may_hold(request.dataset))
    shortfalls.push_back(
        {"dataset", "a place for " + request.dataset.str(), "one for other roots only", false});
  Bytes there = copy != nullptr ? copy->used : Bytes{};
  Bytes missing = std::max(request.size - there, Bytes{});
  if (node.pool_free < missing)
    shortfalls.push_back(
        {"disk", show(missing) + " for the copy", show(node.pool_free) + " free", true});
  return shortfalls;
}

struct Candidate {
  bool is_chosen_already = false;
  bool has_copy = false;
  bool is_able = false;
  Bytes free;
  NodeName name;

  bool is_better_than(const Candidate& other) const {
    if (is_chosen_already != other.is_chosen_already) return is_chosen_already;
    if (has_copy != other.has_copy) return has_copy;
    if (is_able != other.is_able) return is_able;
    if (free != other.free) return free > other.free;
    return name < other.name;
  }
};

}  // namespace

CopyTargets choose_copy_targets(const FleetView& view, const CopyRequest& request) {
  CopyTargets result;
  std::vector<Candidate> candidates;
  for (const auto& [name, node] : view.nodes) {
    if (name == request.home) continue;
    const Dataset* copy = request.uuid.is_nil() ? nullptr : view.find_copy(name, request.uuid);
    auto shortfalls = shortfalls_of(request, node, copy);
    if (shortfalls.empty())
      candidates.push_back({request.holders.contains(name), copy != nullptr,
                            request.able.contains(name), node.pool_free, name});
    else
      result.refused.push_back({name, std::move(shortfalls)});
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.is_better_than(b); });
  auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(0, request.copies));
  for (const Candidate& candidate : candidates)
    if (result.nodes.size() < wanted) result.nodes.push_back(candidate.name);
  result.missing = static_cast<std::int64_t>(wanted - result.nodes.size());
  return result;
}

std::vector<NodeName> chain_order(const FleetView& view, std::vector<NodeName> targets,
                                  const std::map<NodeName, Bytes>& rate) {
  auto key = [&](const NodeName& name) {
    const Node* node = view.find_node(name);
    auto measured = rate.find(name);
    std::int64_t slowness = measured == rate.end() ? 0 : -measured->second.value;
    return std::make_tuple(node != nullptr && is_laptop(*node), slowness, name);
  };
  std::sort(targets.begin(), targets.end(),
            [&](const NodeName& a, const NodeName& b) { return key(a) < key(b); });
  return targets;
}

}  // namespace zed::repl
