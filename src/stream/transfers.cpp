#include "stream/transfers.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "net/connection.hpp"
#include "net/listener.hpp"
#include "net/lobby.hpp"
#include "net/refusal_log.hpp"
#include "net/socket.hpp"
#include "stream/relay.hpp"

namespace zed::stream {
namespace {

constexpr Millis redial_after = Millis{500};
constexpr Millis progress_every = Millis{500};
constexpr Millis hello_within = seconds(5);
constexpr std::size_t most_strangers = 64;  ///< connections that have not said hello yet
constexpr std::size_t longest_opening = std::size_t{256} << 10;  ///< hello and what follows at once

/// Shared by the loop and the transfer's thread.
struct Running {
  Running(net::Connection::Released connection, Millis silence, std::string already_read)
      : socket(std::move(connection.socket), silence, std::move(connection.tls),
               std::move(already_read)) {}

  void cancel() {
    {
      std::lock_guard lock(mutex);
      cancelled = true;
    }
    changed.notify_all();
    socket.stop();
  }
  bool is_cancelled() {
    std::lock_guard lock(mutex);
    return cancelled;
  }
  /// Waits; false if cancelled meanwhile.
  bool pause(Millis wait) {
    std::unique_lock lock(mutex);
    return !changed.wait_for(lock, std::chrono::milliseconds(wait.value),
                             [this] { return cancelled; });
  }

  FrameSocket socket;
  std::mutex mutex;
  std::condition_variable changed;
  bool cancelled = false;
  std::thread thread;
};

/// Whose certificate the other end must show.
std::string other_end(const TransferRequest& request) {
  return "zed@" + (request.sends ? request.ticket.target : request.ticket.source).str();
}

/// Whether this is the transfer's other end that says so.
bool is_end_of(const TransferRequest& request, const StreamHello& hello) {
  return request.ticket.id == hello.ticket && request.sends == (hello.end == End::receiver);
}

bool dials_first(const TransferRequest& request) {
  return request.sends == request.ticket.source_dials;
}

/// Rate over the time between two reports.
class ProgressMeter {
public:
  /// True if it is time to report; then `rate` is bytes per second since the last report.
  bool due(Bytes done, Bytes& rate) {
    auto now = std::chrono::steady_clock::now();
    auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now - last_time_).count();
    if (passed < progress_every.value) return false;
    rate = Bytes{(done - last_done_).value * 1000 / passed};
    last_time_ = now;
    last_done_ = done;
    return true;
  }

private:
  std::chrono::steady_clock::time_point last_time_ = std::chrono::steady_clock::now();
  Bytes last_done_;
};

}  // namespace

struct Transfers::Core : std::enable_shared_from_this<Transfers::Core> {
  /// A transfer that waits for its turn, for the other end, or runs.
  struct Entry {
    explicit Entry(net::Loop& loop) : dial_timer(loop), meeting_timer(loop) {}
    TransferRequest request;
    bool begun = false;    ///< has had its turn
    bool dialled = false;  ///< runs on a connection that this end made
    net::Timer dial_timer;
    net::Timer meeting_timer;
    std::shared_ptr<Running> running;
    std::shared_ptr<Passing> passing;  ///< with the other half of a chain through this node
  };
  /// A connection that has not shown its ticket.
  struct Stranger {
    explicit Stranger(net::Loop& loop) : limit(loop) {}
    net::Connection connection;
    net::Timer limit;
    std::string node;   ///< by its certificate; empty without TLS
    std::string words;  ///< so far
    bool greets = false;
    std::optional<StreamHello> hello;  ///< it has shown a ticket that is not expected yet
  };

  Core(net::Loop& loop_, env::Store& store_, TransferOptions options_, TransferHandlers handlers_)
      : loop(loop_), store(store_), options(std::move(options_)), handlers(std::move(handlers_)),
        refusals(loop_) {}

  void begin_next();
  void begin(Entry& entry);
  void await(Entry& entry);
  void dial(const StepId& step);
  void dialled(const StepId& step, net::Fd socket);
  void accept(net::Fd socket);
  void heard(net::Lobby::Id id, std::span<const std::uint8_t> bytes);
  void greeted(net::Lobby::Id id);
  void meet(Entry& entry, net::Lobby::Id id);
  void forget(net::Lobby::Id id);
  Entry* expected(const StreamHello& hello, const std::string& node);
  void run(Entry& entry, net::Connection::Released connection, std::string already_read,
           std::optional<StreamHello> hello);
  bool has_precedence(const StreamHello& hello) const;
  void finished(const StepId& step, Result<Outcome> result);
  void end(const StepId& step, Result<Outcome> result);
  std::shared_ptr<Passing> passing_of(const TransferRequest& request);
  static void leave_chain(const Entry& entry, const Error& why);
  std::size_t begun_count() const;
  net::Exposure exposure() const {
    return options.tls ? net::Exposure::encrypted : options.exposure;
  }

  net::Loop& loop;
  env::Store& store;
  TransferOptions options;
  TransferHandlers handlers;
  net::RefusalLog refusals;
  std::optional<net::Listener> listener;
  std::map<StepId, Entry> entries;
  std::map<TransferId, std::weak_ptr<Passing>> passings;  ///< by the ticket of what is sent
  std::deque<StepId> waiting;
  std::map<net::Lobby::Id, std::unique_ptr<Stranger>> strangers;
  net::Lobby lobby{most_strangers};
  net::Lobby::Id next_stranger = 0;
};

std::size_t Transfers::Core::begun_count() const {
  std::size_t count = 0;
  for (const auto& entry : entries)
    count += entry.second.begun ? 1 : 0;
  return count;
}

void Transfers::Core::begin_next() {
  while (!waiting.empty() && begun_count() < options.most_at_once) {
    auto entry = entries.find(waiting.front());
    waiting.pop_front();
    if (entry != entries.end()) begin(entry->second);
  }
}

void Transfers::Core::begin(Entry& entry) {
  entry.begun = true;
  await(entry);
  if (entry.running) return;
  entry.dial_timer.start(dials_first(entry.request) ? Millis{0} : options.second_dials_after,
                         [this, step = entry.request.step] { dial(step); });
}

void Transfers::Core::await(Entry& entry) {
  // The other end may have been faster.
  for (const auto& [id, stranger] : strangers)
    if (stranger->hello && expected(*stranger->hello, stranger->node) == &entry)
      return meet(entry, id);
  StepId step = entry.request.step;
  entry.meeting_timer.start(options.meeting, [this, step] {
    end(step, fail(ErrorCode::unavailable, "the other end of the transfer did not come",
                   "it may be behind a firewall that lets neither end dial"));
  });
}

void Transfers::Core::dial(const StepId& step) {
  auto entry = entries.find(step);
  if (entry == entries.end() || entry->second.running) return;
  const Ticket& ticket = entry->second.request.ticket;
  auto address = net::Endpoint::parse(entry->second.request.sends ? ticket.target_address
                                                                  : ticket.source_address);
  auto again = [this, step](const Error& error) {
    auto found = entries.find(step);
    if (found == entries.end() || found->second.running) return;
    if (error.code == ErrorCode::refused) {
      end(step, fail(error));
      return;
    }
    found->second.dial_timer.start(redial_after, [this, step] { dial(step); });
  };
  if (!address) {
    again(address.error());
    return;
  }
  net::ConnectOptions connect;
  connect.exposure = exposure();
  net::connect_tcp(loop, *address, connect,
                   [weak = weak_from_this(), step, again](Result<net::Fd> socket) {
                     auto core = weak.lock();
                     if (!core) return;
                     if (socket)
                       core->dialled(step, std::move(*socket));
                     else
                       again(socket.error());
                   });
}

void Transfers::Core::dialled(const StepId& step, net::Fd socket) {
  auto entry = entries.find(step);
  if (entry == entries.end() || entry->second.running) return;
  StreamHello hello{entry->second.request.sends ? End::sender : End::receiver,
                    entry->second.request.ticket.id};
  net::Connection::Released connection{std::move(socket), std::nullopt};
  if (options.tls) connection.tls.emplace(options.tls, net::TlsSide::client);
  entry->second.dialled = true;
  run(entry->second, std::move(connection), "", hello);
}

void Transfers::Core::accept(net::Fd socket) {
  const net::Lobby::Id id = ++next_stranger;
  const auto from = net::peer_endpoint(socket.get()).value_or(net::Endpoint{});
  if (const auto out = lobby.enter(id, from.host)) strangers.erase(*out);
  Stranger& stranger = *strangers.emplace(id, std::make_unique<Stranger>(loop)).first->second;
  stranger.limit.start(hello_within, [this, id] { forget(id); });
  auto check = [&stranger](const pki::CertificateInfo* peer) -> Status {
    if (peer != nullptr) stranger.node = peer->identity.node;
    return {};
  };
  const Bytes queue = kibibytes(64);
  stranger.connection =
      options.tls
          ? net::Connection(loop, std::move(socket),
                            net::TlsEnd{options.tls, net::TlsSide::server, {}, check}, queue)
          : net::Connection(loop, std::move(socket), queue);
  stranger.connection.start({[this, id](std::span<const std::uint8_t> bytes) { heard(id, bytes); },
                             [this, id](const Error& why) {
                               if (why.code == ErrorCode::refused)
                                 refusals.add("data connection refused: " + why.describe());
                               forget(id);
                             },
                             {}});
}

void Transfers::Core::forget(net::Lobby::Id id) {
  lobby.leave(id);
  strangers.erase(id);
}

void Transfers::Core::heard(net::Lobby::Id id, std::span<const std::uint8_t> bytes) {
  auto found = strangers.find(id);
  if (found == strangers.end()) return;
  Stranger& stranger = *found->second;
  stranger.words.append(bytes.begin(), bytes.end());
  if (stranger.words.size() > longest_opening) {
    forget(id);
    return;
  }
  if (stranger.words.size() < hello_size || std::exchange(stranger.greets, true)) return;
  // In a turn of its own: what came with the hello is still being handed over.
  stranger.connection.pause();
  loop.post([weak = weak_from_this(), id] {
    if (auto core = weak.lock()) core->greeted(id);
  });
}

Transfers::Core::Entry* Transfers::Core::expected(const StreamHello& hello,
                                                  const std::string& node) {
  for (auto& item : entries) {
    Entry& entry = item.second;
    if (!is_end_of(entry.request, hello) || entry.running || !entry.begun) continue;
    return !options.tls || node == other_end(entry.request) ? &entry : nullptr;
  }
  return nullptr;
}

void Transfers::Core::greeted(net::Lobby::Id id) {
  auto found = strangers.find(id);
  if (found == strangers.end()) return;
  Stranger& stranger = *found->second;
  auto hello = decode_hello(std::as_bytes(std::span(stranger.words)).first(hello_size));
  if (!hello) {
    refusals.add("data connection refused: " + hello.error().describe());
    return forget(id);
  }
  if (Entry* entry = expected(*hello, stranger.node)) return meet(*entry, id);
  if (has_precedence(*hello)) return forget(id);
  // Both ends are told at once, and each has to look and to hold what it needs first: this one may
  // be the slower. A store that waits for its disk takes seconds.
  stranger.hello = *hello;
  stranger.limit.start(options.meeting, [this, id] {
    refusals.add("data connection refused: it shows no ticket that is expected here");
    forget(id);
  });
}

/// Both ends have dialled, each runs on its own connection and would wait there for the other: the
/// one of the end that dials first counts, the other end is sent away and yields to it.
bool Transfers::Core::has_precedence(const StreamHello& hello) const {
  return std::any_of(entries.begin(), entries.end(), [&hello](const auto& item) {
    const Entry& entry = item.second;
    return is_end_of(entry.request, hello) && entry.running && entry.dialled &&
           dials_first(entry.request);
  });
}

/// A stranger is the other end of that transfer.
void Transfers::Core::meet(Entry& entry, net::Lobby::Id id) {
  const auto stranger = std::move(strangers.at(id));
  forget(id);
  auto released = stranger->connection.release();
  if (released) run(entry, std::move(*released), stranger->words.substr(hello_size), std::nullopt);
}

void Transfers::Core::run(Entry& entry, net::Connection::Released connection,
                          std::string already_read, std::optional<StreamHello> hello) {
  entry.dial_timer.cancel();
  entry.meeting_timer.cancel();
  entry.running =
      std::make_shared<Running>(std::move(connection), options.silence, std::move(already_read));
  auto work = [weak = weak_from_this(), &shared_loop = loop, &shared_store = store,
               request = entry.request, running = entry.running, passing = entry.passing, hello] {
    ProgressMeter meter;
    ReportProgress report = [&](Bytes done, Bytes total) {
      Bytes rate;
      if (!meter.due(done, rate)) return;
      shared_loop.post([weak, step = request.step, done, total, rate] {
        if (auto core = weak.lock()) core->handlers.progressed(step, done, total, rate);
      });
    };
    Pause pause = [&](Millis wait) { return running->pause(wait); };
    auto transfer = [&]() -> Result<Outcome> {
      if (hello) ZED_CHECK(running->socket.introduce(*hello, other_end(request)));
      FrameSocket& socket = running->socket;
      if (!request.sends)
        return receive_snapshot(shared_store, request, socket, report, passing.get());
      return passing ? pass_on(*passing, request.ticket, socket, report, pause)
                     : send_snapshot(shared_store, request.ticket, socket, report, pause);
    };
    auto result = transfer();
    shared_loop.post([weak, step = request.step, result = std::move(result)]() mutable {
      if (auto core = weak.lock()) core->finished(step, std::move(result));
    });
  };
  entry.running->thread = std::thread(std::move(work));
}

void Transfers::Core::finished(const StepId& step, Result<Outcome> result) {
  auto found = entries.find(step);
  if (found == entries.end()) return;
  Entry& entry = found->second;
  entry.running->thread.join();
  const bool sent_away = !result && entry.dialled && !dials_first(entry.request) &&
                         !entry.running->socket.has_heard() && !entry.running->is_cancelled();
  if (sent_away) {
    entry.dialled = false;
    entry.running.reset();
    return await(entry);
  }
  end(step, std::move(result));
}

/// The relay point of a transfer that belongs to a chain through this node, whichever of its two
/// halves comes first; none for any other.
std::shared_ptr<Passing> Transfers::Core::passing_of(const TransferRequest& request) {
  std::erase_if(passings, [](const auto& item) { return item.second.expired(); });
  if (request.sends ? !request.through : !request.passes_to) return nullptr;
  auto& known = passings[request.sends ? request.ticket.id : *request.passes_to];
  auto passing = known.lock();
  if (!passing) known = passing = std::make_shared<Passing>(options.passing);
  if (!request.sends) passing->expect();
  return passing;
}

void Transfers::Core::leave_chain(const Entry& entry, const Error& why) {
  if (!entry.passing) return;
  if (entry.request.sends)
    entry.passing->leave();
  else
    entry.passing->fail(why);
}

void Transfers::Core::end(const StepId& step, Result<Outcome> result) {
  auto entry = entries.find(step);
  if (entry == entries.end()) return;
  leave_chain(entry->second,
              result ? Error{ErrorCode::unavailable, "it is over", {}, {}} : result.error());
  entries.erase(entry);
  handlers.ended(step, std::move(result));
  begin_next();
}

Transfers::Transfers(std::shared_ptr<Core> core) : core_(std::move(core)) {}

Transfers::~Transfers() {
  for (auto& item : core_->entries) {
    if (!item.second.running) continue;
    Core::leave_chain(item.second, {ErrorCode::cancelled, "the agent ends", {}, {}});
    item.second.running->cancel();
    item.second.running->thread.join();
  }
}

Result<std::unique_ptr<Transfers>> Transfers::open(net::Loop& loop, env::Store& store,
                                                   TransferOptions options,
                                                   TransferHandlers handlers) {
  auto core = std::make_shared<Core>(loop, store, std::move(options), std::move(handlers));
  ZED_TRY(auto listener, net::Listener::tcp(loop, core->options.listen, core->exposure(),
                                            [weak = std::weak_ptr<Core>(core)](net::Fd fd) {
                                              if (auto self = weak.lock())
                                                self->accept(std::move(fd));
                                            }));
  core->listener.emplace(std::move(listener));
  return std::unique_ptr<Transfers>(new Transfers(std::move(core)));
}

net::Endpoint Transfers::endpoint() const {
  return core_->listener->endpoint();
}

void Transfers::start(TransferRequest request) {
  StepId step = request.step;
  auto [entry, added] = core_->entries.try_emplace(step, core_->loop);
  if (!added) return;
  entry->second.passing = core_->passing_of(request);
  entry->second.request = std::move(request);
  core_->waiting.push_back(step);
  core_->begin_next();
}

void Transfers::cancel(const StepId& step) {
  auto entry = core_->entries.find(step);
  if (entry == core_->entries.end()) return;
  const Error why{ErrorCode::cancelled, "the transfer was cancelled", {}, {}};
  Core::leave_chain(entry->second, why);
  if (entry->second.running)
    entry->second.running->cancel();
  else
    core_->end(step, fail(why));
}

}  // namespace zed::stream
