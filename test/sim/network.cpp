#include "sim/network.hpp"

#include <algorithm>

#include "sim/world.hpp"

namespace zed::sim {
namespace {

std::pair<std::size_t, std::size_t> pair_of(std::size_t a, std::size_t b) {
  return a < b ? std::pair{a, b} : std::pair{b, a};
}

}  // namespace

Network::Network(World& world) : world_(world), random_(world.seed(), "network") {}

bool Network::reachable(std::size_t from, std::size_t to) const {
  if (!world_.machine_is_up(from) || !world_.machine_is_up(to)) return false;
  auto cut = cuts_.find(pair_of(from, to));
  return from == to || cut == cuts_.end() || cut->second == 0;
}

void Network::cut(std::size_t a, std::size_t b) {
  if (a != b) ++cuts_[pair_of(a, b)];
}
void Network::join(std::size_t a, std::size_t b) {
  auto found = cuts_.find(pair_of(a, b));
  if (found != cuts_.end() && found->second > 0) --found->second;
}
void Network::heal_all() {
  cuts_.clear();
  slow_ = false;
}

Millis Network::latency() {
  if (slow_ && random_.chance(300)) return random_.millis(200, 2000);
  return random_.chance(50) ? random_.millis(20, 200) : random_.millis(1, 8);
}

Network::LinkPtr Network::find(std::uint64_t id) const {
  auto found = links_.find(id);
  return found == links_.end() ? nullptr : found->second;
}

bool Network::is_dialling_or_linked(std::uint64_t agent_run, std::uint64_t controller_run) const {
  return std::any_of(links_.begin(), links_.end(), [&](const auto& entry) {
    const Link& link = *entry.second;
    return link.agent_run == agent_run && link.controller_run == controller_run && !link.closing;
  });
}

void Network::dial(std::size_t machine, std::uint64_t agent_run, std::uint64_t controller_run,
                   std::size_t controller_machine) {
  auto link = std::make_shared<Link>();
  link->id = next_link_++;
  link->machine = machine;
  link->agent_run = agent_run;
  link->controller_run = controller_run;
  link->controller_machine = controller_machine;
  link->patience = random_.millis(4000, 15000);
  links_.emplace(link->id, link);
  world_.schedule.after(latency(), "dial", [this, link] {
    if (!reachable(link->machine, link->controller_machine) || link->closing ||
        !world_.agent_runs(link->machine, link->agent_run) ||
        !world_.controller_runs(link->controller_run)) {
      links_.erase(link->id);
      return;
    }
    link->agent_open = true;
    link->controller_open = true;
    world_.tell_controller(link->controller_run, controller::AgentConnected{link->id});
    world_.tell_agent(link->machine, link->agent_run, agent::ControllerConnected{link->id});
  });
}

void Network::to_controller(std::uint64_t id, AgentMessage message) {
  LinkPtr link = find(id);
  if (!link || !link->agent_open) return;
  link->up.push_back(std::move(message));
  const Instant due = std::max(link->up_last, world_.schedule.now() + latency());
  link->up_last = due;
  world_.schedule.after(due - world_.schedule.now(), "message up", [this, link] { pump_up(link); });
}

void Network::to_agent(std::uint64_t id, ControllerMessage message) {
  LinkPtr link = find(id);
  if (!link || !link->controller_open) return;
  link->down.push_back(std::move(message));
  const Instant due = std::max(link->down_last, world_.schedule.now() + latency());
  link->down_last = due;
  world_.schedule.after(due - world_.schedule.now(), "message down",
                        [this, link] { pump_down(link); });
}

bool Network::passes(const LinkPtr& link) {
  if (reachable(link->machine, link->controller_machine)) {
    link->stalled = false;
    return true;
  }
  if (!link->stalled) {
    link->stalled = true;
    link->stalled_since = world_.schedule.now();
  }
  if (world_.schedule.now() - link->stalled_since > link->patience) break_link(link);
  return false;
}

void Network::pump_up(const LinkPtr& link) {
  if (link->up.empty() || !link->controller_open) return;
  if (!passes(link)) {
    world_.schedule.after(Millis{250}, "stalled up", [this, link] { pump_up(link); });
    return;
  }
  AgentMessage message = std::move(link->up.front());
  link->up.pop_front();
  world_.tell_controller(link->controller_run, controller::AgentSaid{link->id, std::move(message)});
}

void Network::pump_down(const LinkPtr& link) {
  if (link->down.empty() || !link->agent_open) return;
  if (!passes(link)) {
    world_.schedule.after(Millis{250}, "stalled down", [this, link] { pump_down(link); });
    return;
  }
  ControllerMessage message = std::move(link->down.front());
  link->down.pop_front();
  world_.tell_agent(link->machine, link->agent_run,
                    agent::ControllerSaid{link->id, std::move(message)});
}

void Network::break_link(const LinkPtr& link) {
  link->closing = true;
  link->up.clear();
  link->down.clear();
  tell_agent_gone(link, random_.millis(0, 3000));
  tell_controller_gone(link, random_.millis(0, 3000));
}

void Network::tell_agent_gone(const LinkPtr& link, Millis after) {
  world_.schedule.after(after, "controller gone", [this, link] {
    if (!link->agent_open) return;
    link->agent_open = false;
    world_.tell_agent(link->machine, link->agent_run, agent::ControllerGone{link->id});
    forget_if_over(link);
  });
}

void Network::tell_controller_gone(const LinkPtr& link, Millis after) {
  world_.schedule.after(after, "agent gone", [this, link] {
    if (!link->controller_open) return;
    link->controller_open = false;
    world_.tell_controller(link->controller_run, controller::AgentGone{link->id});
    forget_if_over(link);
  });
}

void Network::forget_if_over(const LinkPtr& link) {
  if (!link->agent_open && !link->controller_open) links_.erase(link->id);
}

void Network::close_from_agent(std::uint64_t id) {
  LinkPtr link = find(id);
  if (!link) return;
  const bool clean = reachable(link->machine, link->controller_machine);
  link->closing = true;
  // The end travels behind what was said before it.
  const Millis behind = std::max(link->up_last, world_.schedule.now()) - world_.schedule.now();
  tell_agent_gone(link, Millis{0});
  tell_controller_gone(link, clean ? behind + latency() : link->patience);
}

void Network::close_from_controller(std::uint64_t id) {
  LinkPtr link = find(id);
  if (!link) return;
  const bool clean = reachable(link->machine, link->controller_machine);
  link->closing = true;
  const Millis behind = std::max(link->down_last, world_.schedule.now()) - world_.schedule.now();
  tell_controller_gone(link, Millis{0});
  tell_agent_gone(link, clean ? behind + latency() : link->patience);
}

void Network::agent_died(std::uint64_t agent_run) {
  std::vector<std::uint64_t> mine;
  for (const auto& [id, link] : links_)
    if (link->agent_run == agent_run) mine.push_back(id);
  for (std::uint64_t id : mine) {
    LinkPtr link = find(id);
    link->agent_open = false;
    close_from_agent(id);
  }
}

void Network::controller_died(std::uint64_t controller_run) {
  std::vector<std::uint64_t> mine;
  for (const auto& [id, link] : links_)
    if (link->controller_run == controller_run) mine.push_back(id);
  for (std::uint64_t id : mine) {
    LinkPtr link = find(id);
    link->controller_open = false;
    close_from_controller(id);
  }
}

}  // namespace zed::sim
