// Controllers: greeting, terms, who is obeyed.
//
// The highest controller term wins. A higher one is made durable before anything that its
// controller says is acted on; a controller of a lower one is greeted again, so that it learns from
// the hello that its term is over, and its link is closed after its last words (HandOver).

#include <algorithm>
#include <utility>

#include "agent/matters.hpp"

namespace zed::agent {
namespace {

constexpr Millis heartbeat_every = seconds(2);
constexpr Millis space_every = seconds(10);
constexpr std::size_t most_held = 4096;              // messages while a term is being saved
constexpr std::size_t most_attempts_in_hello = 256;  // the others follow as reports
constexpr std::size_t most_links = 64;
constexpr std::size_t most_tails = 64;
constexpr Millis last_words{700};  // for a controller that learns that its term is over

Hello hello(const Machine& m) {
  Hello hello;
  hello.node = m.node;
  hello.name = m.name;
  hello.highest_term = m.highest_term;
  hello.journal_second = m.journal_second;
  hello.journal_copy_seq = m.copy_seq;
  hello.journal_copy_term = m.copy_term;
  hello.facts = m.facts;
  hello.gpus = m.gpus;
  for (const auto& [key, live] : m.attempts) {
    if (hello.attempts.size() == most_attempts_in_hello) break;
    if (live.launched) hello.attempts.push_back(live.attempt);
  }
  return hello;
}

void say_hello(Machine& m, LinkId id, Link& link) {
  m.emit(SayToController{id, hello(m)});
  link.since = m.now.monotonic;
}

void retire(Machine& m, LinkId id, Link& link) {
  link.phase = Link::Phase::stale;
  link.held.clear();
  say_hello(m, id, link);
  if (m.active == id) m.active.reset();
}

void obey(Machine& m, LinkId id, const ControllerMessage& message);

/// To the controller that is obeyed, if its term is the higher one; the others' stay.
void pass_on_tails(Machine& m) {
  if (!m.active) return;
  const ControllerTerm term = m.links.at(*m.active).term;
  auto is_heir = [&](const HandOver& tail) { return tail.term < term; };
  for (const HandOver& tail : m.tails)
    if (is_heir(tail)) m.say(HandedOver{tail.term, tail.records});
  m.tails.erase(std::remove_if(m.tails.begin(), m.tails.end(), is_heir), m.tails.end());
}

void keep_tail(Machine& m, const HandOver& tail) {
  if (m.tails.size() >= most_tails) return;
  m.tails.push_back(tail);
  pass_on_tails(m);
}

void activate(Machine& m, LinkId id) {
  for (auto& [other_id, other] : m.links) {
    bool outranked =
        other_id != id && (other.phase == Link::Phase::active ||
                           (other.phase == Link::Phase::saving && other.term < m.highest_term));
    if (outranked) retire(m, other_id, other);
  }
  Link& link = m.links.at(id);
  link.phase = Link::Phase::active;
  m.active = id;
  send_inventory(m);
  // Ended attempts are repeated until they are acknowledged; live ones came with the hello, but may
  // have moved on since.
  for (const auto& [key, live] : m.attempts)
    if (live.launched) report(m, live);
  m.say(Heartbeat{m.pool_free, m.memory_free});
  m.last_heartbeat = m.now.monotonic;
  auto held = std::exchange(link.held, {});
  for (const ControllerMessage& message : held)
    if (m.active == id) obey(m, id, message);
  pass_on_tails(m);
}

void welcomed(Machine& m, LinkId id, Link& link, const Welcome& welcome) {
  if (link.phase == Link::Phase::active) {  // the same controller names another second node
    if (welcome.term != link.term) return;
    m.roots = welcome.roots;
    if (welcome.journal_second != m.journal_second)
      save_node_state(m, m.highest_term, welcome.journal_second, [](Status) {});
    return;
  }
  if (link.phase != Link::Phase::greeted) return;
  if (welcome.term < m.highest_term) return retire(m, id, link);
  link.term = welcome.term;
  link.phase = Link::Phase::saving;
  NodeName second = welcome.journal_second;
  std::vector<DatasetName> roots = welcome.roots;
  auto go_on = [&m, id, term = welcome.term, roots](Status saved) {
    auto found = m.links.find(id);
    if (found == m.links.end() || found->second.phase != Link::Phase::saving) return;
    if (!saved) {  // a term that is not durable is not obeyed: the disk may have room later
      m.emit(CloseLink{id});
      return;
    }
    if (term < m.highest_term) return retire(m, id, found->second);
    m.roots = roots;
    activate(m, id);
  };
  if (welcome.term == m.highest_term && second == m.journal_second) return go_on({});
  save_node_state(m, welcome.term, second, go_on);
}

void refused(Machine& m, LinkId id, const Refused& refusal) {
  if (m.highest_term < refusal.term)
    save_node_state(m, refusal.term, m.journal_second, [](Status) {});
  m.emit(CloseLink{id});
}

struct Obeyer {
  Machine& m;
  LinkId link;
  void operator()(const Welcome& w) const { welcomed(m, link, m.links.at(link), w); }
  void operator()(const Refused& r) const { refused(m, link, r); }
  void operator()(const StepOrder& o) const { order(m, o); }
  void operator()(const CancelStep& c) const { cancel(m, c); }
  void operator()(const AckExit& a) const { acknowledge(m, a); }
  void operator()(const JournalRecords& r) const { copy_journal(m, r); }
  void operator()(const GrantLease& g) const {
    LiveAttempt* live = m.find_attempt({g.job, g.generation});
    if (live != nullptr && live->has_processes()) m.emit(ExtendLease{g.job, g.generation, g.lease});
  }
  void operator()(const ReadLog& r) const { read_log(m, r); }
  void operator()(const HandOver&) const {}  // kept before, whoever is obeyed
  void operator()(const AskNode& a) const { ask(m, a); }
};

void obey(Machine& m, LinkId id, const ControllerMessage& message) {
  std::visit(Obeyer{m, id}, message);
}

/// A controller whose term is over learns that its orders are not carried out.
void turn_down(Machine& m, LinkId id, const ControllerMessage& message) {
  const auto* order = std::get_if<StepOrder>(&message);
  if (order == nullptr) return;
  Error error{ErrorCode::stale,
              "node " + m.name.str() + " obeys controller term " + m.highest_term.str(),
              {},
              "this controller's term is over"};
  m.emit(SayToController{id, StepResult{order->step.id, std::move(error), std::nullopt, {}}});
}

}  // namespace

void connected(Machine& m, LinkId id) {
  if (m.links.size() >= most_links) {
    m.emit(CloseLink{id});
    return;
  }
  Link& link = m.links[id];
  link = Link{};
  link.since = m.now.monotonic;
  if (m.ready) greet(m);
}

void greet(Machine& m) {
  for (auto& [id, link] : m.links) {
    if (link.phase != Link::Phase::connected) continue;
    link.phase = Link::Phase::greeted;
    say_hello(m, id, link);
  }
}

void disconnected(Machine& m, LinkId id) {
  m.links.erase(id);
  if (m.active == id) m.active.reset();
}

void heard(Machine& m, LinkId id, const ControllerMessage& message) {
  auto found = m.links.find(id);
  if (found == m.links.end()) return;
  Link& link = found->second;
  if (const auto* tail = std::get_if<HandOver>(&message)) return keep_tail(m, *tail);
  bool is_handshake =
      std::holds_alternative<Welcome>(message) || std::holds_alternative<Refused>(message);
  if (is_handshake || link.phase == Link::Phase::active) return obey(m, id, message);
  if (link.phase == Link::Phase::saving && link.held.size() < most_held) {
    link.held.push_back(message);
    return;
  }
  turn_down(m, id, message);
}

void tick_links(Machine& m) {
  for (const auto& [id, link] : m.links)
    if (link.phase == Link::Phase::stale && link.since + last_words <= m.now.monotonic)
      m.emit(CloseLink{id});
  if (m.ready && m.last_space + space_every <= m.now.monotonic) {
    m.last_space = m.now.monotonic;
    m.call(env::AskSpace{}, [&m](StoreResult reply) {
      if (auto space = reply_as<env::Space>(std::move(reply))) m.pool_free = space->free;
    });
  }
  if (!m.active || m.now.monotonic - m.last_heartbeat < heartbeat_every) return;
  m.last_heartbeat = m.now.monotonic;
  std::optional<std::string> power;
  if (std::exchange(m.power_changed, false)) power = m.facts.power;
  m.say(Heartbeat{m.pool_free, m.memory_free, std::exchange(m.loads, {}), std::move(power)});
}

}  // namespace zed::agent
