#include "beam/node.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <random>

#include "beam/epmd.hpp"
#include "net/listener.hpp"
#include "net/lobby.hpp"
#include "net/socket.hpp"

namespace zed::beam {
namespace {

/// What may wait in a connection beside what waits in its session.
constexpr Bytes connection_slack = mebibytes(4);
/// Given to a connection at once: what a small message may have to wait for, and enough to keep a
/// link busy between two turns of the loop.
constexpr std::size_t most_at_once = std::size_t{256} << 10;

std::uint32_t random_bits() {
  // Reads the operating system's generator on Linux, macOS and FreeBSD.
  static std::random_device device;
  return device();
}

/// A start's own number: 1 to 3 are what nodes of 2-bit creations use.
std::uint32_t new_creation() {
  std::uint32_t creation = 0;
  while (creation < 4)
    creation = random_bits();
  return creation;
}

Status check(const NodeOptions& options) {
  if (!is_node_name(options.name))
    return fail(ErrorCode::invalid, "\"" + options.name.substr(0, 80) + "\" is not a node's name",
                "write it like zed@server");
  if (options.cookie.empty() || options.cookie.size() > 255)
    return fail(ErrorCode::invalid, "a cookie has 1 to 255 bytes");
  return {};
}

}  // namespace

struct Node::State : std::enable_shared_from_this<Node::State> {
  using ConnectionId = std::uint64_t;

  struct Peer {
    Session session;
    net::Connection connection;
    net::Endpoint address;
    std::string dialled;  ///< the name that was dialled; empty if the peer dialled us
    std::optional<pki::CertificateInfo> certificate = std::nullopt;
    bool up = false;
  };
  struct Attempt {
    std::function<void(Status)> done;
    net::Timer deadline;
    std::uint64_t number = 0;
    Error last{ErrorCode::timeout, "no answer in time", {}, {}};
  };

  State(net::Loop& owner, NodeOptions given, NodeHandlers then)
      : loop(owner), options(std::move(given)), handlers(std::move(then)), sweep(owner),
        strangers(options.max_strangers) {
    const std::size_t length_bytes = options.tls ? 4 : 2;
    identity = {options.name, new_creation(), options.cookie, length_bytes};
  }

  // --- Life -----------------------------------------------------------------------------------

  void begin() {
    const std::int64_t period = std::clamp<std::int64_t>(options.limits.tick.value / 16, 10, 1000);
    sweep.start({period}, [this] {
      const auto keep = shared_from_this();
      on_time();
      if (!closed) begin();
    });
  }

  void close() {
    closed = true;
    handlers = {};
    attempts.clear();
    listener.reset();
    epmd.reset();
    sweep.cancel();
    for (auto& [id, peer] : connections) {
      peer->session.say_goodbye(atom("shutdown"));
      farewell(*peer);
    }
    connections.clear();
    strangers.clear();
    by_name.clear();
  }

  /// Sends what is left and closes once it is sent.
  void farewell(Peer& peer) {
    if (peer.session.has_output()) (void)peer.connection.send(peer.session.take_output(loop.now()));
    peer.connection.finish();
  }

  SessionOptions session_options() {
    SessionOptions result;
    result.self = identity;
    result.random = random_bits;
    result.registered = options.registered;
    result.allows_rpc = options.allows_rpc;
    // The node outlives its sessions.
    result.next_process = [this] { return ++last_process; };
    result.limits = options.limits;
    return result;
  }

  // --- Connections ----------------------------------------------------------------------------

  void on_accept(net::Fd fd) {
    if (connections.size() - strangers.size() >= options.max_connections) return;  // closes it
    auto address = net::peer_endpoint(fd.get()).value_or(net::Endpoint{});
    adopt(Session::accept(session_options(), loop.now()), std::move(fd), std::move(address), "");
  }

  void adopt(Session session, net::Fd fd, net::Endpoint address, std::string dialled) {
    const ConnectionId id = ++last_connection;
    const Bytes queue{static_cast<std::int64_t>(options.limits.max_output)};
    if (dialled.empty()) {
      if (const auto out = strangers.enter(id, address.host)) connections.erase(*out);
    }
    net::Connection connection =
        options.tls
            ? net::Connection(loop, std::move(fd), tls_end(id, dialled), queue + connection_slack)
            : net::Connection(loop, std::move(fd), queue + connection_slack);
    auto peer = std::make_unique<Peer>(
        Peer{std::move(session), std::move(connection), std::move(address), std::move(dialled)});
    Peer& started = *peer;
    connections.emplace(id, std::move(peer));
    // Handlers of a connection are silent once it is closed, and closed it is before `this` goes.
    started.connection.start({[this, id](std::span<const std::uint8_t> bytes) {
                                const auto keep = shared_from_this();
                                on_bytes(id, bytes);
                              },
                              [this, id](Error error) {
                                const auto keep = shared_from_this();
                                drop(id, std::move(error));
                              },
                              [this, id] { flush(id); }});
    flush(id);
  }

  net::TlsEnd tls_end(ConnectionId id, const std::string& dialled) {
    const auto side = dialled.empty() ? net::TlsSide::server : net::TlsSide::client;
    return {options.tls, side, net::TlsPeer::must_show_certificate,
            [this, id](const pki::CertificateInfo* certificate) {
              return on_secured(id, certificate);
            }};
  }

  /// A dialled node's certificate must name it; one that dialled us has yet to say its name.
  Status on_secured(ConnectionId id, const pki::CertificateInfo* certificate) {
    Peer* peer = find(id);
    if (peer == nullptr || certificate == nullptr)
      return fail(ErrorCode::refused, "no certificate was shown");
    peer->certificate = *certificate;
    const std::string& node = certificate->identity.node;
    if (peer->dialled.empty() || peer->dialled == node) return {};
    return fail(ErrorCode::refused,
                "the certificate there is that of " + node + ", not of " + peer->dialled,
                "check the address");
  }

  Peer* find(ConnectionId id) {
    const auto found = connections.find(id);
    return found == connections.end() ? nullptr : found->second.get();
  }
  Peer* find(const std::string& name) {
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : find(found->second);
  }

  /// Gives the connection bytes only when it has sent what it had, so that what waits for a slow
  /// peer is counted in one place.
  void flush(ConnectionId id) {
    Peer* peer = find(id);
    if (peer == nullptr) return;
    // What the kernel takes at once is not reported as drained.
    while (peer->connection.queued().value == 0 && peer->session.has_output())
      if (!peer->connection.send(peer->session.take_output(loop.now(), most_at_once))) return;
  }

  void on_bytes(ConnectionId id, std::span<const std::uint8_t> bytes) {
    Peer* peer = find(id);
    if (peer == nullptr) return;
    perform(id, peer->session.receive(bytes, loop.now()));
    flush(id);
  }

  void on_time() {
    std::vector<ConnectionId> ids;
    ids.reserve(connections.size());
    const Instant now = loop.now();
    for (const auto& [id, peer] : connections)
      if (peer->session.next_deadline() <= now) ids.push_back(id);
    for (const ConnectionId id : ids) {
      if (Peer* peer = find(id)) perform(id, peer->session.on_time(now));
      flush(id);
    }
  }

  void perform(ConnectionId id, std::vector<SessionEvent> events) {
    for (SessionEvent& event : events) {
      if (closed || find(id) == nullptr) return;
      std::visit([&](auto& one) { on(id, one); }, event);
    }
  }

  // --- Events of sessions ---------------------------------------------------------------------

  Existing existing(const std::string& name) {
    if (by_name.count(name) != 0) return Existing::up;
    return attempts.count(name) != 0 ? Existing::dialling : Existing::none;
  }

  void on(ConnectionId id, PeerNamed& named) {
    const bool admitted =
        named.peer != options.name && handlers.admit && handlers.admit(named.peer);
    Peer* peer = find(id);
    if (peer == nullptr) return;
    if (peer->certificate && peer->certificate->identity.node != named.peer) {
      (void)peer->session.answer(Verdict::not_allowed);
      return drop(id, {ErrorCode::refused,
                       "its certificate is that of " + peer->certificate->identity.node,
                       {},
                       "a node's name is what its certificate says"});
    }
    const Verdict verdict = admitted ? verdict_for(options.name, named.peer, existing(named.peer))
                                     : Verdict::not_allowed;
    perform(id, peer->session.answer(verdict));
  }

  void on(ConnectionId id, PeerUp& event) {
    const std::string name = event.peer.name;
    if (const auto old = by_name.find(name); old != by_name.end())
      drop(old->second, {ErrorCode::unavailable, name + " has connected anew", {}, {}});
    drop_dials(name, id);
    Peer* peer = find(id);
    if (closed || peer == nullptr) return;
    peer->up = true;
    strangers.leave(id);
    by_name[name] = id;
    finish_attempt(name, {});
    if (!closed && handlers.on_up) call(handlers.on_up, name);
  }

  /// Our own attempts to reach a peer that has reached us.
  void drop_dials(const std::string& name, ConnectionId except) {
    // Of all who dial us, thousands at a time, hardly one is dialled by us as well.
    if (attempts.count(name) == 0) return;
    for (auto entry = connections.begin(); entry != connections.end();) {
      const Peer& peer = *entry->second;
      const bool superseded = entry->first != except && !peer.up && peer.dialled == name;
      entry = superseded ? connections.erase(entry) : std::next(entry);
    }
  }

  void on(ConnectionId, Call& event) {
    if (handlers.on_call) call(handlers.on_call, std::move(event));
  }
  void on(ConnectionId, Message& event) {
    if (handlers.on_message) call(handlers.on_message, std::move(event));
  }
  void on(ConnectionId id, RpcCall& event) {
    if (handlers.on_rpc) return call(handlers.on_rpc, std::move(event));
    if (Peer* peer = find(id)) (void)peer->session.raise(event.id, atom("undef"));
  }
  void on(ConnectionId, ProcessDown& event) {
    if (handlers.on_process_down) call(handlers.on_process_down, std::move(event));
  }
  void on(ConnectionId id, Ended& event) { drop(id, std::move(event.error)); }

  /// By a copy: the handler may destroy the node, and with it the function that is running.
  template <class Handler, class... Arguments>
  static void call(const Handler& handler, Arguments&&... arguments) {
    const Handler copy = handler;
    copy(std::forward<Arguments>(arguments)...);
  }

  void drop(ConnectionId id, Error error) {
    const auto found = connections.find(id);
    if (found == connections.end()) return;
    const auto peer = std::move(found->second);
    connections.erase(found);
    strangers.leave(id);
    farewell(*peer);
    const std::string name = peer->session.peer().name;
    if (peer->up) {
      by_name.erase(name);
      if (handlers.on_down) call(handlers.on_down, name, error);
    } else if (!peer->dialled.empty()) {
      dial_failed(peer->dialled, std::move(error));
    } else if (handlers.on_refused) {
      if (!name.empty()) error = std::move(error).with("accept " + name);
      call(handlers.on_refused, peer->address, error);
    }
  }

  net::Exposure exposure() const {
    return options.tls ? net::Exposure::encrypted : options.exposure;
  }

  // --- Dialling -------------------------------------------------------------------------------

  void connect(const std::string& name, const net::Endpoint& address, Millis limit,
               std::function<void(Status)> done) {
    if (by_name.count(name) != 0) return loop.post([done] { done({}); });
    if (!is_node_name(name) || name == options.name || attempts.count(name) != 0) {
      const bool under_way = attempts.count(name) != 0;
      return loop.post([done, name, under_way] {
        done(fail(under_way ? ErrorCode::exists : ErrorCode::invalid,
                  under_way ? "already connecting to " + name
                            : "\"" + name.substr(0, 80) + "\" is not another node's name"));
      });
    }
    const std::uint64_t number = ++last_attempt;
    auto& attempt =
        attempts.emplace(name, Attempt{std::move(done), net::Timer(loop), number}).first->second;
    attempt.deadline.start(limit, [this, name] {
      const auto keep = shared_from_this();
      drop_dials(name, 0);
      finish_attempt(name, fail(std::move(attempts.at(name).last)));
    });
    net::connect_tcp(loop, address, {exposure(), limit},
                     [weak = weak_from_this(), name, address, number](Result<net::Fd> fd) {
                       if (const auto self = weak.lock())
                         self->on_dialled(name, address, number, std::move(fd));
                     });
  }

  void on_dialled(const std::string& name, const net::Endpoint& address, std::uint64_t number,
                  Result<net::Fd> fd) {
    const auto attempt = attempts.find(name);
    if (closed || attempt == attempts.end() || attempt->second.number != number) return;
    if (!fd) return finish_attempt(name, fail(std::move(fd).error()));
    adopt(Session::dial(session_options(), name, loop.now()), std::move(*fd), address, name);
  }

  void dial_failed(const std::string& name, Error error) {
    const auto attempt = attempts.find(name);
    if (attempt == attempts.end()) return;
    // The peer's own attempt goes on: what it comes to decides, within the deadline.
    if (error.code == ErrorCode::busy) {
      attempt->second.last.message += ", while " + error.message;
      return;
    }
    finish_attempt(name, fail(std::move(error)));
  }

  void finish_attempt(const std::string& name, Status status) {
    const auto found = attempts.find(name);
    if (found == attempts.end()) return;
    const auto done = std::move(found->second.done);
    attempts.erase(found);
    if (!status) return done(fail(std::move(status).error().with("connect to node " + name)));
    done({});
  }

  // --- Sending --------------------------------------------------------------------------------

  template <class Action> Status with_peer(const std::string& name, Action action) {
    const auto found = by_name.find(name);
    Peer* peer = found == by_name.end() ? nullptr : find(found->second);
    if (peer == nullptr) return fail(ErrorCode::unavailable, "no connection to " + name);
    Status status = action(peer->session);
    flush(found->second);
    return status;
  }

  net::Loop& loop;
  NodeOptions options;
  NodeHandlers handlers;
  Handshake::Identity identity;
  net::Timer sweep;
  std::unique_ptr<net::Listener> listener;
  std::unique_ptr<EpmdRegistration> epmd;
  std::map<ConnectionId, std::unique_ptr<Peer>> connections;
  net::Lobby strangers;  ///< that dialled us and are not up
  std::map<std::string, ConnectionId> by_name;
  std::map<std::string, Attempt> attempts;
  ConnectionId last_connection = 0;
  std::uint64_t last_attempt = 0;
  std::uint64_t last_process = 1;  ///< process 1 is what is registered
  bool closed = false;
};

Node::Node(std::shared_ptr<State> state) : state_(std::move(state)) {}
Node::~Node() {
  state_->close();
}

Result<std::unique_ptr<Node>> Node::start(net::Loop& loop, NodeOptions options,
                                          NodeHandlers handlers) {
  ZED_CHECK(check(options));
  auto state = std::make_shared<State>(loop, std::move(options), std::move(handlers));
  auto listener =
      net::Listener::tcp(loop, state->options.listen, state->exposure(),
                         [raw = state.get()](net::Fd fd) { raw->on_accept(std::move(fd)); });
  if (!listener) return fail(std::move(listener).error().with("start node " + state->options.name));
  state->listener = std::make_unique<net::Listener>(std::move(*listener));
  state->begin();
  if (state->options.epmd == Epmd::register_if_running) {
    const std::string& name = state->options.name;
    state->epmd = std::make_unique<EpmdRegistration>(loop, name.substr(0, name.find('@')),
                                                     state->listener->endpoint().port,
                                                     state->options.epmd_port);
  }
  return std::unique_ptr<Node>(new Node(std::move(state)));
}

const std::string& Node::name() const {
  return state_->options.name;
}
net::Endpoint Node::endpoint() const {
  return state_->listener->endpoint();
}

void Node::connect(const std::string& peer, const net::Endpoint& address, Millis deadline,
                   std::function<void(Status)> done) {
  state_->connect(peer, address, deadline, std::move(done));
}

void Node::disconnect(const std::string& peer) {
  const auto found = state_->by_name.find(peer);
  if (found == state_->by_name.end()) return;
  const auto id = found->second;
  state_->by_name.erase(found);
  const auto connection = state_->connections.find(id);
  connection->second->session.say_goodbye(atom("noconnection"));
  state_->farewell(*connection->second);
  state_->connections.erase(connection);
}

std::vector<std::string> Node::peers() const {
  std::vector<std::string> names;
  names.reserve(state_->by_name.size());
  for (const auto& [name, id] : state_->by_name)
    names.push_back(name);
  return names;
}

bool Node::is_up(const std::string& peer) const {
  return state_->by_name.count(peer) != 0;
}

const pki::CertificateInfo* Node::certificate_of(const std::string& peer) const {
  const auto* found = state_->find(peer);
  return found != nullptr && found->certificate ? &*found->certificate : nullptr;
}

std::optional<net::Endpoint> Node::address_of(const std::string& peer) const {
  const auto* found = state_->find(peer);
  return found == nullptr ? std::nullopt : std::optional(found->address);
}

void Node::drop_revoked(const std::set<std::string>& serials) {
  std::vector<State::ConnectionId> ids;
  for (const auto& [id, peer] : state_->connections)
    if (peer->certificate && pki::is_revoked(*peer->certificate, serials)) ids.push_back(id);
  const auto keep = state_;
  for (const auto id : ids)
    keep->drop(id, {ErrorCode::refused, "its certificate was revoked", {}, {}});
}

Status Node::send(const std::string& peer, const Term& message, std::string_view to_name) {
  return state_->with_peer(peer, [&](Session& s) { return s.send(to_name, message); });
}
Status Node::send(const std::string& peer, const Pid& to, const Term& message) {
  return state_->with_peer(peer, [&](Session& s) { return s.send(to, message); });
}
Status Node::watch(const std::string& peer, const Pid& process) {
  return state_->with_peer(peer, [&](Session& s) { return s.watch(process); });
}
void Node::unwatch(const std::string& peer, const Pid& process) {
  (void)state_->with_peer(peer, [&](Session& s) -> Status {
    s.unwatch(process);
    return {};
  });
}
Status Node::reply(const Call& call, Term answer) {
  return state_->with_peer(call.peer, [&](Session& s) { return s.reply(call, std::move(answer)); });
}
Status Node::return_value(const RpcCall& call, Term value) {
  return state_->with_peer(call.peer,
                           [&](Session& s) { return s.return_value(call.id, std::move(value)); });
}
Status Node::raise(const RpcCall& call, Term reason) {
  return state_->with_peer(call.peer,
                           [&](Session& s) { return s.raise(call.id, std::move(reason)); });
}

}  // namespace zed::beam
