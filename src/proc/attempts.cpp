#include "proc/attempts.hpp"

#include <signal.h>

#include <map>

#include "base/log.hpp"
#include "net/socket.hpp"
#include "proc/job_cgroup.hpp"
#include "proc/line_connection.hpp"
#include "proc/process_tree.hpp"
#include "proc/spawn.hpp"

namespace zed::proc {

using Key = std::pair<JobId, Generation>;

/// One attempt whose supervisor is (or was) alive.
struct Attempts::Watched {
  explicit Watched(net::Loop& loop) : again(loop) {}
  std::string control_socket;
  std::unique_ptr<LineConnection> connection;
  net::Timer again;  ///< of connecting, or of killing what is left
  int tries = 0;
};

struct Attempts::Core : std::enable_shared_from_this<Attempts::Core> {
  Core(net::Loop& loop_, net::WorkerPool& workers_, std::filesystem::path program_,
       std::filesystem::path folder_, AttemptHandlers handlers_)
      : loop(loop_), workers(workers_), program(std::move(program_)), folder(std::move(folder_)),
        handlers(std::move(handlers_)) {}

  void watch(const Key& key, const std::string& control_socket);
  void connect(const Key& key);
  // By value: these end the connection whose handler, and so whose captured key, called them.
  void heard(Key key, const Value& value);
  void disconnected(Key key);
  void ended(Key key, const ExitRecord& exit);
  void end_remains(const Key& key);
  AttemptFolder folder_of(const Key& key) const {
    return AttemptFolder::of(folder, key.first, key.second);
  }

  net::Loop& loop;
  net::WorkerPool& workers;
  std::filesystem::path program;
  std::filesystem::path folder;
  AttemptHandlers handlers;
  std::map<Key, Watched> watched;
};

void Attempts::Core::watch(const Key& key, const std::string& control_socket) {
  auto [entry, added] = watched.try_emplace(key, loop);
  if (!added) return;
  entry->second.control_socket = control_socket;
  connect(key);
}

void Attempts::Core::connect(const Key& key) {
  auto entry = watched.find(key);
  if (entry == watched.end()) return;
  auto socket = net::connect_unix(entry->second.control_socket);
  if (!socket) {
    disconnected(key);
    return;
  }
  // The core outlives the connection, which is inside it.
  LineConnection::Handlers events;
  events.on_value = [this, key](const Value& value) { heard(key, value); };
  events.on_garbage = [](const Error& error) {
    log_warning("a supervisor's report was not understood: " + error.describe());
  };
  events.on_closed = [this, key] { disconnected(key); };
  entry->second.connection = std::make_unique<LineConnection>(
      loop, std::move(*socket), longest_control_line, std::move(events));
}

void Attempts::Core::heard(Key key, const Value& value) {
  auto report = from_value<Report>(value);
  if (!report) {
    log_warning("a supervisor's report was not understood: " + report.error().describe());
  } else if (std::holds_alternative<StartedReport>(*report)) {
    handlers.started(key.first, key.second);
  } else if (std::holds_alternative<SetupReport>(*report)) {
    handlers.setting_up(key.first, key.second);
  } else if (auto* frozen = std::get_if<FrozenReport>(&*report)) {
    handlers.frozen(key.first, key.second, frozen->frozen);
  } else {
    ended(key, std::get<ExitedReport>(*report).exit);
  }
}

void Attempts::Core::disconnected(Key key) {
  auto entry = watched.find(key);
  if (entry == watched.end()) return;
  if (auto exit = folder_of(key).read_exit()) {
    ended(key, *exit);
    return;
  }
  auto identity = folder_of(key).read_supervisor();
  constexpr int most_tries = 50;  // 5 s: it may be just about to write its identity
  bool may_live = identity ? is_alive(*identity) : entry->second.tries < most_tries;
  if (may_live) {
    ++entry->second.tries;
    entry->second.again.start(Millis{100}, [this, key] { connect(key); });
    return;
  }
  handlers.supervisor_lost(key.first, key.second);
  end_remains(key);
}

void Attempts::Core::ended(Key key, const ExitRecord& exit) {
  if (watched.erase(key) == 0) return;
  handlers.exited(key.first, key.second, exit);
}

void Attempts::Core::end_remains(const Key& key) {
  std::vector<std::string> mark = attempt_mark(key.first, key.second);
  auto remains = std::make_shared<std::size_t>(0);
  auto kill_all = [mark, remains, folder = folder_of(key)] {
    auto pids = processes_with_environment(mark);
    for (pid_t pid : pids)
      ::kill(pid, SIGKILL);
    *remains = pids.size();
    auto path = folder.read_cgroup();
    auto group = path ? JobCgroup::find(*path) : std::nullopt;
    if (!group) return;
    // Those that shed their environment too.
    if (auto killed = group->kill(); !killed) log_warning(killed.error().describe());
    *remains += group->is_populated() ? 1 : 0;
    if (*remains == 0) group->remove();
  };
  auto then = [self = weak_from_this(), key, remains] {
    auto core = self.lock();
    if (!core) return;
    auto entry = core->watched.find(key);
    if (entry == core->watched.end()) return;
    if (*remains > 0) {
      entry->second.again.start(Millis{100}, [core = core.get(), key] { core->end_remains(key); });
      return;
    }
    ExitRecord exit;
    exit.kind = ExitRecord::Kind::supervisor_lost;
    exit.words = "its supervisor was killed";
    exit.ended = core->loop.clocks().wall;
    if (auto written = core->folder_of(key).write_exit(exit); !written) {
      log_error(written.error().describe());
      entry->second.again.start(seconds(1), [core = core.get(), key] { core->end_remains(key); });
      return;
    }
    core->ended(key, exit);
  };
  if (!workers.post(kill_all, then)) {
    auto entry = watched.find(key);
    entry->second.again.start(seconds(1), [this, key] { end_remains(key); });
  }
}

Attempts::Attempts(net::Loop& loop, net::WorkerPool& workers, std::filesystem::path program,
                   std::filesystem::path folder, AttemptHandlers handlers)
    : core_(std::make_shared<Core>(loop, workers, std::move(program), std::move(folder),
                                   std::move(handlers))) {}
Attempts::~Attempts() = default;

std::vector<env::FoundAttempt> Attempts::find() const {
  std::vector<env::FoundAttempt> found;
  for (const AttemptFolder& folder : attempt_folders(core_->folder)) {
    auto launch = folder.read_launch();
    if (!launch) continue;
    env::FoundAttempt attempt;
    attempt.launch = launch->request;
    if (auto exit = folder.read_exit()) attempt.exit = *exit;
    auto identity = folder.read_supervisor();
    attempt.supervisor_alive = !attempt.exit && identity && is_alive(*identity);
    found.push_back(std::move(attempt));
  }
  return found;
}

void Attempts::adopt(const env::FoundAttempt& found) {
  if (found.exit) return;
  Key key{found.launch.attempt.job, found.launch.attempt.generation};
  auto launch = core_->folder_of(key).read_launch();
  if (launch) core_->watch(key, launch->control_socket);
}

void Attempts::launch(Launch launch, std::function<void(Status)> done) {
  Key key{launch.request.attempt.job, launch.request.attempt.generation};
  std::string control = launch.control_socket;
  auto start = [core = core_, key, launch = std::move(launch)]() -> Status {
    AttemptFolder folder = core->folder_of(key);
    // Listening before the supervisor runs, so that connecting never races with its start.
    ZED_TRY(net::Fd listener, net::listen_unix(launch.control_socket));
    ZED_CHECK(folder.write_launch(launch));
    return spawn_leaving(core->program, {"supervise", folder.path().string()}, listener,
                         folder.path() / "supervisor.log");
  };
  auto then = [weak = std::weak_ptr<Core>(core_), key, control, done](Status started) {
    auto core = weak.lock();
    if (core && started) core->watch(key, control);
    done(std::move(started));
  };
  if (auto posted = core_->workers.run<Status>(std::move(start), std::move(then)); !posted)
    core_->loop.post([done, posted] { done(posted); });
}

Status Attempts::order(const JobId& job, const Generation& generation, const Order& order) {
  auto entry = core_->watched.find({job, generation});
  if (entry == core_->watched.end() || !entry->second.connection)
    return fail(ErrorCode::not_found,
                "no supervisor of generation " + generation.brief() + " is connected");
  return entry->second.connection->send(to_value(order));
}

void Attempts::forget(const JobId& job, const Generation& generation) {
  Key key{job, generation};
  if (core_->watched.count(key) > 0) return;
  const AttemptFolder folder = core_->folder_of(key);
  // The socket lies elsewhere, where paths are short.
  std::error_code gone;
  if (auto launch = folder.read_launch()) std::filesystem::remove(launch->control_socket, gone);
  if (gone) log_warning("remove the control socket of an attempt: " + gone.message());
  if (auto removed = folder.remove(); !removed) log_warning(removed.error().describe());
}

}  // namespace zed::proc
