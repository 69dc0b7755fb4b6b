#include "proc/supervisor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <list>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "net/exec.hpp"
#include "net/fd.hpp"
#include "net/system.hpp"
#include "proc/children.hpp"
#include "proc/control.hpp"
#include "proc/exit_words.hpp"
#include "proc/job_cgroup.hpp"
#include "proc/job_log.hpp"
#include "proc/process_tree.hpp"
#include "proc/setup_folder.hpp"
#include "proc/spawn.hpp"
#include "proc/start_child.hpp"

namespace zed::proc {
namespace {

using net::Fd;
using net::system_error;

/// One connected agent.
struct Client {
  Fd socket;
  std::string received;
};

class Supervisor {
public:
  Supervisor(AttemptFolder folder, Launch launch, JobLogWriter log)
      : folder_(std::move(folder)), launch_(std::move(launch)), log_(std::move(log)),
        control_(inherited_control_fd) {}

  int run();

private:
  /// What this attempt is at.
  enum class Stage {
    turn,   ///< waits until no other attempt runs the same setup
    setup,  ///< the job's first process is its setup
    job,
  };

  Status begin();
  Status go_on();
  Status begin_setup();
  Status end_setup();
  Status start_job();
  Status start(std::vector<std::string> argv);
  Status watch_signals();
  void wait_for_something();
  void read_output(Fd& pipe, LogSource source);
  void accept_client();
  void say_where_it_stands();
  void read_client(Client& client);
  void obey(const Order& order);
  void freeze(bool frozen);
  void begin_stop(ExitRecord::Kind kind, std::string why);
  void keep_deadlines();
  void reap();
  bool program_is_over() const { return first_status_.has_value() && !has_children_; }
  bool is_over() const;
  ExitRecord how_it_ended() const;
  void drain_output();
  int timeout_ms() const;
  int finish(ExitRecord exit);
  void tell_all(const Report& report);
  void make_cgroup();
  void signal_all(int signal) const;
  long memory_kills() const;
  void say(const std::string& text) {
    // A full disk must not end the job: its log loses lines, nothing else.
    (void)log_.append(LogSource::zed, text + "\n", wall_now());
  }

  AttemptFolder folder_;
  Launch launch_;
  JobLogWriter log_;
  Fd control_;
  SignalWatch signals_;
  Fd output_;
  Fd error_;
  std::list<Client> clients_;
  Stage stage_ = Stage::job;
  std::optional<SetupTurn> setup_;
  pid_t job_ = -1;
  Instant started_;
  std::optional<int> first_status_;  ///< of the job's first process
  bool has_children_ = false;
  std::optional<ExitRecord::Kind> stopping_;  ///< what our order makes of the end
  std::optional<Instant> kill_at_;
  std::optional<Instant> lease_until_;
  std::optional<Instant> time_out_at_;
  std::optional<Instant> setup_until_;
  long memory_kills_before_ = 0;
  std::optional<JobCgroup> cgroup_;
};

void Supervisor::make_cgroup() {
  cgroup_ = JobCgroup::make(folder_.path().filename().string());
  if (!cgroup_) return;
  // Without this word the agent could not end what is in it if we are killed.
  if (folder_.write_cgroup(cgroup_->path())) return;
  cgroup_->remove();
  cgroup_.reset();
}

void Supervisor::signal_all(int signal) const {
  if (signal == SIGKILL && cgroup_) (void)cgroup_->kill();
  signal_descendants(signal);
}

long Supervisor::memory_kills() const {
  auto counted = cgroup_ ? cgroup_->out_of_memory_kills() : std::nullopt;
  return counted ? *counted : out_of_memory_kills();
}

Status Supervisor::watch_signals() {
  ::signal(SIGPIPE, SIG_IGN);
  return signals_.open({SIGCHLD, SIGTERM, SIGINT, SIGHUP});
}

Status Supervisor::begin() {
  if (launch_.request.lease) lease_until_ = net::clock_through_sleep() + *launch_.request.lease;
  make_cgroup();
  if (!launch_.request.setup) return start_job();
  ZED_TRY(setup_, SetupTurn::open(launch_));
  stage_ = Stage::turn;
  ZED_CHECK(go_on());
  if (stage_ == Stage::turn) say("zed: waits for the same setup, which another job does here");
  return {};
}

/// From one stage to the next, as far as it can now.
Status Supervisor::go_on() {
  if (stopping_) return {};
  if (stage_ == Stage::turn && setup_->is_done()) {
    say("zed: setup was done before on this node: " + launch_.request.setup->command);
    return start_job();
  }
  if (stage_ == Stage::turn && setup_->take()) return begin_setup();
  if (stage_ == Stage::setup && program_is_over() && *first_status_ == 0) return end_setup();
  return {};
}

Status Supervisor::begin_setup() {
  // Another attempt may have done it between our look and our turn.
  if (setup_->is_done()) return go_on();
  say("zed: setup: " + launch_.request.setup->command);
  setup_->begin();
  stage_ = Stage::setup;
  setup_until_ = net::clock_through_sleep() + launch_.request.setup->timeout;
  return start({"/bin/sh", "-c", launch_.request.setup->command});
}

Status Supervisor::end_setup() {
  drain_output();
  if (auto kept = setup_->finish(); !kept)
    say("zed: setup will run again at the next start: " + kept.error().describe());
  kill_at_.reset();
  return start_job();
}

Status Supervisor::start_job() {
  stage_ = Stage::job;
  setup_until_.reset();
  if (setup_) setup_->leave();
  ZED_CHECK(start(launch_.request.argv));
  if (launch_.request.time_left) time_out_at_ = started_ + *launch_.request.time_left;
  if (setup_) say_where_it_stands();  // else nobody can have connected yet
  return {};
}

Status Supervisor::start(std::vector<std::string> argv) {
  ZED_TRY(net::Pipe output, net::make_pipe());
  ZED_TRY(net::Pipe error, net::make_pipe());
  Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return fail(system_error(errno, "open /dev/null"));
  memory_kills_before_ = memory_kills();
  const int cgroup = cgroup_ ? cgroup_->join_descriptor() : -1;
  auto join_groups = [cgroup] {
    ::setpgid(0, 0);
    return cgroup < 0 || ::write(cgroup, "0", 1) == 1;
  };
  first_status_.reset();
  ZED_TRY(job_, start_child(launch_, {std::move(argv), environment_words(launch_), null,
                                      output.write, error.write, join_groups}));
  has_children_ = true;
  started_ = net::clock_through_sleep();
  output_ = std::move(output.read);
  error_ = std::move(error.read);
  for (Fd* pipe : {&output_, &error_})
    ::fcntl(pipe->get(), F_SETFL, O_NONBLOCK);
  return {};
}

bool Supervisor::is_over() const {
  if (stage_ == Stage::turn) return stopping_.has_value();
  return program_is_over();
}

/// Of the whole attempt. A setup that fails is the job's own failure, and no running time of it.
ExitRecord Supervisor::how_it_ended() const {
  if (stage_ == Stage::turn) {
    ExitRecord exit;
    exit.kind = *stopping_;
    exit.words = "stopped before its setup";
    return exit;
  }
  const bool out_of_memory = memory_kills() > memory_kills_before_;
  ExitRecord exit = exit_record_of(*first_status_, stopping_, out_of_memory);
  if (stage_ == Stage::job)
    exit.ran = net::clock_through_sleep() - started_;
  else
    exit.words = "setup: " + exit.words;
  return exit;
}

int Supervisor::timeout_ms() const {
  std::optional<Instant> next;
  for (const auto& deadline : {kill_at_, lease_until_, time_out_at_, setup_until_})
    if (deadline && (!next || *deadline < *next)) next = deadline;
  if (!next) return -1;
  // Nobody tells when the turn is ours.
  const std::int64_t longest = stage_ == Stage::turn ? 200 : 60'000;
  return static_cast<int>(
      std::clamp<std::int64_t>((*next - net::clock_through_sleep()).value, 0, longest));
}

void Supervisor::wait_for_something() {
  std::vector<pollfd> watched{{signals_.descriptor(), POLLIN, 0},
                              {control_.get(), POLLIN, 0},
                              {output_ ? output_.get() : -1, POLLIN, 0},
                              {error_ ? error_.get() : -1, POLLIN, 0}};
  for (const Client& client : clients_)
    watched.push_back({client.socket.get(), POLLIN, 0});
  if (::poll(watched.data(), watched.size(), timeout_ms()) < 0) return;
  std::size_t index = 4;
  for (auto client = clients_.begin(); client != clients_.end(); ++index) {
    if (watched[index].revents != 0) read_client(*client);
    client = client->socket ? std::next(client) : clients_.erase(client);
  }
  if (watched[2].revents != 0) read_output(output_, LogSource::output);
  if (watched[3].revents != 0) read_output(error_, LogSource::error);
  if (watched[1].revents != 0) accept_client();
  if (watched[0].revents != 0) reap();
}

void Supervisor::read_output(Fd& pipe, LogSource source) {
  if (!pipe) return;
  std::array<char, 65536> buffer{};
  ssize_t n = ::read(pipe.get(), buffer.data(), buffer.size());
  if (n > 0)
    (void)log_.append(source, {buffer.data(), static_cast<std::size_t>(n)}, wall_now());
  else if (n == 0 || (errno != EAGAIN && errno != EINTR))
    pipe.reset();
}

void Supervisor::accept_client() {
  constexpr std::size_t most_clients = 8;
  Fd socket = net::accept_now(control_.get());
  if (!socket || clients_.size() >= most_clients) return;
  clients_.push_back({std::move(socket), {}});
  say_where_it_stands();
}

void Supervisor::say_where_it_stands() {
  if (stage_ != Stage::job)
    tell_all(SetupReport{});
  else if (job_ > 0)
    tell_all(StartedReport{job_});
}

void Supervisor::read_client(Client& client) {
  std::array<char, 4096> buffer{};
  ssize_t n = ::read(client.socket.get(), buffer.data(), buffer.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0 || client.received.size() > longest_control_line) {
    client.socket.reset();
    return;
  }
  client.received.append(buffer.data(), static_cast<std::size_t>(n));
  for (std::size_t end; (end = client.received.find('\n')) != std::string::npos;) {
    auto value = parse_json(client.received.substr(0, end));
    client.received.erase(0, end + 1);
    auto order = value ? from_value<Order>(*value) : Result<Order>(fail(value.error()));
    if (order)
      obey(*order);
    else
      log_warning("order not understood: " + order.error().describe());
  }
}

void Supervisor::obey(const Order& order) {
  if (auto* stop = std::get_if<StopOrder>(&order)) {
    auto kind =
        stop->mode == StopMode::cancel ? ExitRecord::Kind::cancelled : ExitRecord::Kind::stopped;
    begin_stop(kind, std::string(to_string(stop->mode)) + " asked for");
  } else if (auto* freeze = std::get_if<FreezeOrder>(&order)) {
    this->freeze(freeze->frozen);
  } else if (auto* lease = std::get_if<LeaseOrder>(&order)) {
    if (lease_until_) lease_until_ = net::clock_through_sleep() + lease->lease;
  }
}

void Supervisor::freeze(bool frozen) {
  // What is forked between the look and the signal is met in the next round.
  constexpr int most_rounds = 200;
  for (int round = 0; round < most_rounds; ++round) {
    signal_descendants(frozen ? SIGSTOP : SIGCONT);
    if (!frozen || are_descendants_stopped()) break;
    ::poll(nullptr, 0, 1);
  }
  tell_all(FrozenReport{frozen});
}

void Supervisor::begin_stop(ExitRecord::Kind kind, std::string why) {
  // A success that is already there is not turned into a stop.
  if (first_status_ && stage_ == Stage::job) return;
  if (!stopping_) {
    stopping_ = kind;
    say("zed: stopping: " + why);
  }
  if (kind == ExitRecord::Kind::cancelled) stopping_ = kind;
  signal_descendants(SIGTERM);
  signal_descendants(SIGCONT);  // a frozen process acts on no signal but SIGKILL
  if (!kill_at_) kill_at_ = net::clock_through_sleep() + launch_.request.grace;
}

void Supervisor::keep_deadlines() {
  Instant now = net::clock_through_sleep();
  if (time_out_at_ && now >= *time_out_at_) {
    time_out_at_.reset();
    begin_stop(ExitRecord::Kind::timed_out, "the job's time limit is over");
  }
  if (setup_until_ && now >= *setup_until_) {
    setup_until_.reset();
    begin_stop(ExitRecord::Kind::timed_out, "setup takes longer than it may");
  }
  if (lease_until_ && now >= *lease_until_) {
    lease_until_.reset();
    begin_stop(ExitRecord::Kind::stopped, "the lease of this exclusive job ran out");
  }
  if (kill_at_ && now >= *kill_at_) {
    signal_all(SIGKILL);
    // What is forked between the look and the kill is met in the next round.
    kill_at_ = now + Millis{100};
  }
}

void Supervisor::reap() {
  for (int signal : signals_.take())
    if (signal != SIGCHLD) begin_stop(ExitRecord::Kind::stopped, "the supervisor was told to end");
  for (;;) {
    int status = 0;
    pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid < 0) has_children_ = errno != ECHILD;
    if (pid <= 0) break;
    if (pid != job_ || first_status_) continue;
    first_status_ = status;
  }
  if (!first_status_ || !has_children_ || kill_at_) return;
  say("zed: the job's first process ended; ending what it started");
  signal_descendants(SIGTERM);
  signal_descendants(SIGCONT);
  kill_at_ = net::clock_through_sleep() + launch_.request.grace;
}

void Supervisor::tell_all(const Report& report) {
  std::string line = to_json(to_value(report)) + "\n";
  for (Client& client : clients_)
    if (::send(client.socket.get(), line.data(), line.size(), net::no_signal) < 0)
      client.socket.reset();
  clients_.remove_if([](const Client& client) { return !client.socket; });
}

void Supervisor::drain_output() {
  for (Fd* pipe : {&output_, &error_})
    while (*pipe) {
      std::array<pollfd, 1> ready{{{pipe->get(), POLLIN, 0}}};
      if (::poll(ready.data(), 1, 0) <= 0) break;
      read_output(*pipe, pipe == &output_ ? LogSource::output : LogSource::error);
    }
}

int Supervisor::finish(ExitRecord exit) {
  drain_output();
  exit.ended = wall_now();
  say("zed: " + exit.words);
  (void)log_.finish(wall_now());
  // The record is what the whole fleet waits for: a full disk delays it, and nothing else.
  constexpr int tries = 600;
  for (int i = 0; i < tries; ++i) {
    auto written = folder_.write_exit(exit);
    if (written) break;
    log_error(written.error().describe());
    if (i + 1 == tries) return 1;
    ::poll(nullptr, 0, 1000);
  }
  if (cgroup_) cgroup_->remove();
  accept_client();
  tell_all(ExitedReport{exit});
  return 0;
}

int Supervisor::run() {
  if (auto watching = watch_signals(); !watching) {
    log_error(watching.error().describe());
    return 1;
  }
  // A lease, as every deadline of an attempt, goes on through a suspended machine.
  adopt_orphans(attempt_mark(launch_.request.attempt.job, launch_.request.attempt.generation));
  ::fcntl(control_.get(), F_SETFD, FD_CLOEXEC);
  ::fcntl(control_.get(), F_SETFL, O_NONBLOCK);
  if (auto self = identity_of(::getpid()))
    if (auto written = folder_.write_supervisor(*self); !written)
      log_error(written.error().describe());
  for (Status started = begin();;) {
    if (!started) {
      ExitRecord exit;
      exit.kind = ExitRecord::Kind::start_failed;
      exit.words = "cannot " + started.error().describe();
      return finish(exit);
    }
    if (is_over()) return finish(how_it_ended());
    wait_for_something();
    keep_deadlines();
    started = go_on();
  }
}

}  // namespace

int supervise(const AttemptFolder& folder) {
  if (auto left = leave_for_background(); !left) {
    log_error(left.error().describe());
    return 1;
  }
  auto launch = folder.read_launch();
  if (!launch) {
    log_error(launch.error().describe());
    return 1;
  }
  auto log = JobLogWriter::open(launch->directory);
  if (!log) {
    ExitRecord exit;
    exit.kind = ExitRecord::Kind::start_failed;
    exit.words = log.error().describe();
    return folder.write_exit(exit) ? 0 : 1;
  }
  return Supervisor(folder, std::move(*launch), std::move(*log)).run();
}

}  // namespace zed::proc
