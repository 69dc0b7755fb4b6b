#include "beam/session.hpp"

#include <algorithm>

#include "beam/wire.hpp"

namespace zed::beam {
namespace {

/// What answers to a peer that does not read may add to a full output before it is given up.
constexpr std::size_t answer_slack = std::size_t{1} << 20;
/// A frame's own bytes, and the control tuple's, on top of a message.
constexpr std::size_t control_allowance = std::size_t{4} << 10;

constexpr std::string_view ping_name = "net_kernel";

/// What a process's number becomes: old readers take 28 bits of id.
constexpr std::uint64_t id_bits = 28;

std::optional<std::uint64_t> number_of(const Pid& pid) {
  if (pid.id >> id_bits != 0) return std::nullopt;
  return (std::uint64_t{pid.serial} << id_bits) | pid.id;
}

/// The alias in a gen tag: [alias | Ref], or [[alias | Ref] | Label] of gen_server:send_request.
const Reference* alias_of(const Term& tag) {
  const ImproperList* pair = tag.as<ImproperList>();
  const List* proper = tag.as<List>();
  const auto* items = pair != nullptr ? &pair->items : proper != nullptr ? &proper->items : nullptr;
  if (items == nullptr || items->size() < 2) return nullptr;
  if (items->front().as<ImproperList>() != nullptr) return alias_of(items->front());
  return pair != nullptr && items->size() == 2 && items->front().is_atom("alias")
             ? items->back().as<Reference>()
             : nullptr;
}

/// The receivers of one connection, as the outbox tells them apart.
std::string receiver_of(const Pid& pid) {
  std::string key = "p";
  put(key, pid.id, 4);
  put(key, pid.serial, 4);
  return key;
}
std::size_t size_of(const std::vector<std::string>& frames) {
  std::size_t size = 0;
  for (const std::string& frame : frames)
    size += frame.size();
  return size;
}
std::string receiver_of(std::string_view name) {
  return "n" + std::string(name);
}

/// A proper list of terms, also where a BEAM has sent small integers as bytes.
std::optional<std::vector<Term>> items_of(const Term& term) {
  if (const List* list = term.as<List>()) return list->items;
  const ByteList* bytes = term.as<ByteList>();
  if (bytes == nullptr) return std::nullopt;
  std::vector<Term> items;
  items.reserve(bytes->bytes.size());
  for (char c : bytes->bytes)
    items.push_back(Term(std::int64_t{static_cast<unsigned char>(c)}));
  return items;
}

}  // namespace

Session::Session(SessionOptions options, Handshake handshake, Instant now)
    : options_(std::move(options)), handshake_(std::move(handshake)),
      reader_(options_.limits.frames, options_.limits.terms), started_(now), last_received_(now),
      last_sent_(now) {}

Session Session::dial(SessionOptions options, std::string peer, Instant now) {
  auto handshake = Handshake::dial(options.self, peer, options.random);
  Session session(std::move(options), std::move(handshake), now);
  session.peer_.name = std::move(peer);
  session.output_ = session.handshake_.take_output();
  return session;
}

Session Session::accept(SessionOptions options, Instant now) {
  auto handshake = Handshake::accept(options.self, options.random);
  return Session(std::move(options), std::move(handshake), now);
}

void Session::end(Events& events, Error error) {
  if (stage_ == Stage::over) return;
  stage_ = Stage::over;
  events.push_back(Ended{std::move(error)});
}

std::vector<SessionEvent> Session::receive(std::span<const std::uint8_t> bytes, Instant now) {
  Events events;
  last_received_ = now;
  if (stage_ == Stage::handshake) drive_handshake(events, bytes);
  if (stage_ == Stage::up) drive_frames(events, bytes);
  return events;
}

void Session::drive_handshake(Events& events, std::span<const std::uint8_t>& bytes) {
  while (!bytes.empty()) {
    auto progress = handshake_.receive(bytes);
    output_ += handshake_.take_output();
    if (!progress) return end(events, std::move(progress).error());
    if (const auto* done = std::get_if<Handshake::Done>(&*progress)) {
      peer_ = done->peer;
      stage_ = Stage::up;
      writer_ = FrameWriter((peer_.flags & flag::fragments) != 0);
      events.push_back(PeerUp{peer_});
      return;
    }
    if (const auto* named = std::get_if<Handshake::Named>(&*progress)) {
      peer_.name = named->peer;
      events.push_back(PeerNamed{named->peer});
      if (!bytes.empty())
        end(events, {ErrorCode::corrupt, "the peer spoke before it was answered", {}, {}});
      return;
    }
  }
}

std::vector<SessionEvent> Session::answer(Verdict verdict) {
  Events events;
  if (stage_ != Stage::handshake) return events;
  handshake_.answer(verdict);
  output_ += handshake_.take_output();
  if (verdict == Verdict::not_allowed)
    end(events, {ErrorCode::refused, "nodes of that name are not accepted", {}, {}});
  if (verdict == Verdict::nok)
    end(events, {ErrorCode::busy, "this node's own attempt to connect goes on", {}, {}});
  return events;
}

void Session::drive_frames(Events& events, std::span<const std::uint8_t>& bytes) {
  while (stage_ == Stage::up && !bytes.empty()) {
    auto event = reader_.receive(bytes);
    if (!event) return end(events, std::move(event).error().with("read from " + peer_.name));
    if (!event->has_value()) return;
    if (auto* packet = std::get_if<Packet>(&**event)) on_packet(events, std::move(*packet));
  }
}

void Session::on_packet(Events& events, Packet packet) {
  auto message = control::parse(std::move(packet));
  if (!message) return end(events, std::move(message).error().with("read from " + peer_.name));
  std::visit([&](auto& one) { on(events, one); }, *message);
  if (waiting() > options_.limits.max_output + answer_slack)
    end(events, {ErrorCode::busy, peer_.name + " does not read what it asked for", {}, {}});
}

// --- Messages ---------------------------------------------------------------------------------

void Session::on(Events& events, control::Send& message) {
  // Process 1 is what is registered, whatever the name; others are gone or take no messages.
  if (message.to != own_pid(1) || options_.registered.empty()) return;
  events.push_back(
      Message{peer_.name, *options_.registered.begin(), Pid{}, std::move(message.message)});
}

void Session::on(Events&, control::SendToAlias&) {
  // We make no calls, so there is nothing that an alias could stand for: late or mistaken.
}

void Session::on(Events& events, control::SendToName& message) {
  const auto* parts = message.message.tuple_of(3);
  if (parts != nullptr && (*parts)[0].is_atom("$gen_call"))
    return on_gen_call(events, message, *parts);
  if (options_.registered.count(message.to) == 0) return;
  events.push_back(
      Message{peer_.name, message.to, std::move(message.from), std::move(message.message)});
}

void Session::on_gen_call(Events& events, control::SendToName& message,
                          const std::vector<Term>& parts) {
  const auto* from = parts[1].tuple_of(2);
  const Pid* caller = from != nullptr ? (*from)[0].as<Pid>() : nullptr;
  if (caller == nullptr) return;
  Call call{peer_.name, message.to, *caller, (*from)[1], parts[2]};
  if (message.to == ping_name) {
    const auto* request = call.request.tuple_of(2);
    if (request == nullptr || !(*request)[0].is_atom("is_auth")) return;
    // A pong that finds no room is a peer that does not read; the tick deals with it.
    (void)reply(call, atom("yes"));
    return;
  }
  if (options_.registered.count(message.to) != 0) events.push_back(std::move(call));
}

Status Session::send(std::string_view to_name, const Term& message) {
  return post(receiver_of(to_name), control::send_to_name(own_pid(1), to_name), message);
}

Status Session::send(const Pid& to, const Term& message) {
  return post(receiver_of(to), control::send(to), message);
}

Status Session::reply(const Call& call, Term answer) {
  const Term message = tuple({call.tag, std::move(answer)});
  if (const Reference* alias = alias_of(call.tag))
    return post(receiver_of(call.from), control::send_to_alias(own_pid(1), *alias), message);
  return send(call.from, message);
}

Status Session::post(const std::string& to, const Term& control, const Term& message) {
  if (stage_ != Stage::up) return fail(ErrorCode::unavailable, "no connection to " + peer_.name);
  // What the peer's limits (taken to be ours) refuse would cost the connection.
  if (auto fits = check_limits(message, options_.limits.terms); !fits)
    return fail(std::move(fits).error().with("send to " + peer_.name));
  std::vector<std::string> frames = writer_.frames(control, message);
  const std::size_t size = size_of(frames);
  if (size > options_.limits.frames.max_message - control_allowance)
    return fail(ErrorCode::invalid,
                "a message of " + std::to_string(size) + " bytes to " + peer_.name +
                    " exceeds the cap of " + std::to_string(options_.limits.frames.max_message),
                "bulk data has its own connections");
  if (waiting() + size > options_.limits.max_output)
    return fail(ErrorCode::busy,
                std::to_string(waiting()) + " bytes already wait for " + peer_.name);
  outbox_.add(to, std::move(frames));
  return {};
}

void Session::post_control(const Pid& to, const Term& control) {
  outbox_.add(receiver_of(to), writer_.frames(control, {}));
}

// --- Monitors and links -----------------------------------------------------------------------

Pid Session::own_pid(std::uint64_t number) const {
  const std::uint64_t mask = (std::uint64_t{1} << id_bits) - 1;
  return Pid{Atom{options_.self.name}, static_cast<std::uint32_t>(number & mask),
             static_cast<std::uint32_t>(number >> id_bits), options_.self.creation};
}

bool Session::is_alive(const Term& target) const {
  if (const Atom* name = target.as<Atom>())
    return name->name == ping_name || options_.registered.count(name->name) != 0;
  const Pid* pid = target.as<Pid>();
  if (pid == nullptr || pid->node.name != options_.self.name ||
      pid->creation != options_.self.creation)
    return false;
  const auto number = number_of(*pid);
  return number == 1 || (number && spawned_.count(*number) != 0);
}

void Session::on(Events&, control::Monitor& message) {
  if (!is_alive(message.target))
    return post_control(message.from, control::monitor_exit(message.target, message.from,
                                                            message.reference, atom("noproc")));
  if (watches_.size() >= options_.limits.max_monitors)
    return post_control(message.from,
                        control::monitor_exit(message.target, message.from, message.reference,
                                              atom("system_limit")));
  watches_.insert_or_assign(message.reference,
                            Watch{std::move(message.from), std::move(message.target)});
}

void Session::on(Events&, control::Demonitor& message) {
  watches_.erase(message.reference);
  // A caller that gave up takes the monitor of its call away; its answer has nowhere to go then.
  const auto given_up = std::find_if(spawned_.begin(), spawned_.end(), [&](const auto& entry) {
    return entry.second.request.id == message.reference;
  });
  if (given_up == spawned_.end()) return;
  const Pid process = own_pid(given_up->first);
  spawned_.erase(given_up);
  tell_watchers(process, atom("killed"));
}

void Session::on(Events& events, control::MonitorExit& message) {
  const auto watched = watched_.extract(message.reference);
  if (!watched.empty()) events.push_back(ProcessDown{peer_.name, watched.mapped()});
}

Reference Session::new_reference() {
  Reference reference;
  reference.node = Atom{options_.self.name};
  reference.creation = options_.self.creation;
  // Unique on this connection, which is all that a peer needs; the first word has 18 bits.
  const std::uint64_t number = ++last_reference_;
  constexpr std::uint32_t first_bits = 18;
  reference.ids = {static_cast<std::uint32_t>(number & ((1U << first_bits) - 1)),
                   static_cast<std::uint32_t>(number >> first_bits), 0, 0, 0};
  reference.count = 3;
  return reference;
}

Status Session::watch(const Pid& process) {
  if (stage_ != Stage::up) return fail(ErrorCode::unavailable, "no connection to " + peer_.name);
  if (watched_.size() >= options_.limits.max_monitors)
    return fail(ErrorCode::busy, "too many processes of " + peer_.name + " are watched already");
  const Reference reference = new_reference();
  watched_.emplace(reference, process);
  post_control(process, control::monitor(own_pid(1), process, reference));
  return {};
}

void Session::unwatch(const Pid& process) {
  for (auto entry = watched_.begin(); entry != watched_.end();) {
    if (entry->second != process) {
      ++entry;
      continue;
    }
    post_control(process, control::demonitor(own_pid(1), process, entry->first));
    entry = watched_.erase(entry);
  }
}

void Session::on(Events&, control::Link& message) {
  if (!is_alive(message.to))
    return post_control(message.from, control::exit(message.to, message.from, atom("noproc")));
  if (links_.size() >= options_.limits.max_monitors)
    return post_control(message.from,
                        control::exit(message.to, message.from, atom("system_limit")));
  links_.insert({std::move(message.from), std::move(message.to)});
}

void Session::on(Events&, control::Unlink& message) {
  links_.erase({message.from, message.to});
  post_control(message.from, control::unlink_ack(message));
}

void Session::on(Events&, control::Exit& message) {
  // Our processes trap exits: the link is gone, nothing else.
  links_.erase({message.from, message.to});
}

void Session::on(Events&, control::Ignored&) {}

void Session::tell_watchers(const Pid& process, const Term& reason) {
  for (auto watch = watches_.begin(); watch != watches_.end();) {
    if (watch->second.target != Term(process)) {
      ++watch;
      continue;
    }
    post_control(watch->second.watcher,
                 control::monitor_exit(process, watch->second.watcher, watch->first, reason));
    watch = watches_.erase(watch);
  }
  for (auto link = links_.begin(); link != links_.end();) {
    if (link->second != process) {
      ++link;
      continue;
    }
    post_control(link->first, control::exit(process, link->first, reason));
    link = links_.erase(link);
  }
}

void Session::say_goodbye(const Term& reason) {
  if (stage_ != Stage::up) return;
  for (const auto& [reference, watch] : watches_)
    post_control(watch.watcher,
                 control::monitor_exit(watch.target, watch.watcher, reference, reason));
  for (const auto& [theirs, ours] : links_)
    post_control(theirs, control::exit(ours, theirs, reason));
  for (const auto& [number, spawned] : spawned_) {
    if (spawned.request.monitored)
      post_control(
          spawned.request.from,
          control::monitor_exit(own_pid(number), spawned.request.from, spawned.request.id, reason));
  }
  watches_.clear();
  links_.clear();
  spawned_.clear();
}

// --- Remote calls -----------------------------------------------------------------------------

void Session::on(Events& events, control::SpawnRequest& request) {
  const bool is_call =
      request.module == "erpc" && request.function == "execute_call" && request.arity == 4;
  if (is_call) return on_erpc(events, request);
  post_control(request.from, control::spawn_refused(request, "undef"));
}

void Session::on_erpc(Events& events, control::SpawnRequest& request) {
  // [ResultTag, Module, Function, Arguments]; see erpc:execute_call/4.
  const auto call = items_of(request.arguments);
  if (!call || call->size() != 4)
    return post_control(request.from, control::spawn_refused(request, "badarg"));
  const Atom* module = (*call)[1].as<Atom>();
  const Atom* function = (*call)[2].as<Atom>();
  const auto arguments = items_of((*call)[3]);
  if (module == nullptr || function == nullptr || !arguments)
    return post_control(request.from, control::spawn_refused(request, "badarg"));
  if (spawned_.size() >= options_.limits.max_spawned)
    return post_control(request.from, control::spawn_refused(request, "system_limit"));

  const std::uint64_t id = options_.next_process();
  post_control(request.from, control::spawned(request, own_pid(id)));
  if (request.linked) links_.insert({request.from, own_pid(id)});
  spawned_.emplace(id, Spawned{request, (*call)[0]});
  const bool allowed =
      options_.allows_rpc && options_.allows_rpc(module->name, function->name, arguments->size());
  if (allowed) {
    events.push_back(RpcCall{peer_.name, id, module->name, function->name, *arguments});
    return;
  }
  (void)finish_rpc(id, [&](const Term& tag) {
    const Term where = tuple({(*call)[1], (*call)[2], (*call)[3], List{}});
    return tuple({tag, atom("error"), atom("undef"), list({where})});
  });
}

Status Session::return_value(std::uint64_t rpc, Term value) {
  return finish_rpc(rpc, [&value](const Term& tag) {
    return tuple({tag, atom("return"), std::move(value)});
  });
}

Status Session::raise(std::uint64_t rpc, Term reason) {
  return finish_rpc(rpc, [&reason](const Term& tag) {
    return tuple({tag, atom("error"), std::move(reason), List{}});
  });
}

Status Session::finish_rpc(std::uint64_t rpc, const std::function<Term(const Term& tag)>& reason) {
  if (stage_ != Stage::up) return fail(ErrorCode::unavailable, "no connection to " + peer_.name);
  const auto found = spawned_.find(rpc);
  if (found == spawned_.end())
    return fail(ErrorCode::not_found, "the caller on " + peer_.name + " has given up");
  const Spawned call = std::move(found->second);
  spawned_.erase(found);
  const Pid process = own_pid(rpc);
  const Term why = reason(call.result_tag);
  Status status;
  if (call.request.monitored) {
    const Pid& caller = call.request.from;
    auto frames = writer_.frames(control::monitor_exit(process, caller, call.request.id, why), {});
    const std::size_t size = size_of(frames);
    // An answer that does not fit must still end the call, or its caller waits for ever.
    if (!check_limits(why, options_.limits.terms) ||
        size > options_.limits.frames.max_message - control_allowance ||
        waiting() + size > options_.limits.max_output) {
      status = fail(ErrorCode::busy,
                    "no room for an answer of " + std::to_string(size) + " bytes to " + peer_.name);
      frames = writer_.frames(
          control::monitor_exit(process, caller, call.request.id, atom("system_limit")), {});
    }
    outbox_.add(receiver_of(caller), std::move(frames));
  }
  tell_watchers(process, status ? atom("normal") : atom("system_limit"));
  return status;
}

// --- Time -------------------------------------------------------------------------------------

std::vector<SessionEvent> Session::on_time(Instant now) {
  Events events;
  const SessionLimits& limits = options_.limits;
  if (stage_ == Stage::handshake && now >= started_ + limits.handshake)
    end(events, {ErrorCode::timeout,
                 "no handshake within " + std::to_string(limits.handshake.value) + " ms",
                 {},
                 "what listens there may not be an Erlang node"});
  if (stage_ != Stage::up) return events;
  if (now >= last_received_ + limits.tick) {
    end(events, {ErrorCode::timeout,
                 peer_.name + " was silent for " + std::to_string(limits.tick.value) + " ms",
                 {},
                 {}});
    return events;
  }
  const bool due = now >= last_sent_ + Millis{limits.tick.value / 4};
  if (due && !has_output()) output_ += FrameWriter::tick();
  return events;
}

Instant Session::next_deadline() const {
  const SessionLimits& limits = options_.limits;
  if (stage_ == Stage::handshake) return started_ + limits.handshake;
  return std::min(last_received_ + limits.tick, last_sent_ + Millis{limits.tick.value / 4});
}

bool Session::has_output() const {
  return !output_.empty() || !outbox_.empty();
}

std::string Session::take_output(Instant now, std::size_t most) {
  if (has_output()) last_sent_ = now;
  // The handshake's last word goes before the first message.
  std::string out = std::exchange(output_, {});
  if (out.empty()) return outbox_.take(most);
  if (out.size() < most) out += outbox_.take(most - out.size());
  return out;
}

}  // namespace zed::beam
