#include "beam/epmd.hpp"

#include <algorithm>

#include "beam/wire.hpp"
#include "net/connection.hpp"

namespace zed::beam {
namespace {

constexpr Millis retry = seconds(5);
constexpr std::uint8_t alive2_request = 120, alive2_answer = 121, alive2_wide_answer = 118;
constexpr std::uint8_t hidden_node = 72, tcp_v4 = 0;
constexpr std::uint16_t handshake_version = 6;

std::string registration(const std::string& name, std::uint16_t port) {
  std::string body;
  put(body, alive2_request, 1);
  put(body, port, 2);
  put(body, hidden_node, 1);
  put(body, tcp_v4, 1);
  put(body, handshake_version, 2);
  put(body, handshake_version, 2);
  put(body, name.size(), 2);
  body += name;
  put(body, 0, 2);
  std::string message;
  put(message, body.size(), 2);
  return message + body;
}

}  // namespace

struct EpmdRegistration::State : std::enable_shared_from_this<EpmdRegistration::State> {
  State(net::Loop& owner, std::string short_name, std::uint16_t own_port, std::uint16_t epmd)
      : loop(owner), name(std::move(short_name)), node_port(own_port), epmd_port(epmd),
        again(owner) {}

  void attempt() {
    net::connect_tcp(loop, {"127.0.0.1", epmd_port}, {},
                     [weak = weak_from_this()](Result<net::Fd> fd) {
                       const auto self = weak.lock();
                       if (!self) return;
                       if (fd)
                         self->ask(std::move(*fd));
                       else
                         self->later();
                     });
  }

  void ask(net::Fd fd) {
    answer.clear();
    connection = net::Connection(loop, std::move(fd), kibibytes(4));
    connection.start({[this](std::span<const std::uint8_t> bytes) { read(bytes); },
                      [this](const Error&) { later(); },
                      {}});
    (void)connection.send(registration(name, node_port));
  }

  void read(std::span<const std::uint8_t> bytes) {
    if (registered) return;
    answer += string_of(bytes.first(std::min<std::size_t>(bytes.size(), 8)));
    if (answer.size() < 2) return;
    const auto text = bytes_of(answer);
    const bool known = text[0] == alive2_answer || text[0] == alive2_wide_answer;
    registered = known && text[1] == 0;
    // A refusal is usually a dead node's name that epmd has not yet forgotten.
    if (!registered) {
      connection.close();
      later();
    }
  }

  void later() {
    registered = false;
    again.start(retry, [this] { attempt(); });
  }

  net::Loop& loop;
  const std::string name;
  const std::uint16_t node_port;
  const std::uint16_t epmd_port;
  net::Timer again;
  net::Connection connection;
  std::string answer;
  bool registered = false;
};

EpmdRegistration::EpmdRegistration(net::Loop& loop, std::string short_name, std::uint16_t node_port,
                                   std::uint16_t epmd_port)
    : state_(std::make_shared<State>(loop, std::move(short_name), node_port, epmd_port)) {
  state_->attempt();
}

EpmdRegistration::~EpmdRegistration() = default;

bool EpmdRegistration::is_registered() const {
  return state_->registered;
}

}  // namespace zed::beam
