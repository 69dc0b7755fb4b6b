#include "bin/controller_shell.hpp"

#include <algorithm>

#include "base/describe.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "beam/term_value.hpp"
#include "net/files.hpp"
#include "net/refusal_log.hpp"

namespace zed::bin {
namespace {

constexpr Millis tick_every = Millis{250};
constexpr Millis last_words = Millis{300};

/// <state>/controller.json
struct ControllerRecord {
  ControllerId id;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("id", self.id);
  }
};

Result<ControllerId> load_identity(const std::filesystem::path& path) {
  auto known = net::read_record<ControllerRecord>(path);
  if (known) return known->id;
  if (known.error().code != ErrorCode::not_found) return fail(std::move(known).error());
  const ControllerRecord made{ControllerId{SystemIds().next()}};
  ZED_CHECK(net::write_record(path, made));
  return made.id;
}

/// Written when the second node had more of the journal than this disk. What was recorded meanwhile
/// would hide that from the next start, which a service manager begins by itself.
struct LossRecord {
  std::string why;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("why", self.why);
  }
};

std::filesystem::path loss_mark(const std::filesystem::path& state) {
  return state / "journal-lost";
}

Status check_no_loss(const std::filesystem::path& state) {
  auto loss = net::read_record<LossRecord>(loss_mark(state));
  if (!loss && loss.error().code == ErrorCode::not_found) return {};
  return fail(
      ErrorCode::corrupt, loss ? loss->why : loss.error().describe(),
      "take over there; or, to go on with what this disk still has and overwrite that copy, "
      "remove " +
          loss_mark(state).string());
}

/// A controller that has an identity had a journal before it: without it, it would begin as if it
/// knew nobody, and its empty journal would replace the copy on the second node.
Result<journal::Journal::Opened> open_journal(const std::filesystem::path& path,
                                              const std::filesystem::path& identity) {
  std::error_code error;
  if (std::filesystem::exists(identity, error) && !std::filesystem::exists(path, error))
    return fail(ErrorCode::corrupt, "this controller's journal is gone: " + path.string(),
                "zed-controller takeover on the node with its copy goes on from there; to begin "
                "without any job, remove " +
                    identity.string());
  return journal::Journal::open(path);
}

}  // namespace

struct ControllerShell::Performer {
  ControllerShell& shell;

  void operator()(const controller::SayToAgent& e) const {
    const std::string* peer = shell.peer_of(e.link);
    if (peer == nullptr) return;
    // No word becomes an atom: only shells want those.
    auto sent = shell.node_->send(*peer, beam::term_of(to_value(e.message), nullptr));
    if (sent) return;
    log_warning("link to " + *peer + " ended: " + sent.error().describe());
    shell.drop(*peer);
    shell.loop_.post([self = &shell, link = e.link] { self->take(controller::AgentGone{link}); });
  }
  void operator()(const controller::CloseLink& e) const {
    if (const std::string* peer = shell.peer_of(e.link)) shell.drop(*peer);
  }
  void operator()(const controller::WriteJournal& e) const {
    shell.to_write_.emplace_back(e.seq, e.record);
    shell.write_journal();
  }
  void operator()(const controller::CompactJournal& e) const {
    shell.to_compact_ = e;
    shell.write_journal();
  }
  void operator()(const controller::Answer& e) const {
    auto request = shell.requests_.extract(e.request);
    if (!request.empty()) request.mapped()(e.result);
  }
  void operator()(const controller::Publish& e) const {
    shell.server_->publish(e.event);
    shell.watchers_->publish(e.event);
  }
  void operator()(const controller::StepDown& e) const {
    if (e.has_lost_journal) shell.mark_loss(e.error);
    // Its last words to the agents are on their way; they get a moment to leave.
    shell.end_timer_.start(last_words, [self = &shell, error = e.error] { self->on_end_(error); });
  }
};

ControllerShell::ControllerShell(net::Loop& loop, ControllerConfig config, journal::Journal journal,
                                 std::function<void(Error)> on_end)
    : loop_(loop), config_(std::move(config)), journal_(std::move(journal)),
      on_end_(std::move(on_end)), state_(ids_), journal_worker_(loop, 1, 16), tick_timer_(loop),
      ask_timer_(loop), end_timer_(loop) {}

ControllerShell::~ControllerShell() = default;

Result<std::unique_ptr<ControllerShell>> ControllerShell::start(net::Loop& loop,
                                                                ControllerConfig config,
                                                                std::function<void(Error)> on_end) {
  if (!config.takeover) ZED_CHECK(check_no_loss(config.state));
  const auto identity = config.state / "controller.json";
  ZED_TRY(auto opened, open_journal(config.state / "journal", identity));
  ZED_TRY(ControllerId id, load_identity(identity));
  controller::Started started;
  started.id = id;
  started.machine = config.machine;
  started.last_seq = opened.journal.last_seq();
  started.records = std::move(opened.records);
  started.lost_after = config.lost_after;
  std::unique_ptr<ControllerShell> shell(
      new ControllerShell(loop, std::move(config), std::move(opened.journal), std::move(on_end)));
  ZED_CHECK(shell->open_doors());
  if (shell->config_.takeover)
    shell->ask_agents(std::move(started));
  else
    shell->begin(std::move(started));
  return shell;
}

void ControllerShell::mark_loss(const Error& why) const {
  const auto marked = net::write_record(loss_mark(config_.state), LossRecord{why.describe()});
  if (!marked) log_warning("the loss cannot be marked: " + marked.error().describe());
}

void ControllerShell::begin(controller::Started started) {
  take(std::move(started));
  tick();
}

void ControllerShell::ask_agents(controller::Started started) {
  started.take_over = true;
  asked_.emplace();
  log_info("takeover: asking agents which term they know");
  ask_timer_.start(config_.takeover->ask_for,
                   [this, started = std::move(started)] { answered(started); });
}

void ControllerShell::answered(controller::Started started) {
  Asked asked = *std::exchange(asked_, std::nullopt);
  started.highest_term = asked.highest;
  for (const auto& [second, agents] : asked.seconds) {
    if (second.empty() || second == config_.machine || config_.takeover->force) continue;
    on_end_({ErrorCode::refused,
             plural(static_cast<std::size_t>(agents), "agent") + " named " + second.str() +
                 " as the machine with the journal's copy",
             {},
             "take over there, or insist with --force: what only that copy has is lost"});
    return;
  }
  begin(std::move(started));
  // They say hello again, and are welcomed under the new term.
  for (const std::string& peer : node_->peers())
    drop(peer);
}

Status ControllerShell::open_keeper() {
  std::optional<RegistrarOptions> registrar;
  if (config_.identity) {
    ZED_TRY(auto tls, config_.identity->load_tls());
    config_.beam.tls = tls;
    registrar = RegistrarOptions{*config_.identity, tls, config_.beam.cookie, 0,
                                 [this] { return second_node(); }};
    if (config_.http.tcp) {
      config_.http.tcp->tls = tls;
      config_.http.tcp->enrol = [this](const http::Enrolment& enrolment, const http::Reply& reply) {
        keeper_->enrol(enrolment, reply);
      };
    }
  }
  ZED_TRY(keeper_, DoorKeeper::open(
                       loop_, config_.state, std::move(registrar),
                       [this](const std::set<std::string>& serials) { drop_revoked(serials); }));
  return {};
}

std::optional<SecondNode> ControllerShell::second_node() const {
  const NodeName& second = state_.desired().second;
  if (second.empty() || !node_) return std::nullopt;
  const auto address = node_->address_of("zed@" + second.str());
  // By loopback nobody else can reach it.
  const bool is_elsewhere = address && !net::is_loopback(address->host);
  return SecondNode{second.str(), is_elsewhere ? address->host : ""};
}

void ControllerShell::drop_revoked(const std::set<std::string>& serials) {
  // In a turn of its own: whoever asked for it may be at one of these doors.
  loop_.post([this, serials] {
    node_->drop_revoked(serials);
    server_->drop_revoked(serials);
  });
}

api::Caller ControllerShell::caller_of(const std::string& peer) const {
  const pki::CertificateInfo* certificate = node_->certificate_of(peer);
  // Without TLS there is the cookie, and the controller is on this machine alone.
  const bool may_change = !config_.beam.tls || (certificate != nullptr &&
                                                certificate->identity.role == pki::Role::operator_);
  const auto address = node_->address_of(peer);
  return {peer, "erlang", may_change, address ? address->str() : ""};
}

Status ControllerShell::open_doors() {
  ZED_CHECK(open_keeper());
  ZED_TRY(server_, http::Server::open(
                       loop_, config_.http,
                       [this](api::Request request, api::Caller caller, http::Reply reply) {
                         return requested(std::move(request), std::move(caller), std::move(reply));
                       }));
  beam::NodeHandlers handlers;
  // Agents and shells alike; what a peer may do depends on what it says, not on its name alone.
  handlers.admit = [](const std::string&) { return true; };
  handlers.on_up = [this](const std::string& peer) { agent_up(peer); };
  handlers.on_down = [this](const std::string& peer, const Error&) { agent_down(peer); };
  handlers.on_message = [this](const beam::Message& message) { agent_said(message); };
  handlers.on_call = [this](const beam::Call& call) { called(call); };
  handlers.on_rpc = [this](const beam::RpcCall& call) { called_remotely(call); };
  handlers.on_process_down = [this](const beam::ProcessDown& down) {
    watchers_->remove(down.peer, down.process);
  };
  handlers.on_refused = [refusals = std::make_shared<net::RefusalLog>(loop_)](
                            const net::Endpoint& from, const Error& why) {
    refusals->add("connection from " + from.str() + " refused: " + why.describe());
  };
  config_.beam.allows_rpc = is_remote_operation;
  ZED_TRY(node_, beam::Node::start(loop_, config_.beam, std::move(handlers)));
  keeper_->set_distribution_port(node_->endpoint().port);
  watchers_ = std::make_unique<ErlangWatchers>(*node_);
  return {};
}

void ControllerShell::take(controller::Event event) {
  for (const controller::Effect& effect : controller::on(state_, event, loop_.clocks()))
    std::visit(Performer{*this}, effect);
}

void ControllerShell::tick() {
  take(controller::Tick{});
  tick_timer_.start(tick_every, [this] { tick(); });
}

void ControllerShell::write_journal() {
  if (writing_) return;
  if (to_write_.empty() && !to_compact_) return;
  writing_ = true;
  // Records first: a compaction holds everything up to its own number.
  std::uint64_t first = to_write_.empty() ? 0 : to_write_.front().first;
  auto batch = std::make_shared<std::vector<std::string>>();
  for (auto& entry : to_write_)
    batch->push_back(std::move(entry.second));
  std::uint64_t last = to_write_.empty() ? 0 : to_write_.back().first;
  to_write_.clear();
  auto compact = std::exchange(to_compact_, std::nullopt);
  auto work = [this, first, batch, compact]() -> Status {
    if (!batch->empty()) ZED_CHECK(journal_.append(first, *batch));
    if (compact && compact->seq == journal_.last_seq())
      ZED_CHECK(journal_.replace(compact->seq, compact->records));
    return {};
  };
  auto done = [this, last](Status written) {
    writing_ = false;
    if (!written) log_error("journal: " + written.error().describe());
    if (last > 0) take(controller::JournalWritten{last, std::move(written)});
    write_journal();
  };
  auto posted = journal_worker_.run<Status>(std::move(work), done);
  ZED_ASSERT(posted.has_value());  // one at a time, and room for sixteen
}

const std::string* ControllerShell::peer_of(controller::LinkId link) const {
  const auto found = peers_.find(link);
  return found == peers_.end() ? nullptr : &found->second;
}

std::optional<controller::LinkId> ControllerShell::unlink(const std::string& peer) {
  const auto link = links_.extract(peer);
  if (link.empty()) return std::nullopt;
  peers_.erase(link.mapped());
  return link.mapped();
}

void ControllerShell::agent_up(const std::string& peer) {
  if (!peer.starts_with("zed@")) return;  // a shell: it calls, and is no agent
  controller::LinkId link = ++next_link_;
  links_[peer] = link;
  peers_[link] = peer;
  if (!asked_) take(controller::AgentConnected{link});
}

void ControllerShell::agent_down(const std::string& peer) {
  watchers_->drop(peer);
  const auto link = unlink(peer);
  if (link && !asked_) take(controller::AgentGone{*link});
}

void ControllerShell::drop(const std::string& peer) {
  const std::string name = peer;  // it may live in peers_
  unlink(name);
  node_->disconnect(name);
}

void ControllerShell::agent_said(const beam::Message& message) {
  auto link = links_.find(message.peer);
  if (link == links_.end()) return;
  auto value = beam::value_of(message.content);
  auto said = value ? from_value<AgentMessage>(*value) : Result<AgentMessage>(fail(value.error()));
  if (asked_) {
    auto* hello = said ? std::get_if<Hello>(&*said) : nullptr;
    if (hello == nullptr) return;
    asked_->highest = std::max(asked_->highest, hello->highest_term);
    ++asked_->seconds[hello->journal_second];
  } else if (said)
    take(controller::AgentSaid{link->second, std::move(*said)});
  else
    log_warning("message from " + message.peer + " dropped: " + said.error().describe());
}

const DeclaredNames& ControllerShell::declared_names() {
  const controller::DesiredState& desired = state_.desired();
  if (names_revision_ != desired.revision) {
    names_ = desired.applied ? DeclaredNames(desired.applied->cluster) : DeclaredNames();
    names_revision_ = desired.revision;
  }
  return names_;
}

void ControllerShell::called(const beam::Call& call) {
  auto reply = [this, call](const Result<Value>& result) {
    auto sent = node_->reply(call, answer_term(result, declared_names()));
    // One that is too large, or finds no room: a few words about that may still go.
    if (!sent && result) sent = node_->reply(call, answer_term(fail(sent.error()), {}));
    if (!sent) log_warning("answer to " + call.peer + " was lost: " + sent.error().describe());
  };
  auto asked = request_of_call(call);
  if (!asked) return reply(fail(asked.error()));
  if (auto* request = std::get_if<api::Request>(&*asked))
    requested(std::move(*request), caller_of(call.peer), reply);
  else if (const auto* watch = std::get_if<WatchEvents>(&*asked))
    watch_events(call, watch->after, reply);
  else {
    watchers_->remove(call.peer, call.from);
    reply(Value::map());
  }
}

void ControllerShell::watch_events(const beam::Call& call, std::optional<std::uint64_t> after,
                                   const http::Reply& reply) {
  constexpr std::int64_t most_missed = 1000;
  // What was missed is in the answer; what comes later is messages. Nothing happens between.
  auto begin = [this, call, after, reply](const Result<Value>& answer) {
    auto events = answer ? from_value<api::EventsReply>(*answer)
                         : Result<api::EventsReply>(fail(answer.error()));
    if (!events) return reply(fail(events.error()));
    auto& list = events->events;
    const std::uint64_t newest = list.empty() ? 0 : list.back().number;
    if (auto added = watchers_->add(call.peer, call.from, newest); !added)
      return reply(fail(added.error()));
    // A number beyond the newest is of a run before this one: then all of this run was missed.
    const std::uint64_t known = !after ? newest : *after > newest ? 0 : *after;
    std::erase_if(list, [known](const api::FleetEvent& event) { return event.number <= known; });
    Value body = api::encode_reply(*events);
    reply(body.set("last", to_value(newest)));
  };
  requested(api::ListEvents{0, most_missed}, caller_of(call.peer), begin);
}

void ControllerShell::called_remotely(const beam::RpcCall& call) {
  auto reply = [this, call](const Result<Value>& result) {
    if (auto sent = node_->return_value(call, answer_term(result, declared_names())); !sent)
      log_warning("answer to " + call.peer + " was lost: " + sent.error().describe());
  };
  auto request = request_of_rpc(call);
  if (!request) return reply(fail(request.error()));
  requested(std::move(*request), caller_of(call.peer), reply);
}

http::OnGone ControllerShell::requested(api::Request request, api::Caller caller,
                                        http::Reply reply) {
  return keeper_->pass(std::move(request), std::move(caller), std::move(reply),
                       [this](api::Request to_do, api::Caller who, http::Reply then) {
                         return carry_out(std::move(to_do), std::move(who), std::move(then));
                       });
}

http::OnGone ControllerShell::carry_out(api::Request request, api::Caller caller,
                                        http::Reply reply) {
  if (asked_) {
    reply(fail(ErrorCode::unavailable, "this controller is taking over", "try again in a moment"));
    return {};
  }
  controller::RequestId id = ++next_request_;
  requests_[id] = std::move(reply);
  take(controller::Requested{id, std::move(request), std::move(caller)});
  return [this, id] {
    if (requests_.erase(id) > 0) take(controller::RequestGone{id});
  };
}

}  // namespace zed::bin
