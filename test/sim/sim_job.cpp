#include "sim/sim_job.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "sim/world.hpp"

namespace zed::sim {
namespace {

std::string digest_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return fmt::format("{:016x}", hash);
}

std::string weights_name(std::int64_t epoch) {
  return "weights-" + std::to_string(epoch);
}

}  // namespace

JobBehaviour draw_behaviour(std::uint64_t seed, std::string_view job_name) {
  Random random(seed, "behaviour " + std::string(job_name));
  JobBehaviour behaviour;
  behaviour.epochs = random.between(3, 14);
  behaviour.epoch_time = random.millis(300, 6000);
  behaviour.checkpoint_every = random.chance(800) ? 1 : random.between(2, 3);
  behaviour.connects = !random.chance(60);
  behaviour.ignores_terminate = random.chance(200);
  behaviour.grandchildren_hold = random.chance(300) ? random.millis(100, 4000) : Millis{0};
  behaviour.failures = random.chance(250) ? random.between(1, 2) : 0;
  return behaviour;
}

std::string write_state(const std::vector<EpochLine>& lines) {
  std::string text;
  for (const EpochLine& line : lines)
    text += fmt::format("{} {} {}\n", line.epoch, line.timeline, line.generation);
  return text;
}

std::optional<std::vector<EpochLine>> read_state(const std::string& text) {
  std::vector<EpochLine> lines;
  for (const std::string& row : split(text, '\n')) {
    if (row.empty()) continue;
    const std::vector<std::string> words = split(row, ' ');
    if (words.size() != 3) return std::nullopt;
    EpochLine line{0, words[1], words[2]};
    for (char c : words[0]) {
      if (c < '0' || c > '9' || line.epoch > 1'000'000) return std::nullopt;
      line.epoch = line.epoch * 10 + (c - '0');
    }
    if (line.epoch != static_cast<std::int64_t>(lines.size()) + 1) return std::nullopt;
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string weights_of(const std::vector<EpochLine>& lines, std::int64_t epoch) {
  const auto count = std::min(static_cast<std::size_t>(epoch), lines.size());
  return digest_of(
      write_state({lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(count)}));
}

SimJob::SimJob(World& world, std::size_t machine, env::LaunchRequest launch, std::uint64_t number)
    : world_(world), machine_(machine), launch_(std::move(launch)), number_(number),
      behaviour_(world.behaviour_of(launch_.job_name.str())),
      random_(world.seed(), "attempt " + std::to_string(number)), began_(world.schedule.now()) {
  if (launch_.attempt.number <= behaviour_.failures) fails_at_epoch_ = random_.between(1, 4);
  if (launch_.lease) lease_until_ = began_ + *launch_.lease;
}

void SimJob::later(Millis delay, std::string_view what, void (SimJob::*next)()) {
  world_.schedule.after(delay, what, [weak = weak_from_this(), next] {
    if (auto self = weak.lock(); self && self->alive_) ((*self).*next)();
  });
}

void SimJob::begin() {
  const Disk& disk = world_.machine(machine_).disk;
  auto lines = read_state(disk.read_live(launch_.attempt.dataset, "state"));
  // A person may have left anything there; a job that cannot read its own state says so and exits.
  if (!lines) {
    exit_with(ExitRecord::Kind::exit_code, 3, "cannot read its state");
    return;
  }
  lines_ = std::move(*lines);
  if (lease_until_) later(Millis{1000}, "lease", &SimJob::check_lease);
  if (launch_.time_left) later(*launch_.time_left, "time-out", &SimJob::time_out);
  later(random_.millis(5, 300), "job connects", &SimJob::connect);
  run_epoch();
}

void SimJob::connect() {
  if (!alive_ || !running_ || connection_ || !behaviour_.connects) return;
  if (!world_.machine(machine_).agent) return;
  connection_ = world_.next_connection();
  world_.tell_current_agent(
      machine_, agent::JobConnected{*connection_, launch_.attempt.job, launch_.attempt.generation});
  if (waiting_for_) send_request();
}

void SimJob::run_epoch() {
  if (!running_) return;
  if (static_cast<std::int64_t>(lines_.size()) >= behaviour_.epochs) {
    later(random_.millis(1, 100), "job finishes", &SimJob::kill_now);
    terminated_.reset();
    exit_.kind = ExitRecord::Kind::success;
    return;
  }
  later(behaviour_.epoch_time + random_.millis(0, 200), "epoch", &SimJob::end_epoch);
}

void SimJob::end_epoch() {
  if (!running_) return;
  if (frozen_) {
    resume_when_thawed_ = true;
    return;
  }
  lines_.push_back({static_cast<std::int64_t>(lines_.size()) + 1, launch_.attempt.timeline.str(),
                    launch_.attempt.generation.str()});
  if (!write_files()) {
    exit_with(ExitRecord::Kind::exit_code, 1, "cannot write its files");
    return;
  }
  const auto epoch = static_cast<std::int64_t>(lines_.size());
  if (fails_at_epoch_ >= 0 && --fails_at_epoch_ < 0) {
    if (random_.chance(500))
      exit_with(ExitRecord::Kind::signal, 11, "killed by signal 11");
    else
      exit_with(ExitRecord::Kind::exit_code, 1, "exit code 1");
    return;
  }
  const bool due = epoch % behaviour_.checkpoint_every == 0 || epoch == behaviour_.epochs ||
                   stop_asked_ || checkpoint_asked_;
  if (due && connection_)
    ask_for_checkpoint();
  else
    after_checkpoint();
}

bool SimJob::write_files() {
  Disk& disk = world_.machine(machine_).disk;
  const auto epoch = static_cast<std::int64_t>(lines_.size());
  const DatasetName& dataset = launch_.attempt.dataset;
  return disk.write_live(dataset, weights_name(epoch), weights_of(lines_, epoch)) &&
         disk.write_live(dataset, "state", write_state(lines_));
}

void SimJob::ask_for_checkpoint() {
  checkpoint_asked_ = false;
  request_ = {};
  request_.number = next_request_++;
  request_.generation = launch_.attempt.generation;
  const Millis wait{behaviour_.waits_for_answer_ms};
  request_.deadline = world_.machine(machine_).monotonic() + wait;
  request_.epoch = static_cast<std::int64_t>(lines_.size());
  request_.step = *request_.epoch * 100;
  request_.metrics["loss"] = 1.0 / static_cast<double>(*request_.epoch);
  request_.paths = {"state", weights_name(*request_.epoch)};
  waiting_for_ = request_.number;
  send_request();
  world_.schedule.after(wait, "job gives up", [weak = weak_from_this(), number = request_.number] {
    if (auto self = weak.lock()) self->give_up_waiting(number);
  });
}

void SimJob::send_request() {
  world_.tell_current_agent(machine_,
                            agent::CheckpointAsked{*connection_, launch_.attempt.job, request_});
}

void SimJob::give_up_waiting(std::uint64_t request) {
  if (!alive_ || waiting_for_ != request) return;
  waiting_for_.reset();
  after_checkpoint();
}

void SimJob::answer(const env::CheckpointReply& reply) {
  if (!alive_ || !running_ || waiting_for_ != reply.number) return;
  waiting_for_.reset();
  if (reply.result) {
    // Only after a positive reply may older files go (what a client owes).
    Disk& disk = world_.machine(machine_).disk;
    const auto epoch = static_cast<std::int64_t>(lines_.size());
    for (std::int64_t older = 1; older < epoch; ++older)
      disk.remove_live(launch_.attempt.dataset, weights_name(older));
  }
  after_checkpoint();
}

void SimJob::after_checkpoint() {
  if (!running_) return;
  if (stop_asked_) {
    // It says so if it can, and exits with 0: a success for its supervisor. Only who heard it, or
    // knows that it was asked, knows better.
    if (connection_) world_.tell_current_agent(machine_, agent::JobStopped{*connection_});
    exit_.kind = ExitRecord::Kind::success;
    work_remains_ = true;
    later(random_.millis(10, 1500), "job stops", &SimJob::kill_now);
    running_ = false;
    return;
  }
  run_epoch();
}

void SimJob::ask(env::Ask ask, Instant) {
  if (ask == env::Ask::stop)
    stop_asked_ = true;
  else
    checkpoint_asked_ = true;
}

void SimJob::terminate(StopMode mode) {
  if (!alive_) return;
  if (terminated_) return;
  terminated_ = mode;
  const bool hard = behaviour_.ignores_terminate || frozen_;
  const Millis until = hard ? launch_.grace : random_.millis(5, 800);
  world_.schedule.after(until, "job is killed", [weak = weak_from_this(), mode] {
    auto self = weak.lock();
    if (!self || !self->alive_ || !self->running_) return;
    self->exit_with(mode == StopMode::cancel ? ExitRecord::Kind::cancelled
                                             : ExitRecord::Kind::stopped,
                    15, "killed by signal 15 (terminated)");
  });
}

void SimJob::freeze(bool frozen) {
  frozen_ = frozen;
  if (!frozen_ && resume_when_thawed_) {
    resume_when_thawed_ = false;
    later(Millis{1}, "thawed", &SimJob::end_epoch);
  }
}

void SimJob::extend_lease(Millis lease) {
  lease_until_ = world_.schedule.now() + lease;
}

void SimJob::check_lease() {
  if (!lease_until_ || world_.planted() == Planted::endless_lease) return;
  if (world_.schedule.now() > *lease_until_)
    return stop_by_itself(ExitRecord::Kind::stopped, "the lease of this exclusive job ran out");
  later(Millis{1000}, "lease", &SimJob::check_lease);
}

void SimJob::time_out() {
  stop_by_itself(ExitRecord::Kind::timed_out, "stopped at its time-out");
}

/// The supervisor's own decision: SIGTERM, and SIGKILL after the grace.
void SimJob::stop_by_itself(ExitRecord::Kind kind, std::string words) {
  if (!running_ || !supervisor_alive_) return;
  const bool hard = behaviour_.ignores_terminate || frozen_;
  world_.schedule.after(hard ? launch_.grace : random_.millis(5, 800), "job is killed",
                        [weak = weak_from_this(), kind, words = std::move(words)] {
                          auto self = weak.lock();
                          if (self && self->alive_ && self->running_)
                            self->exit_with(kind, 15, words);
                        });
}

void SimJob::lose_supervisor() {
  if (!alive_ || !supervisor_alive_) return;
  supervisor_alive_ = false;
  running_ = false;
  exit_.kind = ExitRecord::Kind::supervisor_lost;
  exit_.words = "its supervisor was killed";
  world_.tell_current_agent(machine_,
                            agent::SupervisorLost{launch_.attempt.job, launch_.attempt.generation});
  later(behaviour_.grandchildren_hold + random_.millis(1, 500), "left-over killed", &SimJob::reap);
}

void SimJob::kill_now() {
  exit_with(exit_.kind, 0, "finished");
}

void SimJob::exit_with(ExitRecord::Kind kind, std::int64_t code, std::string words) {
  if (!alive_ || exit_.ran.value != 0) return;
  running_ = false;
  exit_.kind = kind;
  exit_.code = code;
  exit_.words = std::move(words);
  exit_.ran = Millis{std::max<std::int64_t>(1, (world_.schedule.now() - began_).value)};
  later(behaviour_.grandchildren_hold + random_.millis(0, 20), "last process gone", &SimJob::reap);
}

void SimJob::reap() {
  exit_.ended = world_.machine(machine_).wall();
  if (exit_.ran.value == 0) exit_.ran = world_.schedule.now() - began_;
  alive_ = false;
  world_.attempt_ended(machine_, launch_, exit_, work_remains_);
}

}  // namespace zed::sim
