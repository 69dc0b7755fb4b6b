#include "http/server.hpp"

#include <algorithm>

#include <sys/socket.h>
#include <unistd.h>

#include "base/describe.hpp"
#include "base/log.hpp"
#include "http/session.hpp"
#include "http/status.hpp"
#include "net/listener.hpp"
#include "net/socket.hpp"

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
      ::send(socket.get(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

struct Server::State {
  struct DoorState {
    std::shared_ptr<Admission> admission = std::make_shared<Admission>();
    std::vector<std::weak_ptr<Session>> sessions;  ///< some may be gone
  };

  State(net::Loop& loop, ServerLimits limits, Handler handler)
      : core(std::make_shared<Core>(Core{loop, limits, std::move(handler), {}, {}})) {
    tcp_door.admission->door = Door::tcp;
  }
  ~State() {
    core->handler = nullptr;
    // close() takes the session out of the set.
    while (!core->sessions.empty())
      (*core->sessions.begin())->close();
  }

  void accept(DoorState& door, net::Fd socket) {
    auto& sessions = door.sessions;
    sessions.erase(std::remove_if(sessions.begin(), sessions.end(),
                                  [this](const std::weak_ptr<Session>& weak) {
                                    auto session = weak.lock();
                                    return !session || core->sessions.count(session.get()) == 0;
                                  }),
                   sessions.end());
    if (sessions.size() >= core->limits.connections)
      return turn_away(socket, core->limits.connections);
    Visitor visitor = visitor_of(socket.get(), door.admission->door);
    sessions.push_back(start_session(core, door.admission, std::move(socket), std::move(visitor)));
  }

  std::shared_ptr<Core> core;
  DoorState socket_door;
  DoorState tcp_door;
  std::optional<net::Listener> socket_listener;
  std::optional<net::Listener> tcp_listener;
};

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
  if (options.tcp) {
    if (options.tcp->token.empty()) return fail(ErrorCode::invalid, "HTTP over TCP needs a token");
    ZED_TRY(state->tcp_listener, net::Listener::tcp(loop, options.tcp->endpoint,
                                                    options.tcp->exposure, [raw](net::Fd socket) {
                                                      raw->accept(raw->tcp_door, std::move(socket));
                                                    }));
    Admission& admission = *state->tcp_door.admission;
    admission.token = options.tcp->token;
    admission.hosts = own_hosts(options.tcp->endpoint.host, state->tcp_listener->endpoint().port);
  }
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

void Server::publish(const api::FleetEvent& event) {
  auto text = std::make_shared<const std::string>(encode_event(event.number, to_value(event)));
  // A copy: one that cannot keep up leaves the set.
  const std::set<Session*> followers = state_->core->followers;
  for (Session* follower : followers)
    follower->push(event.number, text);
}

net::Endpoint Server::tcp_endpoint() const {
  return state_->tcp_listener ? state_->tcp_listener->endpoint() : net::Endpoint{};
}

std::size_t Server::connections() const {
  return state_->core->sessions.size();
}

}  // namespace zed::http
