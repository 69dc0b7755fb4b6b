#include "http/server.hpp"

#include <algorithm>

#include <sys/socket.h>
#include <unistd.h>

#include "base/describe.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "http/session.hpp"
#include "http/status.hpp"
#include "net/listener.hpp"
#include "net/socket.hpp"
#include "net/system.hpp"
#include "net/tls_gate.hpp"

namespace zed::http {
namespace {

Visitor visitor_of(int fd, Door door) {
  if (door == Door::tcp) return {{"token", "http"}, std::nullopt};
  auto peer = net::peer_credentials(fd);
  if (!peer) return {{}, std::move(peer).error().with("ask who is at the socket")};
  Visitor visitor{{"uid " + std::to_string(peer->uid), "socket"}, std::nullopt};
  if (peer->uid != ::geteuid() && peer->uid != 0)
    visitor.stranger = Error{ErrorCode::refused,
                             "this controller belongs to uid " + std::to_string(::geteuid()) +
                                 ", not to uid " + std::to_string(peer->uid),
                             {},
                             "run zedctl as that user or as root"};
  return visitor;
}

Visitor visitor_of(std::optional<pki::CertificateInfo> certificate, net::Endpoint from) {
  Visitor visitor;
  if (certificate) {
    const pki::Identity& identity = certificate->identity;
    visitor.caller = {identity.node, "https", identity.role == pki::Role::operator_, from.str()};
  } else {
    visitor.caller = {"token", "https", false, from.str()};
  }
  visitor.certificate = std::move(certificate);
  visitor.from = std::move(from);
  return visitor;
}

/// What a request to the TLS door may call it: the names in its certificate, and what our own
/// clients say, whom the certificate has convinced already.
std::vector<std::string> certified_hosts(const net::Tls& tls, std::uint16_t port) {
  std::vector<std::string> hosts{"zed"};
  const auto own = tls.own();
  for (const std::string& host : own ? own->hosts : std::vector<std::string>{})
    hosts.push_back(lower(host) + ":" + std::to_string(port));
  return hosts;
}

/// One write that does not wait: whoever is one too many gets a word, not a place.
void turn_away(const net::Fd& socket, std::size_t limit) {
  const std::string body =
      error_body(Error{ErrorCode::busy,
                       "the controller serves " + std::to_string(limit) + " connections already",
                       {},
                       "try again in a moment"});
  const std::string answer = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
                             "Retry-After: 1\r\nContent-Type: application/json\r\n"
                             "Content-Length: " +
                             std::to_string(body.size()) + "\r\n\r\n" + body;
  [[maybe_unused]] auto sent =
      ::send(socket.get(), answer.data(), answer.size(), MSG_DONTWAIT | net::no_signal);
}

}  // namespace

struct Server::State {
  struct DoorState {
    std::shared_ptr<Admission> admission = std::make_shared<Admission>();
    std::vector<std::weak_ptr<Session>> sessions;  ///< some may be gone
  };

  State(net::Loop& loop, ServerLimits limits, Handler handler)
      : core(std::make_shared<Core>(Core{loop, limits, std::move(handler), {}, {}, {}})) {
    tcp_door.admission->door = Door::tcp;
  }
  ~State() {
    core->handler = nullptr;
    core->enrol = nullptr;
    // close() takes the session out of the set.
    while (!core->sessions.empty())
      (*core->sessions.begin())->close();
  }

  void accept(DoorState& door, net::Fd socket) {
    Visitor visitor = visitor_of(socket.get(), door.admission->door);
    admit(door, std::move(socket), std::move(visitor));
  }

  void admit(DoorState& door, net::Fd socket, Visitor visitor) {
    auto& sessions = door.sessions;
    sessions.erase(std::remove_if(sessions.begin(), sessions.end(),
                                  [this](const std::weak_ptr<Session>& weak) {
                                    auto session = weak.lock();
                                    return !session || core->sessions.count(session.get()) == 0;
                                  }),
                   sessions.end());
    if (sessions.size() >= core->limits.connections)
      return turn_away(socket, core->limits.connections);
    sessions.push_back(start_session(core, door.admission, std::move(socket), std::move(visitor)));
  }

  std::shared_ptr<Core> core;
  DoorState socket_door;
  DoorState tcp_door;
  std::optional<net::Listener> socket_listener;
  std::optional<net::Listener> tcp_listener;
  std::optional<net::TlsGate> gate;

  Status open_tcp(net::Loop& loop, const TcpDoor& door);
};

Status Server::State::open_tcp(net::Loop& loop, const TcpDoor& door) {
  if (door.token.empty()) return fail(ErrorCode::invalid, "HTTP over TCP needs a token");
  if (door.tls) {
    net::TlsGateOptions options;
    options.peer = net::TlsPeer::may_show_certificate;
    gate.emplace(
        loop, door.tls, options,
        [this](net::Fd plain, std::optional<pki::CertificateInfo> peer, net::Endpoint from) {
          admit(tcp_door, std::move(plain), visitor_of(std::move(peer), std::move(from)));
        });
  }
  const auto exposure = door.tls ? net::Exposure::encrypted : door.exposure;
  ZED_TRY(tcp_listener, net::Listener::tcp(loop, door.endpoint, exposure, [this](net::Fd socket) {
            if (gate)
              gate->accept(std::move(socket));
            else
              accept(tcp_door, std::move(socket));
          }));
  Admission& admission = *tcp_door.admission;
  admission.token = door.token;
  admission.view_token = door.view_token;
  admission.encrypted = door.tls != nullptr;
  const std::uint16_t port = tcp_listener->endpoint().port;
  admission.hosts = own_hosts(door.endpoint.host, port);
  if (door.tls)
    for (std::string& host : certified_hosts(*door.tls, port))
      admission.hosts.push_back(std::move(host));
  core->enrol = door.enrol;
  return {};
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::open(net::Loop& loop, ServerOptions options,
                                             Handler handler) {
  auto state = std::make_unique<State>(loop, options.limits, std::move(handler));
  State* raw = state.get();
  ZED_TRY(state->socket_listener,
          net::Listener::local(loop, options.socket_path, [raw](net::Fd socket) {
            raw->accept(raw->socket_door, std::move(socket));
          }));
  if (options.tcp) ZED_CHECK(state->open_tcp(loop, *options.tcp));
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

void Server::publish(const api::FleetEvent& event) {
  auto text = std::make_shared<const std::string>(encode_event(event.number, to_value(event)));
  // A copy: one that cannot keep up leaves the set.
  const std::set<Follower*> followers = state_->core->followers;
  for (Follower* follower : followers)
    follower->push(event.number, text);
}

void Server::drop_revoked(const std::set<std::string>& serials) {
  if (state_->gate) state_->gate->drop(serials);
}

net::Endpoint Server::tcp_endpoint() const {
  return state_->tcp_listener ? state_->tcp_listener->endpoint() : net::Endpoint{};
}

std::size_t Server::connections() const {
  return state_->core->sessions.size();
}

}  // namespace zed::http
