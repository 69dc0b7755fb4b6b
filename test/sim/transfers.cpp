#include "sim/transfers.hpp"

#include <algorithm>

#include "core/travelling.hpp"
#include "sim/world.hpp"

namespace zed::sim {
namespace {

constexpr Millis patience = seconds(20);  ///< for the other end to come, and for a cut to heal
constexpr Millis joining = seconds(8);    ///< for the next hop of a chain to come
constexpr Millis lag = seconds(5);        ///< for it to make room
constexpr std::size_t most_fed = 16384;   ///< bytes between the two halves of a chain's node

Error error_of(ErrorCode code, std::string message) {
  return Error{code, std::move(message), {}, {}};
}

Result<Snapshot> snapshot_of(env::Store& store, const Ticket& ticket) {
  ZED_TRY(Dataset dataset, store.inspect(ticket.dataset));
  if (const Snapshot* found = dataset.find(ticket.snapshot)) return *found;
  return fail(ErrorCode::not_found, "the snapshot is not here any more");
}

}  // namespace

Transfers::Transfers(World& world) : world_(world), random_(world.seed(), "transfers") {}

void Transfers::start(std::size_t machine, std::uint64_t agent_run, agent::StartTransfer effect) {
  const bool sends = effect.role == agent::StartTransfer::Role::send;
  TransferPtr& transfer = open_[effect.ticket.id];
  // A ticket is good for one transfer: an end that comes after that one is over begins anew.
  if (!transfer || (sends ? transfer->sender : transfer->receiver))
    transfer = std::make_shared<Transfer>();
  if (effect.through) transfer->fed = feed_of(agent_run, effect.ticket.id);
  if (effect.passes_to) transfer->feeds = feed_of(agent_run, *effect.passes_to);
  (sends ? transfer->sender : transfer->receiver) = End{machine, agent_run, std::move(effect)};
  if (transfer->sender && transfer->receiver) {
    world_.schedule.after(world_.network.latency(), "transfer begins",
                          [this, transfer = transfer] { begin(transfer); });
    return;
  }
  world_.schedule.after(patience, "transfer alone", [this, transfer = transfer] {
    if (!transfer->sender || !transfer->receiver) give_up(transfer);
  });
}

std::shared_ptr<Transfers::Feed> Transfers::feed_of(std::uint64_t run, const TransferId& sent) {
  std::erase_if(feeds_, [](const auto& entry) { return entry.second.expired(); });
  auto& known = feeds_[{run, sent}];
  auto feed = known.lock();
  if (!feed) known = feed = std::make_shared<Feed>();
  return feed;
}

void Transfers::give_up(const TransferPtr& transfer) {
  const Error error = error_of(ErrorCode::timeout, "the other end of the transfer did not come");
  fail_both(transfer, error, error);
}

void Transfers::begin(const TransferPtr& transfer) {
  if (transfer->sender->over || transfer->receiver->over || transfer->moving) return;
  if (!world_.network.reachable(transfer->sender->machine, transfer->receiver->machine)) {
    const Error error = error_of(ErrorCode::unavailable, "no route to the other end");
    fail_both(transfer, error, error);
    return;
  }
  const Ticket& ticket = transfer->sender->effect.ticket;
  env::Store& target = world_.machine(transfer->receiver->machine).disk.store;
  const std::string token =
      target.resume_token(ticket.target_dataset, ticket.snapshot).value_or(std::string());
  transfer->waits_since = world_.schedule.now();
  if (!transfer->fed) return begin_from_store(transfer, token);
  if (!token.empty()) {
    const Error error = error_of(ErrorCode::conflict, "a part is there already");
    return fail_both(transfer, error, error);
  }
  transfer->fed->ready = true;
  wait_for_feed(transfer);
}

void Transfers::begin_from_store(const TransferPtr& transfer, const std::string& token) {
  const Ticket& ticket = transfer->sender->effect.ticket;
  env::Store& source = world_.machine(transfer->sender->machine).disk.store;
  auto sent = snapshot_of(source, ticket);
  auto from = source.send({ticket.dataset, ticket.snapshot, ticket.base, ticket.kind, token});
  if (!sent || !from) {
    fail_both(transfer, sent ? from.error() : sent.error(),
              error_of(ErrorCode::unavailable, "the sender gave up"));
    return;
  }
  if (!open_target(transfer, travelling_properties(*sent))) return;
  transfer->from = std::move(*from);
  // A stream that is gone on with cannot be joined.
  if (transfer->feeds && !token.empty()) transfer->feeds->gone = true;
  wait_for_next_hop(transfer);
}

void Transfers::wait_for_feed(const TransferPtr& transfer) {
  if (transfer->sender->over || transfer->receiver->over) return;
  Feed& fed = *transfer->fed;
  const bool late = world_.schedule.now() - transfer->waits_since > patience;
  if (fed.gone || fed.failed || (late && !fed.begun)) {
    const Error error = error_of(ErrorCode::unavailable, "nothing came to pass on");
    return fail_both(transfer, error, error);
  }
  if (!fed.begun) {
    world_.schedule.after(Millis{100}, "hop waits", [this, transfer] { wait_for_feed(transfer); });
    return;
  }
  transfer->waits_since = world_.schedule.now();
  if (open_target(transfer, fed.properties)) wait_for_next_hop(transfer);
}

void Transfers::wait_for_next_hop(const TransferPtr& transfer) {
  if (transfer->sender->over || transfer->receiver->over) return;
  if (!transfer->feeds) return start_moving(transfer);
  Feed& feed = *transfer->feeds;
  const bool late = world_.schedule.now() - transfer->waits_since > joining;
  if (!feed.ready && !feed.gone && !late) {
    world_.schedule.after(Millis{100}, "receive waits for the next hop",
                          [this, transfer] { wait_for_next_hop(transfer); });
    return;
  }
  feed.gone = feed.gone || !feed.ready;
  feed.begun = !feed.gone;
  start_moving(transfer);
}

bool Transfers::open_target(const TransferPtr& transfer, const Properties& header) {
  const Ticket& ticket = transfer->sender->effect.ticket;
  env::Store& target = world_.machine(transfer->receiver->machine).disk.store;
  env::ReceiveRequest request;
  request.dataset = ticket.target_dataset;
  request.base = ticket.base;
  request.snapshot = ticket.snapshot_name;
  request.snapshot_properties = header;
  if (transfer->feeds) transfer->feeds->properties = header;
  if (world_.planted() == Planted::changed_copy) request.snapshot_properties["loss"] = "0";
  request.dataset_changes = transfer->receiver->effect.dataset_changes;
  request.kind = ticket.kind;
  auto to = target.receive(request);
  if (!to) {
    fail_both(transfer, error_of(ErrorCode::unavailable, "the receiver refused"), to.error());
    return false;
  }
  transfer->to = std::move(*to);
  return true;
}

void Transfers::start_moving(const TransferPtr& transfer) {
  transfer->moving = true;
  world_.schedule.after(world_.network.latency(), "transfer moves",
                        [this, transfer] { move(transfer); });
}

Result<std::size_t> Transfers::read(const TransferPtr& transfer, std::span<std::byte> buffer) {
  if (!transfer->fed) return transfer->from->read(buffer);
  std::deque<std::byte>& bytes = transfer->fed->bytes;
  const std::size_t count = std::min(buffer.size(), bytes.size());
  std::copy_n(bytes.begin(), count, buffer.begin());
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

bool Transfers::is_held_up(const TransferPtr& transfer) {
  if (!transfer->feeds || transfer->feeds->gone) return false;
  Feed& feed = *transfer->feeds;
  const Instant now = world_.schedule.now();
  if (feed.bytes.size() < most_fed) {
    feed.full_since.reset();
    return false;
  }
  if (!feed.full_since) feed.full_since = now;
  feed.gone = now - *feed.full_since > lag;
  return !feed.gone;
}

bool Transfers::cut(const TransferPtr& transfer) {
  if (world_.network.reachable(transfer->sender->machine, transfer->receiver->machine)) {
    transfer->stalled = false;
    return false;
  }
  if (!transfer->stalled) {
    transfer->stalled = true;
    transfer->stalled_since = world_.schedule.now();
  }
  if (world_.schedule.now() - transfer->stalled_since > patience) {
    const Error error = error_of(ErrorCode::unavailable, "the connection broke");
    fail_both(transfer, error, error);
  } else {
    world_.schedule.after(Millis{500}, "transfer stalled", [this, transfer] { move(transfer); });
  }
  return true;
}

void Transfers::move(const TransferPtr& transfer) {
  if (!transfer->moving || transfer->sender->over || transfer->receiver->over) return;
  if (cut(transfer)) return;
  const bool spliced = transfer->fed && transfer->fed->gone;
  const bool dried_up = transfer->fed && transfer->fed->failed && transfer->fed->bytes.empty();
  if (spliced || dried_up) {
    const Error error = error_of(spliced ? ErrorCode::timeout : ErrorCode::unavailable,
                                 spliced ? "it fell behind" : "it stopped arriving");
    return fail_both(transfer, error, error);
  }
  const bool is_to_come = transfer->fed && !transfer->fed->ended && transfer->fed->bytes.empty();
  if (is_to_come || is_held_up(transfer)) {
    world_.schedule.after(Millis{50}, "transfer waits", [this, transfer] { move(transfer); });
    return;
  }
  std::array<std::byte, 2048> buffer;
  const auto wanted =
      static_cast<std::size_t>(random_.between(64, static_cast<std::int64_t>(buffer.size())));
  auto count = read(transfer, std::span(buffer).first(wanted));
  if (!count) {
    fail_both(transfer, count.error(), error_of(ErrorCode::unavailable, "the sender gave up"));
    return;
  }
  if (*count == 0) {
    if (transfer->feeds) transfer->feeds->ended = true;
    world_.schedule.after(random_.millis(1, 20), "transfer finishes",
                          [this, transfer] { finish(transfer); });
    return;
  }
  world_.touch(transfer->receiver->machine);
  if (transfer->feeds && !transfer->feeds->gone)
    transfer->feeds->bytes.insert(transfer->feeds->bytes.end(), buffer.begin(),
                                  buffer.begin() + static_cast<std::ptrdiff_t>(*count));
  if (auto written = transfer->to->write(std::span(buffer).first(*count)); !written) {
    fail_both(transfer, error_of(ErrorCode::unavailable, "the receiver gave up"), written.error());
    return;
  }
  transfer->moved += Bytes{static_cast<std::int64_t>(*count)};
  world_.schedule.after(random_.millis(0, 30), "transfer moves",
                        [this, transfer] { move(transfer); });
}

void Transfers::finish(const TransferPtr& transfer) {
  if (!transfer->moving || transfer->sender->over || transfer->receiver->over) return;
  if (cut(transfer)) return;
  auto snapshot = transfer->to->finish();
  world_.touch(transfer->receiver->machine);
  transfer->moving = false;
  if (!snapshot) {
    fail_both(transfer, error_of(ErrorCode::unavailable, "the receiver could not finish"),
              snapshot.error());
    return;
  }
  transfer->from.reset();
  transfer->to.reset();
  if (world_.planted() == Planted::late_receive) land_late(transfer);
  if (transfer->fed) ++passed_on_;
  end(transfer, false, agent::TransferOutcome{transfer->moved, *snapshot});
  end(transfer, true, agent::TransferOutcome{transfer->moved, std::nullopt});
}

void Transfers::fail_both(const TransferPtr& transfer, const Error& sender, const Error& receiver) {
  transfer->moving = false;
  transfer->from.reset();
  transfer->to.reset();
  if (transfer->feeds) transfer->feeds->failed = !transfer->feeds->ended;
  if (transfer->fed) transfer->fed->gone = true;
  end(transfer, true, fail(sender));
  end(transfer, false, fail(receiver));
}

void Transfers::end(const TransferPtr& transfer, bool sender,
                    Result<agent::TransferOutcome> outcome) {
  std::optional<End>& side = sender ? transfer->sender : transfer->receiver;
  if (!side || side->over) return;
  side->over = true;
  world_.schedule.after(random_.millis(1, 40), "transfer ended",
                        [this, machine = side->machine, run = side->run, step = side->effect.step,
                         outcome = std::move(outcome)] {
                          world_.tell_agent(machine, run, agent::TransferEnded{step, outcome});
                        });
}

void Transfers::cancel(std::size_t machine, std::uint64_t agent_run, const StepId& step) {
  for (auto& [id, transfer] : open_) {
    for (const bool sender : {true, false}) {
      const std::optional<End>& side = sender ? transfer->sender : transfer->receiver;
      if (!side || side->over || side->machine != machine || side->run != agent_run ||
          side->effect.step != step)
        continue;
      if (!sender && world_.planted() == Planted::late_receive) land_late(transfer);
      const Error cancelled = error_of(ErrorCode::cancelled, "cancelled");
      const Error other = error_of(ErrorCode::unavailable, "the other end let go");
      fail_both(transfer, sender ? cancelled : other, sender ? other : cancelled);
      return;
    }
  }
}

void Transfers::land_late(const TransferPtr& transfer) {
  if (!transfer->sender) return;
  const std::size_t machine = transfer->receiver->machine;
  const Ticket ticket = transfer->sender->effect.ticket;
  auto committed = world_.history.snapshots.find(ticket.snapshot);
  if (committed == world_.history.snapshots.end()) return;
  world_.schedule.after(seconds(8), "late receive",
                        [this, machine, ticket, files = committed->second.files] {
                          Disk& disk = world_.machine(machine).disk;
                          (void)disk.store.set_readonly(ticket.target_dataset, false);
                          for (const auto& [name, text] : files)
                            disk.write_live(ticket.target_dataset, name, text);
                          world_.touch(machine);
                        });
}

std::optional<std::size_t> Transfers::passes_on() const {
  for (const auto& [id, transfer] : open_)
    if (transfer->fed && transfer->moving && !transfer->fed->ended)
      return transfer->sender->machine;
  return std::nullopt;
}

void Transfers::agent_died(std::uint64_t agent_run) {
  for (auto& [id, transfer] : open_) {
    bool hit = false;
    for (std::optional<End>* side : {&transfer->sender, &transfer->receiver})
      if (*side && (*side)->run == agent_run && !(*side)->over) hit = (*side)->over = true;
    if (!hit) continue;
    const Error error = error_of(ErrorCode::unavailable, "the other end died");
    fail_both(transfer, error, error);
  }
  std::erase_if(open_, [](const auto& entry) {
    const Transfer& t = *entry.second;
    return (!t.sender || t.sender->over) && (!t.receiver || t.receiver->over);
  });
}

}  // namespace zed::sim
