#include "repl/chains.hpp"

#include <utility>

namespace zed::repl {
namespace {

/// A stream that is resumed begins in its middle: nobody can join it.
bool begins_at_the_start(const Transfer& transfer) {
  return std::holds_alternative<Full>(transfer.step) ||
         std::holds_alternative<Incremental>(transfer.step);
}

bool is_one_stream(const Transfer& a, const Transfer& b) {
  return a.uuid == b.uuid && a.source == b.source && a.kind == b.kind && a.step == b.step;
}

}  // namespace

bool can_meet(const FleetView& view, const NodeName& from, const NodeName& to) {
  const Node* sender = view.find_node(from);
  const Node* receiver = view.find_node(to);
  return sender != nullptr && receiver != nullptr &&
         (sender->facts.dialable || receiver->facts.dialable);
}

std::vector<Transfer> take_chain(const FleetView& view, std::vector<Transfer>& due,
                                 const MayPass& may_pass) {
  std::vector<Transfer> chain{std::move(due.front())};
  std::vector<Transfer> left;
  const bool starts = begins_at_the_start(chain.front());
  for (std::size_t i = 1; i < due.size(); ++i) {
    Transfer& next = due[i];
    const NodeName last = chain.back().target;
    if (!starts || chain.size() == most_hops || !is_one_stream(chain.front(), next) ||
        !can_meet(view, last, next.target) || !may_pass(last, next.target)) {
      left.push_back(std::move(next));
      continue;
    }
    next.passed_on_by = last;
    next.why += ", passed on by " + last.str();
    // The first hop keeps to it, and nothing comes faster than that.
    next.max_rate.reset();
    chain.push_back(std::move(next));
  }
  due = std::move(left);
  return chain;
}

std::vector<std::vector<PlanStep>> plan_chain(const FleetView& view,
                                              const std::vector<Transfer>& hops,
                                              const ControllerTerm& term, IdSource& ids) {
  std::vector<std::vector<PlanStep>> plan;
  ReceiveSnapshot* into = nullptr;
  plan.reserve(hops.size());  // `into` stays where it is
  for (const Transfer& hop : hops) {
    plan.push_back(plan_steps(view, hop, term, ids));
    if (plan.back().size() != 2) continue;
    auto& send = std::get<SendSnapshot>(plan.back()[0].action);
    if (into != nullptr && !hop.passed_on_by.empty()) {
      send.through = into->ticket.id;
      into->passes_to = send.ticket.id;
    }
    into = &std::get<ReceiveSnapshot>(plan.back()[1].action);
  }
  return plan;
}

}  // namespace zed::repl
