// Transfers, both roles.
//
// A transfer belongs to one timeline: its ticket says which, and a fork of the dataset ends every
// transfer first and waits for their ends. Snapshots are held on both ends while one runs.

#include <algorithm>

#include "agent/matters.hpp"
#include "base/text.hpp"

namespace zed::agent {
namespace {

constexpr std::size_t most_transfers = 64;
constexpr Millis progress_every = seconds(1);

std::string transfer_tag(const Ticket& ticket) {
  return "transfer." + ticket.id.str();
}

/// What both roles check of the copy here.
Status check_copy(const Machine& m, const Ticket& ticket, const Dataset& there) {
  if (there.uuid != ticket.uuid)
    return fail(ErrorCode::stale, there.name.str() + " is another dataset", plans_again);
  if (there.timeline().value_or(Timeline{}) != ticket.timeline)
    return fail(ErrorCode::stale, there.name.str() + " is on another timeline", plans_again);
  if (m.is_forking(there.name))
    return fail(ErrorCode::busy, there.name.str() + " is being forked", plans_again);
  return {};
}

Status check_room(const Machine& m) {
  if (m.transfers.size() < most_transfers) return {};
  return fail(ErrorCode::busy, "too many transfers run on " + m.name.str(), plans_again);
}

/// A transfer that is registered: forks see it from here on. Held by the closures that prepare it;
/// if they end without starting it, it is gone again.
class Preparation {
public:
  Preparation(Machine& m, StepId step) : m_(m), step_(step) {}
  ~Preparation() {
    if (m_.closing_down) return;
    auto found = m_.transfers.find(step_);
    if (found == m_.transfers.end() || found->second.started) return;
    Transfer transfer = std::move(found->second);
    m_.transfers.erase(found);
    release_all(m_, transfer);
  }
  Preparation(const Preparation&) = delete;
  Preparation& operator=(const Preparation&) = delete;
  static void release_all(Machine& m, const Transfer& transfer);

private:
  Machine& m_;
  StepId step_;
};

/// What a role holds here: a sender what it sends and its base, a receiver its base.
std::vector<std::string> held_by(const Machine& m, const Transfer& transfer) {
  std::vector<std::string> names;
  auto known = m.datasets.find(transfer.dataset);
  if (known == m.datasets.end()) return names;
  const Dataset& there = known->second;
  if (transfer.role == StartTransfer::Role::send)
    if (const Snapshot* snapshot = there.find(transfer.ticket.snapshot))
      names.push_back(snapshot->name);
  if (transfer.ticket.base)
    if (const Snapshot* base = there.find(*transfer.ticket.base)) names.push_back(base->name);
  return names;
}

void Preparation::release_all(Machine& m, const Transfer& transfer) {
  for (const std::string& name : held_by(m, transfer))
    release(m, transfer.dataset, name, transfer_tag(transfer.ticket));
}

void begin(Machine& m, StartTransfer start) {
  auto found = m.transfers.find(start.step);
  if (found == m.transfers.end()) return;
  if (found->second.cancelled)
    return found->second.step->fail(ErrorCode::cancelled, found->second.why_cancelled, plans_again);
  found->second.started = true;
  m.emit(std::move(start));
}

void hold_all(Machine& m, const Turn& turn, std::vector<std::string> names,
              std::shared_ptr<Preparation> preparation, StartTransfer start) {
  if (names.empty()) return begin(m, std::move(start));
  std::string name = names.back();
  names.pop_back();
  std::string tag = transfer_tag(start.ticket);
  hold(m, turn, name, tag, [&m, turn, names, preparation, start](Status held) {
    auto found = m.transfers.find(start.step);
    if (!held && found != m.transfers.end()) return found->second.step->fail(held.error());
    hold_all(m, turn, names, preparation, start);
  });
}

void prepare(Machine& m, const Turn& turn, const Step& step, StartTransfer start) {
  Transfer transfer;
  transfer.step = step;
  transfer.role = start.role;
  transfer.ticket = start.ticket;
  transfer.dataset = turn->dataset();
  auto names = held_by(m, transfer);
  m.transfers[start.step] = std::move(transfer);
  auto preparation = std::make_shared<Preparation>(m, start.step);
  hold_all(m, turn, std::move(names), std::move(preparation), std::move(start));
}

Status check_send(const Machine& m, const Ticket& ticket, const std::optional<Dataset>& there) {
  ZED_CHECK(check_room(m));
  if (ticket.source != m.name)
    return fail(ErrorCode::invalid, "the ticket's source is " + ticket.source.str(), plans_again);
  if (!there)
    return fail(ErrorCode::not_found, "no dataset " + ticket.dataset.str() + " here", plans_again);
  ZED_CHECK(check_copy(m, ticket, *there));
  auto has = [&](const CheckpointId& id) { return there->find(id) != nullptr; };
  auto remembers = [&](const CheckpointId& id) {
    return ticket.kind == StreamKind::zfs && there->find_bookmark(id) != nullptr;
  };
  if (!has(ticket.snapshot) || (ticket.base && !has(*ticket.base) && !remembers(*ticket.base)))
    return fail(ErrorCode::not_found, "a snapshot of the ticket is not here", plans_again);
  return {};
}

/// The transfer here that has this ticket and this role, if it is known.
Transfer* find_transfer(Machine& m, const TransferId& ticket, StartTransfer::Role role) {
  for (auto& [id, transfer] : m.transfers)
    if (transfer.ticket.id == ticket && transfer.role == role && !transfer.to_host)
      return &transfer;
  return nullptr;
}

/// What is passed on is not here yet, and perhaps its dataset is not: the receive that it belongs
/// to is checked against the store, this half against that receive. Either order comes first.
Status check_pass(const Machine& m, const SendSnapshot& action, const std::optional<Dataset>& there,
                  const Transfer* receive) {
  const Ticket& ticket = action.ticket;
  ZED_CHECK(check_room(m));
  if (ticket.source != m.name)
    return fail(ErrorCode::invalid, "the ticket's source is " + ticket.source.str(), plans_again);
  if (receive != nullptr &&
      (receive->dataset != ticket.dataset || receive->ticket.uuid != ticket.uuid ||
       receive->ticket.snapshot != ticket.snapshot || receive->ticket.base != ticket.base ||
       receive->ticket.timeline != ticket.timeline || receive->ticket.kind != ticket.kind))
    return fail(ErrorCode::invalid, "what is received here is not what the ticket passes on",
                plans_again);
  if (receive != nullptr && receive->cancelled)
    return fail(ErrorCode::unavailable, "what was to be passed on is no longer received here",
                plans_again);
  if (!there) return {};
  const bool only_partial = there->uuid.is_nil() && there->snapshots.empty();
  return only_partial ? Status{} : check_copy(m, ticket, *there);
}

/// A receive that does not begin: who waits for its bytes need not wait.
void leave_chain(Machine& m, const std::optional<TransferId>& passes_to) {
  if (!passes_to) return;
  if (Transfer* send = find_transfer(m, *passes_to, StartTransfer::Role::send))
    cancel_transfer(m, *send, "what was to be passed on is not received here");
}

bool is_receiving(const Machine& m, const DatasetName& dataset) {
  return std::any_of(m.transfers.begin(), m.transfers.end(), [&](const auto& entry) {
    return entry.second.dataset == dataset && entry.second.role == StartTransfer::Role::receive;
  });
}

Status check_new_copy(const Machine& m, const Ticket& ticket) {
  ZED_CHECK(may_make(m, ticket.target_dataset));
  if (ticket.base)
    return fail(ErrorCode::stale, "no copy is here that the increment could follow", plans_again);
  return {};
}

Status check_receive(const Machine& m, const Ticket& ticket, const std::optional<Dataset>& there) {
  ZED_CHECK(check_room(m));
  if (ticket.target != m.name)
    return fail(ErrorCode::invalid, "the ticket's target is " + ticket.target.str(), plans_again);
  if (is_receiving(m, ticket.target_dataset))
    return fail(ErrorCode::busy, ticket.target_dataset.str() + " is being received", plans_again);
  if (!there) return check_new_copy(m, ticket);
  // What an interrupted first receive left has no identity yet.
  bool only_partial = there->receiving && there->uuid.is_nil() && there->snapshots.empty();
  if (only_partial) return check_new_copy(m, ticket);
  ZED_CHECK(check_copy(m, ticket, *there));
  // A new home is brought up to where its timeline begins before anything may be written there;
  // from then on it is the source of all copies and never a target.
  if (there->property(property::home) == m.name.str() && !there->readonly)
    return fail(ErrorCode::refused, "this is the home of " + there->name.str(), plans_again);
  if (m.is_written(there->name))
    return fail(ErrorCode::busy, "an attempt writes " + there->name.str(), plans_again);
  const Snapshot* newest = there->newest();
  std::optional<CheckpointId> at;
  if (newest != nullptr) at = newest->id;
  if (at != ticket.base)
    return fail(ErrorCode::stale,
                "the increment does not follow the newest snapshot of " + there->name.str() +
                    " here",
                plans_again);
  return {};
}

/// `checkpoint` names only what is here: one that is still on its way would look like a rollback by
/// hand once this node is the home.
bool names_what_is_here(const Ticket& ticket, const std::optional<Dataset>& there,
                        const std::string& checkpoint) {
  return checkpoint == "@" + ticket.snapshot_name || (there && there->find(checkpoint) != nullptr);
}

PropertyChanges replica_changes(const ReceiveSnapshot& action,
                                const std::optional<Dataset>& there) {
  PropertyChanges changes;
  for (const auto& [key, value] : action.dataset_properties) {
    if (key == property::intent || key == property::branch_of || key == held_property) continue;
    if (key == property::checkpoint && !names_what_is_here(action.ticket, there, value))
      changes[key] = std::nullopt;
    else
      changes[key] = value;
  }
  return changes;
}

/// The outcome as the step's answer; what arrived must be what the ticket names.
void answer_transfer(const Transfer& transfer, const Result<TransferOutcome>& result) {
  if (!result) {
    Error error = result.error();
    if (transfer.cancelled)
      error = Error{ErrorCode::cancelled, transfer.why_cancelled, {}, plans_again};
    return transfer.step->fail(std::move(error));
  }
  if (transfer.role == StartTransfer::Role::send)
    return transfer.step->succeed(std::nullopt, result->moved);
  if (!result->snapshot || result->snapshot->id != transfer.ticket.snapshot)
    return transfer.step->fail(ErrorCode::corrupt, "what arrived is not the snapshot of the ticket",
                               plans_again);
  transfer.step->succeed(result->snapshot->id, result->moved);
}

/// What a peer has now is remembered beyond the snapshot's own life: the base of the next
/// increment.
std::optional<env::BookmarkSnapshot> bookmark_of(const Machine& m, const Transfer& transfer) {
  const Ticket& ticket = transfer.ticket;
  if (transfer.role != StartTransfer::Role::send || transfer.to_host ||
      ticket.kind != StreamKind::zfs)
    return std::nullopt;
  auto known = m.datasets.find(transfer.dataset);
  const Snapshot* snapshot =
      known == m.datasets.end() ? nullptr : known->second.find(ticket.snapshot);
  if (snapshot == nullptr) return std::nullopt;
  return env::BookmarkSnapshot{SnapshotName{transfer.dataset, snapshot->name}, ticket.target};
}

StartTransfer start_of(const Step& step, StartTransfer::Role role, const Ticket& ticket) {
  StartTransfer start;
  start.step = step->step().id;
  start.role = role;
  start.ticket = ticket;
  return start;
}

void pass_snapshot_on(Machine& m, const Turn& turn, const Step& step, const SendSnapshot& action,
                      const std::optional<Dataset>& there) {
  const Transfer* receive = find_transfer(m, *action.through, StartTransfer::Role::receive);
  if (auto fit = check_pass(m, action, there, receive); !fit) return step->fail(fit.error());
  if (there) learn(m, *there);
  StartTransfer start = start_of(step, StartTransfer::Role::send, action.ticket);
  start.through = action.through;
  prepare(m, turn, step, std::move(start));
}

void send_from_store(Machine& m, const Turn& turn, const Step& step, const Ticket& ticket,
                     const std::optional<Dataset>& there) {
  if (auto fit = check_send(m, ticket, there); !fit) return step->fail(fit.error());
  learn(m, *there);
  StartTransfer start = start_of(step, StartTransfer::Role::send, ticket);
  prepare(m, turn, step, std::move(start));
}

}  // namespace

void send_snapshot(Machine& m, const Step& step, const SendSnapshot& action) {
  with_checked(m, step, action.ticket.dataset,
               [&m, step, action](const Turn& turn, const std::optional<Dataset>& there) {
                 // What has arrived meanwhile is sent like anything else.
                 const bool is_here = there && there->find(action.ticket.snapshot) != nullptr;
                 if (action.through && !is_here)
                   return pass_snapshot_on(m, turn, step, action, there);
                 send_from_store(m, turn, step, action.ticket, there);
               });
}

void receive_snapshot(Machine& m, const Step& step, const ReceiveSnapshot& action) {
  const Ticket ticket = action.ticket;
  with_checked(m, step, ticket.target_dataset,
               [&m, step, ticket, action](Turn turn, std::optional<Dataset> there) {
                 bool arrived =
                     there && there->uuid == ticket.uuid && there->find(ticket.snapshot) != nullptr;
                 if (arrived) {
                   leave_chain(m, action.passes_to);
                   return step->succeed(ticket.snapshot);
                 }
                 if (auto fit = check_receive(m, ticket, there); !fit) {
                   leave_chain(m, action.passes_to);
                   return step->fail(fit.error());
                 }
                 if (there) learn(m, *there);
                 StartTransfer start = start_of(step, StartTransfer::Role::receive, ticket);
                 start.dataset_changes = replica_changes(action, there);
                 start.passes_to = action.passes_to;
                 // Somebody destroyed the snapshot that the replica's files were: they are nobody's
                 // work, and nothing could follow on them.
                 const bool astray = there && there->changed && there->newest() != nullptr;
                 if (!astray) return prepare(m, turn, step, std::move(start));
                 m.call(env::RevertLive{there->name}, [&m, turn, step, start](StoreResult done) {
                   if (!done) return step->fail(done.error());
                   prepare(m, turn, step, start);
                 });
               });
}

namespace {

Status check_host_send(const Machine& m, const SendToHost& action,
                       const std::optional<Dataset>& there) {
  ZED_CHECK(check_room(m));
  if (m.facts.store != StoreKind::zfs)
    return fail(ErrorCode::unsupported,
                "node " + m.name.str() +
                    " keeps its data in a `dir` store: only OpenZFS "
                    "can send to a machine without an agent",
                "run zed-agent there");
  if (!there)
    return fail(ErrorCode::not_found, "no dataset " + action.dataset.str() + " here", plans_again);
  if (there->uuid != action.uuid)
    return fail(ErrorCode::stale, there->name.str() + " is another dataset", plans_again);
  if (m.is_forking(there->name))
    return fail(ErrorCode::busy, there->name.str() + " is being forked", "try again");
  if (there->find(action.snapshot) == nullptr)
    return fail(ErrorCode::not_found,
                there->name.str() + "@" + action.snapshot_name + " is not here any more",
                plans_again);
  return {};
}

}  // namespace

/// OpenZFS itself keeps what it sends from being destroyed; that the transfer is known here keeps
/// forks and our own prune away from it.
void send_to_host(Machine& m, const Step& step, const SendToHost& action) {
  with_checked(m, step, action.dataset,
               [&m, step, action](const Turn&, const std::optional<Dataset>& there) {
                 if (auto fit = check_host_send(m, action, there); !fit)
                   return step->fail(fit.error());
                 Transfer transfer;
                 transfer.step = step;
                 transfer.ticket.dataset = action.dataset;
                 transfer.ticket.uuid = action.uuid;
                 transfer.ticket.snapshot = action.snapshot;
                 transfer.ticket.snapshot_name = action.snapshot_name;
                 transfer.dataset = action.dataset;
                 transfer.to_host = true;
                 transfer.started = true;
                 m.transfers[step->step().id] = std::move(transfer);
                 m.emit(StartHostSend{step->step().id, action});
               });
}

void transfer_progressed(Machine& m, const TransferProgressed& event) {
  // An import reports at the pace of its shell.
  if (m.imports.contains(event.step))
    return m.say(TransferProgress{event.step, event.done, event.total, event.rate});
  auto found = m.transfers.find(event.step);
  if (found == m.transfers.end()) return;
  // The receiving end tells; a machine without an agent cannot.
  if (found->second.role != StartTransfer::Role::receive && !found->second.to_host) return;
  auto& last = found->second.last_progress;
  if (last && m.now.monotonic - *last < progress_every) return;
  last = m.now.monotonic;
  m.say(TransferProgress{event.step, event.done, event.total, event.rate});
}

void transfer_ended(Machine& m, const TransferEnded& event) {
  auto found = m.transfers.extract(event.step);
  if (found.empty()) return;
  auto transfer = std::make_shared<Transfer>(std::move(found.mapped()));
  Preparation::release_all(m, *transfer);
  auto settle = [&m, transfer, result = event.result](Turn turn) {
    auto look = [&m, transfer, result, turn] {
      refresh(m, transfer->dataset,
              [transfer, result, turn] { answer_transfer(*transfer, result); });
    };
    auto sent = result ? bookmark_of(m, *transfer) : std::nullopt;
    if (!sent) return look();
    // Without it the next increment needs the snapshot itself to stay: no reason to fail now.
    m.call(std::move(*sent), [look](const StoreResult&) { look(); });
  };
  if (!m.take_turn(transfer->dataset, settle)) answer_transfer(*transfer, event.result);
}

void cancel_transfer(Machine& m, Transfer& transfer, const std::string& why) {
  if (transfer.cancelled) return;
  transfer.cancelled = true;
  transfer.why_cancelled = why;
  if (transfer.started) m.emit(CancelTransfer{transfer.step->step().id});
}

bool end_transfers(Machine& m, const DatasetName& dataset, const std::string& why) {
  bool none = true;
  for (auto& [id, transfer] : m.transfers) {
    if (transfer.dataset != dataset) continue;
    none = false;
    cancel_transfer(m, transfer, why);
  }
  return none;
}

}  // namespace zed::agent
