#include "sim/scenario.hpp"

namespace zed::sim {

JobBehaviour steady_job() {
  JobBehaviour behaviour;
  behaviour.epochs = 10;
  behaviour.epoch_time = seconds(2);
  return behaviour;
}

Scenario::Scenario(std::size_t machines, std::size_t jobs, JobBehaviour behaviour,
                   std::string cluster)
    : world_({7, machines, jobs, Planted::none, machines - 1, behaviour, std::move(cluster)}),
      invariants_(world_) {
  run_for(seconds(5));
}

void Scenario::run_for(Millis duration) {
  run_until([] { return false; }, duration);
}

bool Scenario::run_until(const std::function<bool()>& true_now, Millis within) {
  const Instant end = world_.schedule.now() + within;
  while (broken_.empty() && world_.schedule.step(end)) {
    if (auto wrong = invariants_.check()) broken_ = *wrong;
    if (broken_.empty() && true_now()) return true;
  }
  return false;
}

bool Scenario::dispatch_and_reach(std::int64_t epoch) {
  world_.people.dispatch(0);
  return reach(epoch);
}

bool Scenario::reach(std::int64_t epoch) {
  const std::string name = "epoch-" + std::to_string(epoch);
  return run_until([&] {
    const auto where = runs_on("job0");
    if (!where) return false;
    auto dataset = world_.machine(*where).disk.look_at(*DatasetName::parse("jobs/job0"));
    return dataset && dataset->find(name) != nullptr;
  });
}

const controller::DesiredJob* Scenario::find(const std::string& job) {
  auto controller = world_.newest_controller();
  if (!controller) return nullptr;
  for (const auto& [id, desired] : controller->durable().jobs)
    if (desired.job.name.str() == job) return &desired;
  return nullptr;
}

std::string Scenario::state_of(const std::string& job) {
  const controller::DesiredJob* desired = find(job);
  if (desired == nullptr) return "";
  return std::string(to_string(world_.newest_controller()->state().state_of(desired->job.id)));
}

std::optional<std::size_t> Scenario::runs_on(const std::string& job) {
  for (std::size_t m = 0; m < world_.machine_count(); ++m)
    for (const auto& process : world_.machine(m).live_jobs())
      if (process->launch().job_name.str() == job) return m;
  return std::nullopt;
}

std::vector<std::size_t> Scenario::holders(const std::string& dataset) {
  std::vector<std::size_t> found;
  for (std::size_t m = 0; m < world_.machine_count(); ++m)
    if (world_.machine(m).disk.look_at(*DatasetName::parse(dataset))) found.push_back(m);
  return found;
}

std::vector<std::size_t> Scenario::machines_with(const std::string& job,
                                                 const std::string& snapshot) {
  std::vector<std::size_t> found;
  for (std::size_t m = 0; m < world_.machine_count(); ++m) {
    auto dataset = world_.machine(m).disk.look_at(*DatasetName::parse("jobs/" + job));
    if (dataset && dataset->find(snapshot) != nullptr) found.push_back(m);
  }
  return found;
}

std::vector<Dataset> Scenario::branches(std::size_t machine, const std::string& job) {
  std::vector<Dataset> found;
  for (Dataset& dataset : world_.machine(machine).disk.look_at_all())
    if (dataset.property(property::type) == "branch" &&
        dataset.name.str().rfind("jobs/" + job + ".", 0) == 0)
      found.push_back(std::move(dataset));
  return found;
}

std::vector<EpochLine> Scenario::epochs(std::size_t machine, const std::string& job) {
  auto lines = read_state(
      world_.machine(machine).disk.read_live(*DatasetName::parse("jobs/" + job), "state"));
  return lines ? *lines : std::vector<EpochLine>{};
}

void Scenario::roll_back(const std::string& job, const std::string& checkpoint, bool discard) {
  api::Rollback request;
  request.job = job;
  request.checkpoint = checkpoint;
  request.discard = discard;
  if (auto controller = world_.newest_controller())
    controller->ask(request, [](const Result<Value>&) {});
}

bool Scenario::finishes(const std::string& job, Millis within) {
  return run_until([&] { return state_of(job) == "succeeded"; }, within);
}

}  // namespace zed::sim
