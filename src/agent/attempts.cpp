// Attempts while they live: adoption, stop, exit, acknowledgement. Their start is in launches.cpp,
// their end in closing.cpp.

#include "agent/attempt_parts.hpp"

namespace zed::agent {
namespace {

constexpr Millis stop_patience = seconds(60);  // for the checkpoint that a stop asks for
constexpr Millis repeat_stop = seconds(15);    // beyond the grace

/// Whether it is being stopped by asking, and there is somebody to ask.
bool may_be_asked(const LiveAttempt& live) {
  return live.has_processes() && live.connection && live.stopping &&
         live.stopping->mode == StopMode::stop && !live.stopping->signalled;
}

}  // namespace

const Gpu* find_gpu(const Machine& m, const std::string& uuid) {
  for (const Gpu& gpu : m.gpus)
    if (gpu.uuid == uuid) return &gpu;
  return nullptr;
}

void signal_processes(Machine& m, LiveAttempt& live) {
  Stopping& stopping = *live.stopping;
  stopping.signalled = true;
  stopping.next = m.now.monotonic + live.launch.grace + repeat_stop;
  m.emit(StopProcesses{live.attempt.job, live.attempt.generation, stopping.mode});
}

void leave_broken_gpus(Machine& m) {
  for (auto& [key, live] : m.attempts) {
    if (!live.has_processes()) continue;
    for (const std::string& uuid : live.attempt.gpus) {
      const Gpu* gpu = find_gpu(m, uuid);
      bool broken = gpu != nullptr &&
                    (gpu->health == GpuHealth::lost || gpu->health == GpuHealth::reset_required);
      if (!broken) continue;
      std::string why = "GPU " + uuid + " is " + std::string(to_string(gpu->health));
      if (!gpu->why.empty()) why += ": " + gpu->why;
      m.notice(live.attempt.dataset.str(), why + "; its job ends here and goes on elsewhere");
      live.gpu_trouble = why;
      stop_live(m, live, StopMode::halt, why);
      break;
    }
  }
}

void adopt_attempts(Machine& m, const std::vector<env::FoundAttempt>& found) {
  for (const env::FoundAttempt& one : found) {
    LiveAttempt live;
    live.attempt = one.launch.attempt;
    live.launch = one.launch;
    live.launched = true;
    live.adopted = true;
    live.attempt.exit = one.exit;
    live.attempt.since = m.now.wall;
    auto every = one.launch.env.find("ZED_CHECKPOINT_EVERY");
    if (every != one.launch.env.end()) live.every = period_of(every->second);
    if (live.every) live.next_timed = m.now.monotonic + *live.every;
    const JobId job = live.attempt.job;
    const Generation generation = live.attempt.generation;
    if (one.exit) {
      live.attempt.phase = AttemptPhase::closing;
    } else if (one.supervisor_alive) {
      // Its supervisor says where it stands: a setup may be over by now.
      live.setting_up = one.launch.setup.has_value();
      live.attempt.phase = live.setting_up ? AttemptPhase::starting : AttemptPhase::running;
      // It may have been frozen when the earlier run ended.
      m.emit(FreezeProcesses{job, generation, false, 0});
    } else {
      live.attempt.phase = AttemptPhase::stopping;
      live.orphaned = true;
      live.stopping = Stopping{StopMode::halt, "its supervisor was lost", false, {}};
      signal_processes(m, live);
    }
    m.attempts.emplace(AttemptKey{job, generation}, std::move(live));
  }
}

void stop_attempt(Machine& m, const Step& step, const StopAttempt& action) {
  LiveAttempt* live = m.live_attempt(action.job);
  if (live == nullptr || live->attempt.generation > action.generation) return step->succeed();
  live->enders.push_back(step);
  stop_live(m, *live, action.mode, action.reason);
}

void ask_to_stop(Machine& m, const LiveAttempt& live) {
  DatasetName name = live.attempt.dataset;
  AttemptKey key = live.key();
  auto again = [&m, key] {
    if (const LiveAttempt* attempt = m.find_attempt(key);
        attempt != nullptr && may_be_asked(*attempt))
      ask_to_stop(m, *attempt);
  };
  bool queued = m.take_turn(name, [&m, name, key, again](Turn turn) {
    PropertyChanges changes{{stop_asked, key.generation.str()}};
    m.call(env::SetDatasetProperties{name, changes}, [&m, turn, key, again](StoreResult kept) {
      const LiveAttempt* attempt = m.find_attempt(key);
      if (attempt == nullptr || !may_be_asked(*attempt)) return;
      if (!kept) return m.after(seconds(1), again);
      const Stopping& stopping = *attempt->stopping;
      m.emit(AskJob{*attempt->connection, env::Ask::stop, stopping.next, stopping.reason});
    });
  });
  if (!queued) m.after(seconds(1), again);
}

void stop_live(Machine& m, LiveAttempt& live, StopMode mode, const std::string& reason) {
  if (!live.has_processes()) return;
  if (live.stopping && live.stopping->mode >= mode) return;
  bool was_stopping = live.stopping.has_value();
  live.stopping = Stopping{mode, reason, false, m.now.monotonic + stop_patience};
  const bool launching = live.is_launching();
  if (!was_stopping && live.launched && !launching) set_phase(m, live, AttemptPhase::stopping);
  if (!live.launched || launching) return;  // the start sees it
  if (mode == StopMode::stop && live.connection) {
    ask_to_stop(m, live);
    return;
  }
  signal_processes(m, live);
}

void setup_began(Machine& m, const SetupBegan& event) {
  LiveAttempt* live = m.find_attempt({event.job, event.generation});
  if (live != nullptr && live->attempt.phase == AttemptPhase::starting) live->setting_up = true;
}

void job_began(Machine& m, const JobBegan& event) {
  LiveAttempt* live = m.find_attempt({event.job, event.generation});
  if (live == nullptr || !live->setting_up) return;
  live->setting_up = false;
  if (live->attempt.phase == AttemptPhase::starting) job_runs(m, *live);
}

void attempt_exited(Machine& m, const AttemptExited& event) {
  LiveAttempt* live = m.find_attempt({event.job, event.generation});
  if (live == nullptr || live->attempt.phase >= AttemptPhase::closing) return;
  ExitRecord exit = event.exit;
  if (live->orphaned) {
    exit.kind = ExitRecord::Kind::supervisor_lost;
    exit.words = "its supervisor was lost";
  } else if (!live->gpu_trouble.empty() && exit.kind != ExitRecord::Kind::success) {
    // Whatever the job made of it, it is not the job's fault.
    exit.kind = ExitRecord::Kind::stopped;
    exit.words = live->gpu_trouble;
  } else if (live->said_stopped && exit.kind == ExitRecord::Kind::success) {
    exit.kind = live->stopping && live->stopping->mode == StopMode::cancel
                    ? ExitRecord::Kind::cancelled
                    : ExitRecord::Kind::stopped;
    exit.words = "stopped as asked";
  }
  live->attempt.exit = exit;
  end_checkpoints(m, *live);
  set_phase(m, *live, AttemptPhase::closing);
  if (m.listed) close(m, live->key());  // else after the first listing
}

void supervisor_lost(Machine& m, const SupervisorLost& event) {
  LiveAttempt* live = m.find_attempt({event.job, event.generation});
  if (live == nullptr || !live->has_processes()) return;
  live->orphaned = true;
  live->stopping = Stopping{StopMode::halt, "its supervisor was lost", true,
                            m.now.monotonic + live->launch.grace + repeat_stop};
  set_phase(m, *live, AttemptPhase::stopping);
}

void job_stopped(Machine& m, JobConnection connection) {
  for (auto& [key, live] : m.attempts) {
    if (live.connection != connection) continue;
    live.said_stopped = true;
    if (live.stopping && !live.stopping->signalled)
      live.stopping->next = m.now.monotonic + live.launch.grace;
  }
}

void acknowledge(Machine& m, const AckExit& ack) {
  LiveAttempt* live = m.find_attempt({ack.job, ack.generation});
  if (live == nullptr || !live->has_ended()) return;
  m.emit(ForgetAttempt{ack.job, ack.generation});
  m.attempts.erase(live->key());
}

void tick_attempts(Machine& m) {
  for (auto& [key, live] : m.attempts) {
    bool due = live.stopping && live.launched && live.has_processes() && !live.is_launching() &&
               live.stopping->next <= m.now.monotonic;
    if (due) signal_processes(m, live);
  }
}

void report(Machine& m, const LiveAttempt& live) {
  m.say(AttemptReport{live.attempt});
}

void set_phase(Machine& m, LiveAttempt& live, AttemptPhase phase) {
  live.attempt.phase = phase;
  live.attempt.since = m.now.wall;
  report(m, live);
}

}  // namespace zed::agent
