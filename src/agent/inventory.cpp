// What is in the store, as far as the agent knows, and telling the controller.
//
// The agent keeps a mirror of its datasets. After an effect of its own it looks at that dataset
// again; every two seconds it asks the store what else may have changed, because a person may use
// plain zfs beside us. Each difference is reported as a delta, so after a full inventory the
// controller's picture equals the mirror.

#include <algorithm>

#include "agent/matters.hpp"
#include "agent/sizes.hpp"
#include "base/text.hpp"

namespace zed::agent {
namespace {

constexpr Millis scan_every = seconds(2);
constexpr Millis list_again = seconds(5);    // after a failed first listing
constexpr std::size_t most_inspections = 8;  // at once
constexpr std::size_t list_instead = 64;     // more changed datasets than this: list them all
constexpr std::size_t gone_per_message = 2000;

bool same_but_for_use(const Snapshot& a, Snapshot b) {
  b.used = a.used;  // moves with every later write; nobody decides by it
  return a == b;
}

bool same_head(const Dataset& a, const Dataset& b) {
  constexpr std::int64_t noticeable = std::int64_t{64} << 20;
  std::int64_t grown = std::max(a.used.value, b.used.value) - std::min(a.used.value, b.used.value);
  return a.uuid == b.uuid && a.readonly == b.readonly && a.receiving == b.receiving &&
         a.properties == b.properties && a.bookmarks == b.bookmarks && grown < noticeable;
}

struct Difference {
  std::vector<Snapshot> added;  ///< or changed
  std::vector<const Snapshot*> gone;
  bool head = false;
  bool any() const { return head || !added.empty() || !gone.empty(); }
};

Difference difference(const Dataset& before, const Dataset& after) {
  Difference d;
  std::map<CheckpointId, const Snapshot*> old;
  for (const Snapshot& snapshot : before.snapshots)
    old[snapshot.id] = &snapshot;
  for (const Snapshot& snapshot : after.snapshots) {
    auto known = old.find(snapshot.id);
    if (known == old.end() || !same_but_for_use(*known->second, snapshot))
      d.added.push_back(snapshot);
    if (known != old.end()) old.erase(known);
  }
  for (const auto& [id, snapshot] : old)
    d.gone.push_back(snapshot);
  d.head = !same_head(before, after);
  return d;
}

/// In as many messages as it takes; the first carries the head.
void say_changed(Machine& m, const Dataset& dataset, bool delta, std::vector<CheckpointId> gone) {
  for (auto& page : pages_of({&dataset}))
    for (Dataset& part : page) {
      m.say(DatasetChanged{std::move(part), delta, {}});
      delta = true;
    }
  for (std::size_t i = 0; i < gone.size(); i += gone_per_message) {
    Dataset head = dataset;
    head.snapshots.clear();
    auto first = gone.begin() + static_cast<std::ptrdiff_t>(i);
    auto last =
        gone.begin() + static_cast<std::ptrdiff_t>(std::min(gone.size(), i + gone_per_message));
    m.say(DatasetChanged{std::move(head), true, std::vector<CheckpointId>(first, last)});
  }
}

void say_delta(Machine& m, const Dataset& after, const Difference& d) {
  Dataset part = after;
  part.snapshots = d.added;
  std::vector<CheckpointId> gone;
  for (const Snapshot* snapshot : d.gone)
    gone.push_back(snapshot->id);
  // One message where it fits, the usual case: a new snapshot and a few that went.
  if (pages_of({&part}).size() == 1 && gone.size() <= gone_per_message)
    m.say(DatasetChanged{pages_of({&part}).front().front(), true, std::move(gone)});
  else
    say_changed(m, part, true, std::move(gone));
}

std::string names_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < 5; ++i)
    text += (i > 0 ? ", @" : "@") + names[i];
  return text + (names.size() > 5 ? " and others" : "");
}

void notice_hand(Machine& m, const Dataset& after, const Difference& d) {
  std::vector<std::string> taken;
  std::vector<std::string> destroyed;
  for (const Snapshot& snapshot : d.added)
    if (snapshot.properties.count(property::id) == 0) taken.push_back(snapshot.name);
  for (const Snapshot* snapshot : d.gone)
    destroyed.push_back(snapshot->name);
  if (!taken.empty()) m.notice(after.name.str(), "adopted, taken by hand: " + names_of(taken));
  if (!destroyed.empty())
    m.notice(after.name.str(), "gone, destroyed by hand: " + names_of(destroyed));
}

void inspected(Machine& m, const DatasetName& name, std::uint64_t read_at, StoreResult reply) {
  m.inspecting.erase(name);
  if (!m.is_current(name, read_at)) {
    m.to_inspect.insert(name);  // we changed it ourselves meanwhile: look again
    return;
  }
  auto dataset = reply_as<Dataset>(std::move(reply));
  if (dataset)
    learn(m, std::move(*dataset), true);
  else if (dataset.error().code == ErrorCode::not_found)
    forget(m, name, true);
  else
    m.to_inspect.insert(name);
}

void inspect_more(Machine& m) {
  auto next = m.to_inspect.begin();
  while (next != m.to_inspect.end() && m.inspecting.size() < most_inspections) {
    auto lane = m.lanes.find(*next);
    bool busy = lane != m.lanes.end() && lane->second.busy;
    if (busy || m.inspecting.count(*next) > 0) {
      ++next;
      continue;
    }
    DatasetName name = *next;
    next = m.to_inspect.erase(next);
    m.inspecting.insert(name);
    m.call(env::InspectDataset{name}, [&m, name, read_at = m.turn_clock](StoreResult reply) {
      inspected(m, name, read_at, std::move(reply));
    });
  }
}

void take_list(Machine& m, const std::vector<Dataset>& all, std::uint64_t read_at, bool by_hand) {
  std::set<DatasetName> seen;
  for (const Dataset& dataset : all)
    seen.insert(dataset.name);
  std::vector<DatasetName> gone;
  for (const auto& [name, dataset] : m.datasets)
    if (seen.count(name) == 0) gone.push_back(name);
  for (const Dataset& dataset : all) {
    if (m.is_current(dataset.name, read_at))
      learn(m, dataset, by_hand);
    else
      m.to_inspect.insert(dataset.name);
  }
  for (const DatasetName& name : gone) {
    if (m.is_current(name, read_at))
      forget(m, name, by_hand);
    else
      m.to_inspect.insert(name);
  }
}

void first_list(Machine& m) {
  m.call(env::ListDatasets{}, [&m](StoreResult reply) {
    auto all = reply_as<std::vector<Dataset>>(std::move(reply));
    if (!all) {
      // Without knowing what is here no order can be judged: no hello, and another try.
      m.after(list_again, [&m] { first_list(m); });
      return;
    }
    take_list(m, *all, m.turn_clock, false);
    m.listed = true;
    release_left_holds(m);
    resume_intents(m);
    close_found_attempts(m);
  });
}

void scanned(Machine& m, StoreResult reply) {
  auto changes = reply_as<env::Store::Changes>(std::move(reply));
  m.scanning = false;
  if (!changes) return;
  m.cursor = changes->cursor;
  m.to_inspect.insert(changes->datasets.begin(), changes->datasets.end());
  if (m.to_inspect.size() <= list_instead) return inspect_more(m);
  m.scanning = true;
  m.to_inspect.clear();
  m.call(env::ListDatasets{}, [&m, read_at = m.turn_clock](StoreResult list) {
    m.scanning = false;
    if (auto all = reply_as<std::vector<Dataset>>(std::move(list)))
      take_list(m, *all, read_at, true);
    else
      m.cursor.clear();  // what was named is lost: the empty cursor names all again
  });
}

/// Our holds come and go with every transfer and are nobody else's matter.
void take_holds(Machine& m, Dataset& seen) {
  auto property = seen.properties.extract(held_property);
  if (property.empty() || m.listed) return;
  auto holds = split(property.mapped(), ',');
  m.held[seen.name] = std::set<std::string>(holds.begin(), holds.end());
}

}  // namespace

void begin_inventory(Machine& m) {
  // The space before hello: a node without room is offered nothing, one that has not looked yet
  // too.
  m.call(env::AskSpace{}, [&m](StoreResult space) {
    if (auto known = reply_as<env::Space>(std::move(space))) m.pool_free = known->free;
    // The cursor comes first: what changes while the list is made is seen by the next scan.
    m.call(env::ChangedDatasets{}, [&m](StoreResult reply) {
      if (auto changes = reply_as<env::Store::Changes>(std::move(reply)))
        m.cursor = changes->cursor;
      first_list(m);
    });
  });
  m.last_scan = m.now.monotonic;
}

void tick_inventory(Machine& m) {
  if (!m.listed || m.scanning || m.now.monotonic - m.last_scan < scan_every) return;
  m.last_scan = m.now.monotonic;
  m.scanning = true;
  inspect_more(m);
  m.call(env::ChangedDatasets{m.cursor}, [&m](StoreResult reply) { scanned(m, std::move(reply)); });
}

void send_inventory(Machine& m) {
  std::vector<const Dataset*> all;
  for (const auto& [name, dataset] : m.datasets)
    all.push_back(&dataset);
  auto pages = pages_of(all);
  for (std::size_t i = 0; i < pages.size(); ++i)
    m.say(InventoryPage{static_cast<std::int64_t>(i), i + 1 == pages.size(), std::move(pages[i])});
}

void learn(Machine& m, Dataset seen, bool by_hand) {
  take_holds(m, seen);
  auto known = m.datasets.find(seen.name);
  if (known == m.datasets.end()) {
    say_changed(m, seen, false, {});
    known = m.datasets.emplace(seen.name, std::move(seen)).first;
  } else {
    Difference d = difference(known->second, seen);
    if (d.any()) say_delta(m, seen, d);
    if (by_hand) notice_hand(m, seen, d);
    known->second = std::move(seen);
  }
  if (was_rolled_back(m, known->second))
    stop_outrun(m, known->second);
  else
    m.told_rolled_back.erase(known->first);
}

void forget(Machine& m, const DatasetName& dataset, bool by_hand) {
  if (m.datasets.erase(dataset) == 0) return;
  m.say(DatasetRemoved{dataset});
  if (by_hand) m.notice(dataset.str(), "gone: destroyed or renamed by hand");
}

void refresh(Machine& m, const DatasetName& name, std::function<void()> then) {
  m.call(env::InspectDataset{name}, [&m, name, then = std::move(then)](StoreResult reply) {
    auto dataset = reply_as<Dataset>(std::move(reply));
    if (dataset)
      learn(m, std::move(*dataset));
    else if (dataset.error().code == ErrorCode::not_found)
      forget(m, name);
    else
      m.to_inspect.insert(name);
    if (then) then();
  });
}

}  // namespace zed::agent
