#include "net/tls_gate.hpp"

#include <array>
#include <cerrno>
#include <map>

#include <sys/socket.h>

#include "net/lobby.hpp"
#include "net/refusal_log.hpp"
#include "net/socket.hpp"
#include "net/system.hpp"

namespace zed::net {
namespace {

/// Beyond it the side that sends is not read any more until the other has taken some.
constexpr std::int64_t high_water = 256 << 10;

Result<std::array<Fd, 2>> socket_pair() {
  std::array<int, 2> ends{};
#ifdef SOCK_CLOEXEC
  constexpr int kind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
#else
  constexpr int kind = SOCK_STREAM;
#endif
  if (::socketpair(AF_UNIX, kind, 0, ends.data()) != 0)
    return fail(system_error(errno, "make a socket pair"));
  for (int end : ends)
    quiet(end);
  return std::array<Fd, 2>{Fd(ends[0]), Fd(ends[1])};
}

}  // namespace

struct TlsGate::State : std::enable_shared_from_this<TlsGate::State> {
  struct Passage {
    explicit Passage(Loop& loop) : limit(loop) {}
    Connection outer;  ///< TLS
    Connection inner;  ///< the plain end that was kept
    Timer limit;       ///< of the handshake
    Endpoint from;
    std::optional<pki::CertificateInfo> peer;
    bool open = false;
  };
  using Id = Lobby::Id;

  State(Loop& owner, std::shared_ptr<const Tls> ours, TlsGateOptions how, OnOpen then)
      : loop(owner), tls(std::move(ours)), options(how), on_open(std::move(then)), refusals(owner),
        strangers(options.most_strangers) {}

  void accept(Fd socket) {
    if (passages.size() - strangers.size() >= options.most_open) return;
    const Id id = ++last;
    auto passage = std::make_unique<Passage>(loop);
    passage->from = peer_endpoint(socket.get()).value_or(Endpoint{});
    if (const auto out = strangers.enter(id, passage->from.host)) passages.erase(*out);
    TlsEnd end{tls, TlsSide::server, options.peer,
               [this, id](const pki::CertificateInfo* peer) { return opened(id, peer); }};
    passage->outer = Connection(loop, std::move(socket), std::move(end));
    passage->limit.start(options.handshake, [this, id] { forget(id); });
    Passage& started = *passage;
    passages.emplace(id, std::move(passage));
    started.outer.start({[this, id](std::span<const std::uint8_t> bytes) {
                           if (Passage* p = find(id)) pass(bytes, p->outer, p->inner);
                         },
                         [this, id](const Error& why) { outer_closed(id, why); },
                         [this, id] {
                           if (Passage* p = find(id)) p->inner.resume();
                         }});
  }

  Status opened(Id id, const pki::CertificateInfo* peer) {
    Passage* passage = find(id);
    if (passage == nullptr) return fail(ErrorCode::cancelled, "the gate has closed");
    ZED_TRY(auto ends, socket_pair());
    passage->open = true;
    passage->limit.cancel();
    if (peer != nullptr) {
      passage->peer = *peer;
      strangers.leave(id);
    }
    passage->inner = Connection(loop, std::move(ends[0]));
    passage->inner.start({[this, id](std::span<const std::uint8_t> bytes) {
                            if (Passage* p = find(id)) pass(bytes, p->inner, p->outer);
                          },
                          [this, id](const Error&) { inner_closed(id); },
                          [this, id] {
                            if (Passage* p = find(id)) p->outer.resume();
                          }});
    const OnOpen call = on_open;
    call(std::move(ends[1]), peer == nullptr ? std::nullopt : std::optional(*peer), passage->from);
    return {};
  }

  static void pass(std::span<const std::uint8_t> bytes, Connection& from, Connection& to) {
    // What does not fit into 8 MiB beyond the high water is more than one read can bring.
    (void)to.send(std::string(bytes.begin(), bytes.end()));
    if (to.queued().value > high_water) from.pause();
  }

  void outer_closed(Id id, const Error& why) {
    Passage* passage = find(id);
    if (passage == nullptr) return;
    if (!passage->open && why.code != ErrorCode::unavailable)
      refusals.add("connection from " + passage->from.str() + " refused: " + why.describe());
    passage->inner.finish();
    forget_later(id);
  }

  void inner_closed(Id id) {
    Passage* passage = find(id);
    if (passage == nullptr) return;
    passage->outer.finish();
    forget_later(id);
  }

  /// Not from inside a handler of the passage's own connections.
  void forget_later(Id id) {
    loop.post([weak = weak_from_this(), id] {
      if (auto self = weak.lock()) self->forget(id);
    });
  }

  void forget(Id id) {
    strangers.leave(id);
    passages.erase(id);
  }

  Passage* find(Id id) {
    const auto found = passages.find(id);
    return found == passages.end() ? nullptr : found->second.get();
  }

  Loop& loop;
  std::shared_ptr<const Tls> tls;
  TlsGateOptions options;
  OnOpen on_open;
  RefusalLog refusals;
  std::map<Id, std::unique_ptr<Passage>> passages;
  Lobby strangers;
  Id last = 0;
};

TlsGate::TlsGate(Loop& loop, std::shared_ptr<const Tls> tls, TlsGateOptions options, OnOpen on_open)
    : state_(std::make_shared<State>(loop, std::move(tls), options, std::move(on_open))) {}
TlsGate::~TlsGate() {
  state_->passages.clear();
}

void TlsGate::accept(Fd socket) {
  state_->accept(std::move(socket));
}

void TlsGate::drop(const std::set<std::string>& serials) {
  for (auto entry = state_->passages.begin(); entry != state_->passages.end();)
    entry = entry->second->peer && pki::is_revoked(*entry->second->peer, serials)
                ? state_->passages.erase(entry)
                : std::next(entry);
}

}  // namespace zed::net
