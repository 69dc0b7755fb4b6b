// A copy brought to a node because a person wants it there: once, up to what is the newest now.

#include <fmt/format.h>

#include "controller/copies.hpp"
#include "controller/names.hpp"
#include "controller/operations/daily.hpp"
#include "controller/timelines.hpp"
#include "repl/step.hpp"

namespace zed::controller {
namespace {

constexpr Millis transfer_patience = minutes(24 * 60);

struct Order {
  DatasetId uuid;
  NodeName source;
  NodeName target;
  CheckpointId goal;  ///< the newest snapshot at the source when it was asked
  api::ReplicateReply reply;
  Instant until;          ///< when the controller stops trying
  std::string last_told;  ///< what it waits for, as events tell it; empty while something moves
};

Result<DatasetId> dataset_of(const Machine& m, const std::string& typed) {
  if (auto id = find_job(m.desired, typed)) {
    const DesiredJob& job = *m.desired.find(*id);
    if (!m.fleet.holders(job.dataset_uuid()).empty()) return job.dataset_uuid();
    return fail(ErrorCode::not_found, "job " + job.job.name.str() + " has no files yet",
                "zedctl why " + job.job.name.str());
  }
  ZED_TRY(DatasetName dataset, find_dataset(m, typed));
  return *m.fleet.uuid_of(dataset);
}

Status check_target(const Machine& m, const Order& order, const Dataset& from) {
  ZED_CHECK(check_ready(m, order.target));
  const Dataset* to = m.fleet.copy(order.target, order.uuid);
  if (to == nullptr) {
    if (m.fleet.uuid_of(from.name) == order.uuid) return {};
    return fail(ErrorCode::conflict, "another dataset is called " + from.name.str());
  }
  if (to->property(property::home) == order.target.str())
    return fail(
        ErrorCode::refused,
        order.target.str() + " is the home of " + from.name.str() + ": the others follow it",
        "name another node; zedctl resume JOB --on " + order.target.str() + " moves a job there");
  if (to->timeline() != from.timeline())
    return fail(ErrorCode::busy,
                "the copy on " + order.target.str() + " is being brought onto the current timeline",
                "try again in a moment");
  if (std::holds_alternative<repl::Conflict>(repl::replication_step(from, to)))
    return fail(ErrorCode::conflict, "the copies on " + order.source.str() + " and " +
                                         order.target.str() + " have nothing in common");
  return {};
}

Result<Order> prepare(const Machine& m, const api::Replicate& op) {
  Order order;
  ZED_TRY(order.uuid, dataset_of(m, op.what));
  ZED_TRY(order.target, find_node(m.desired, m.fleet.view(), op.to));
  auto source = best_holder(m, order.uuid);
  if (!source)
    return fail(ErrorCode::unavailable, "no connected node has a snapshot of " + op.what,
                "zedctl datasets");
  order.source = *source;
  const Dataset& from = *m.fleet.copy(order.source, order.uuid);
  if (from.newest() == nullptr)
    return fail(ErrorCode::not_found,
                from.name.str() + " has no snapshot yet, and only snapshots "
                                  "travel",
                "zedctl checkpoint JOB takes one of a running job");
  if (order.source != order.target) ZED_CHECK(check_target(m, order, from));
  order.goal = from.newest()->id;
  order.reply = {from.name.str(), order.source.str(),       order.target.str(), {}, {},
                 op.dry_run,      "@" + from.newest()->name};
  const Dataset* to = m.fleet.copy(order.target, order.uuid);
  for (const CheckpointId& id : repl::missing_snapshots(from, to)) {
    const Snapshot& snapshot = *from.find(id);
    // A full stream carries all that the first one refers to, an increment what is its own.
    const bool full = to == nullptr && order.reply.snapshots.empty();
    order.reply.bytes = order.reply.bytes + (full ? snapshot.referenced : snapshot.used);
    order.reply.snapshots.push_back("@" + snapshot.name);
  }
  return order;
}

bool has_goal(const Machine& m, const Order& order) {
  const Dataset* copy = m.fleet.copy(order.target, order.uuid);
  return copy != nullptr && copy->find(order.goal) != nullptr;
}

/// Who can send what is wanted: the node of before if it can, else whoever has it; when a home is
/// away, its replicas speak for it. A stream that broke off goes on from another node where it was.
std::optional<NodeName> sender_of(const Machine& m, const Order& order) {
  auto can = [&](const NodeName& node) {
    const Dataset* copy = m.fleet.copy(node, order.uuid);
    return m.fleet.is_ready(node) && copy != nullptr && copy->find(order.goal) != nullptr;
  };
  if (can(order.source)) return order.source;
  for (const NodeName& node : m.fleet.ready_holders(order.uuid))
    if (node != order.target && can(node)) return node;
  return std::nullopt;
}

/// Why nothing can be ordered now although the goal is missing; none if nothing but patience lacks.
std::optional<Error> hindrance(const Machine& m, const Order& order) {
  for (const NodeName* end : {&order.target, &order.source})
    if (!m.desired.members.contains(*end))
      return Error{ErrorCode::not_found,
                   "node " + end->str() + " is not of this fleet any more",
                   {},
                   "zedctl nodes shows who is"};
  const Dataset* from = m.fleet.copy(order.source, order.uuid);
  if (m.fleet.is_ready(order.source) && from == nullptr)
    return Error{ErrorCode::not_found,
                 order.reply.dataset + " is gone from " + order.source.str(),
                 {},
                 "zedctl datasets"};
  if (!m.fleet.is_ready(order.target) || from == nullptr) return std::nullopt;
  auto fits = check_target(m, order, *from);
  if (fits || fits.error().code == ErrorCode::busy) return std::nullopt;
  return fits.error();
}

/// What an order without a transfer under way waits for; "" for what comes in a moment.
std::string waited_for(const Machine& m, const Order& order) {
  for (const NodeName* end : {&order.target, &order.source})
    if (!m.fleet.is_ready(*end))
      return fmt::format("{}, which {}", end->str(), m.fleet.absence(*end));
  for (const NodeName* end : {&order.target, &order.source})
    if (m.steps.transfers_on(*end) >= most_transfers)
      return end->str() + ", which has enough to move already";
  return "";
}

/// Whoever gave the order hears why it rests.
void tell_wait(Machine& m, Order& order) {
  const std::string what = waited_for(m, order);
  if (!what.empty() && what != order.last_told)
    m.tell("transfer", order.reply.dataset,
           "to " + order.target.str() + " waits for " + what + "; it goes on by itself");
  order.last_told = what;
}

/// One transfer after the other until the goal is there. The order stands whichever of the two
/// machines is restarted meanwhile; a client that goes away takes its order along.
void go_on(const Asked& asked, Order order) {
  Machine& m = asked.m;
  const Dataset* from = m.fleet.copy(order.source, order.uuid);
  const bool goal_is_gone =
      m.fleet.is_ready(order.source) && from != nullptr && from->find(order.goal) == nullptr;
  if (has_goal(m, order) || goal_is_gone) {
    api::ReplicateReply reply = order.reply;
    const Dataset* copy = m.fleet.copy(order.target, order.uuid);
    reply.newest = copy == nullptr || copy->newest() == nullptr ? "" : "@" + copy->newest()->name;
    return asked.reply(reply);
  }
  const std::string need = copy_need(order.uuid, order.target);
  if (auto sender = sender_of(m, order)) {
    order.source = *sender;
    order.reply.source = sender->str();
    bring(m, order.uuid, order.source, order.target, JobId{}, "asked by " + asked.by());
  }
  if (m.steps.is_live(need)) {
    order.last_told.clear();
  } else {
    if (auto why = hindrance(m, order)) return asked.refuse(*why);
    tell_wait(m, order);
  }
  asked.persist_on_need(need, order.target, order.until - m.now.monotonic,
                        fmt::format("bring {} from {} to {}", order.reply.dataset,
                                    order.source.str(), order.target.str()),
                        [order](const Asked& again) { go_on(again, order); });
}

}  // namespace

void handle(const Asked& asked, const api::Replicate& op) {
  auto order = prepare(asked.m, op);
  if (!order) return asked.refuse(order.error());
  if (op.dry_run || order->reply.snapshots.empty()) return asked.reply(order->reply);
  asked.audit(order->reply.dataset, "replicate to " + order->reply.target);
  asked.m.steps.forgive(copy_need(order->uuid, order->target));
  order->until = asked.m.now.monotonic + transfer_patience;
  go_on(asked, *order);
}

}  // namespace zed::controller
