#include "sim/operator.hpp"

#include "sim/world.hpp"

namespace zed::sim {

std::string job_name(std::size_t number) {
  return "job" + std::to_string(number);
}

Operator::Operator(World& world)
    : world_(world), random_(world.seed(), "people"), ids_(world.seed(), "people's ids") {}

void Operator::start() {
  look();
}

void Operator::look() {
  ask(api::ListJobs{true}, [this](const Result<Value>& reply) {
    if (!reply) return;
    auto jobs = from_value<api::JobsReply>(*reply);
    if (!jobs) {
      world_.broken = "the answer to jobs does not read: " + jobs.error().describe();
      return;
    }
    for (const api::JobRow& row : jobs->jobs)
      if (!row.declared_only) world_.history.latest[row.id] = {row, world_.schedule.now(), 0};
  });
  world_.schedule.after(random_.millis(2000, 4000), "people look", [this] { look(); });
}

void Operator::ask(api::Request operation, Then then) {
  if (auto controller = world_.newest_controller())
    controller->ask(std::move(operation), std::move(then));
}

void Operator::promise(api::JobRow row, int kind, bool safe, std::string from) {
  auto controller = world_.newest_controller();
  Promise made;
  made.kind = static_cast<Promise::Kind>(kind);
  made.job = row.id;
  made.job_name = row.name;
  made.safe = safe;
  made.machine = controller ? controller->machine_index() : 0;
  made.from = std::move(from);
  made.at = world_.schedule.now();
  world_.history.promises.push_back(std::move(made));
}

void Operator::dispatch(std::size_t job) {
  std::string& uuid = uuids_[job];
  if (uuid.empty()) uuid = JobId{ids_.next()}.str();
  api::Dispatch request;
  request.job = job_name(job);
  request.uuid = uuid;
  ask(request, [this, job](const Result<Value>& answer) {
    if (!answer) return;
    auto reply = from_value<api::DispatchReply>(*answer);
    if (!reply) return;
    submitted_.insert(job);
    promise(reply->job, static_cast<int>(Promise::Kind::submit), reply->safe, "");
  });
}

void Operator::pick_checkpoint(
    std::size_t job, std::uint64_t which,
    std::function<void(const api::CheckpointRow&, const api::CheckpointsReply&)> then) {
  ask(api::ListCheckpoints{job_name(job)}, [which, then](const Result<Value>& answer) {
    if (!answer) return;
    auto reply = from_value<api::CheckpointsReply>(*answer);
    if (!reply) return;
    std::vector<api::CheckpointRow> current;
    for (const api::CheckpointRow& row : reply->checkpoints)
      if (row.current && row.seq) current.push_back(row);
    if (!current.empty()) then(current[which % current.size()], *reply);
  });
}

void Operator::rollback(std::size_t job, std::uint64_t which, bool discard, bool hold, bool force) {
  pick_checkpoint(job, which, [=, this](const api::CheckpointRow& row, const auto&) {
    api::Rollback request;
    request.job = job_name(job);
    request.checkpoint = "@" + row.name;
    request.discard = discard;
    request.hold = hold;
    request.force = force;
    ask(request, [this, row](const Result<Value>& answer) {
      auto reply = answer ? from_value<api::ForkReply>(*answer) : fail(answer.error());
      if (reply) promise(reply->job, static_cast<int>(Promise::Kind::fork), reply->safe, row.name);
    });
  });
}

void Operator::resume(std::size_t job, std::uint64_t which, const std::string& node, bool force) {
  pick_checkpoint(job, which, [=, this](const api::CheckpointRow& row, const auto&) {
    api::Resume request;
    request.job = job_name(job);
    request.from = "@" + row.name;
    request.on = node;
    request.force = force;
    ask(request, [this, row](const Result<Value>& answer) {
      auto reply = answer ? from_value<api::ForkReply>(*answer) : fail(answer.error());
      if (reply) promise(reply->job, static_cast<int>(Promise::Kind::fork), reply->safe, row.name);
    });
  });
}

void Operator::resume_newest(std::size_t job) {
  api::Resume request;
  request.job = job_name(job);
  ask(request, [](const Result<Value>&) {});
}

void Operator::resume_on(std::size_t job, const std::string& node) {
  api::Resume request;
  request.job = job_name(job);
  request.on = node;
  ask(request, [](const Result<Value>&) {});
}

void Operator::stop(std::size_t job) {
  ask(api::StopJob{job_name(job)}, [this](const Result<Value>& answer) {
    auto reply = answer ? from_value<api::JobReply>(*answer) : fail(answer.error());
    if (reply) promise(reply->job, static_cast<int>(Promise::Kind::stop), false, "");
  });
}

void Operator::cancel(std::size_t job) {
  ask(api::CancelJob{job_name(job)}, [this](const Result<Value>& answer) {
    auto reply = answer ? from_value<api::JobReply>(*answer) : fail(answer.error());
    if (reply) promise(reply->job, static_cast<int>(Promise::Kind::cancel), false, "");
  });
}

void Operator::checkpoint(std::size_t job) {
  ask(api::CheckpointJob{job_name(job)}, [](const Result<Value>&) {});
}

void Operator::node_duty(std::size_t machine, api::NodeDuty duty) {
  ask(api::SetNodeDuty{world_.machine(machine).name.str(), duty}, [](const Result<Value>&) {});
}

}  // namespace zed::sim
