// Submitting a declared job.

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/imports.hpp"
#include "controller/names.hpp"
#include "controller/operations/array.hpp"
#include "controller/operations/checkpoint_name.hpp"
#include "controller/operations/daily.hpp"
#include "controller/operations/handlers.hpp"
#include "controller/operations/rows.hpp"
#include "sched/place.hpp"

namespace zed::controller {
namespace {

constexpr Millis packing_patience = minutes(30);

/// The job that holds the name at present, or nullptr.
const DesiredJob* holder_of(const DesiredState& desired, const JobName& name) {
  auto named = desired.by_name.find(name);
  return named == desired.by_name.end() ? nullptr : desired.find(named->second);
}

/// Why the name cannot be given to a new job now.
Status name_is_free(const Machine& m, const DesiredJob* holder, const api::Dispatch& op) {
  if (holder == nullptr) {
    if (op.again)
      return fail(ErrorCode::refused, op.job + " was never dispatched",
                  "zedctl dispatch " + op.job);
    return {};
  }
  const std::string& name = holder->job.name.str();
  JobState state = state_of(m, *holder);
  if (!holder->is_over())
    return fail(ErrorCode::refused, fmt::format("job {} is {} already", name, to_string(state)),
                "zedctl why " + name);
  if (op.again) return {};
  if (holder->is_terminal())
    return fail(ErrorCode::refused,
                fmt::format("job {} {} {} already", name,
                            state == JobState::cancelled ? "was" : "has", to_string(state)),
                fmt::format("zedctl dispatch {} --again makes a new job", name));
  return fail(ErrorCode::refused, fmt::format("job {} is {}", name, to_string(state)),
              fmt::format("zedctl resume {0}, or zedctl dispatch {0} --again", name));
}

bool is_taken(const Machine& m, const DatasetName& dataset) {
  if (m.fleet.uuid_of(dataset)) return true;
  for (const auto& entry : m.desired.jobs)
    if (entry.second.job.dataset == dataset) return true;
  return false;
}

/// "jobs/finetune-002" after "jobs/finetune-001"; "jobs/x-002" after "jobs/x".
Result<DatasetName> next_numbered(const Machine& m, const DatasetName& dataset,
                                  const std::set<DatasetName>& also_taken = {}) {
  std::string text = dataset.str();
  std::size_t dash = text.find_last_of('-');
  bool numbered = dash != std::string::npos && dash + 1 < text.size() &&
                  text.find_first_not_of("0123456789", dash + 1) == std::string::npos;
  std::string stem = numbered ? text.substr(0, dash) : text;
  constexpr int most = 100'000;
  for (int number = 2; number < most; ++number) {
    ZED_TRY(auto next, DatasetName::parse(fmt::format("{}-{:03}", stem, number)));
    if (!is_taken(m, next) && !also_taken.contains(next)) return next;
  }
  return fail(ErrorCode::refused, "all numbers after " + dataset.str() + " are taken");
}

/// The model and the data are somewhere, or will be (a declared file that is being imported).
Status inputs_exist(const Machine& m, const Job& job) {
  const Cluster* cluster = m.desired.applied ? &m.desired.applied->cluster : nullptr;
  if (job.model) {
    auto dataset = dataset_of_model(m, *job.model);
    const DeclaredModel* declared = cluster != nullptr ? cluster->find_model(*job.model) : nullptr;
    bool there = dataset && m.fleet.uuid_of(*dataset);
    if (!there && (declared == nullptr || !declared->file))
      return fail(ErrorCode::not_found,
                  fmt::format("job {} needs model {}, which is on no node", job.name.str(),
                              job.model->str()),
                  fmt::format("zedctl model add FILE --name {}", job.model->str()));
  }
  for (const DatasetName& data : job.data) {
    bool comes = false;
    if (cluster != nullptr)
      for (const DeclaredData& declared : cluster->data)
        comes = comes || (declared.dataset == data && declared.file);
    if (!m.fleet.uuid_of(data) && !comes)
      return fail(ErrorCode::not_found,
                  fmt::format("job {} needs {}, which is on no node", job.name.str(), data.str()),
                  "declare it with `file` in the cluster file, or make it with zfs");
  }
  return {};
}

/// A dataset of that name without an identity, with its pool.
std::optional<std::string> made_by_hand(const Machine& m, const DatasetName& dataset) {
  for (const auto& [node, held] : m.fleet.view().datasets) {
    auto found = held.find(dataset);
    if (found == held.end() || !found->second.uuid.is_nil() || found->second.receiving) continue;
    const Node* owner = m.fleet.node(node);
    return (owner != nullptr ? owner->facts.pool : node.str()) + "/" + dataset.str();
  }
  return std::nullopt;
}

/// A declared job whose dataset a person adopted goes on with that one, so it has its identity.
std::optional<JobId> adopted_identity(const Machine& m, const api::Dispatch& op) {
  auto declared = find_declared_job(m.desired, op.job);
  if (!declared || op.again || holder_of(m.desired, (*declared)->name) != nullptr)
    return std::nullopt;
  return adopted_for(m, (*declared)->dataset);
}

/// The checkpoint of the old job that the new one begins with.
Result<Beginning> beginning_in(const Machine& m, const DesiredJob& old, const std::string& typed) {
  ZED_TRY(FoundCheckpoint found, find_checkpoint(m, old, typed));
  auto property = [&](const char* name) {
    auto value = found.snapshot->properties.find(name);
    return value == found.snapshot->properties.end() ? std::string() : value->second;
  };
  return Beginning{old.job.id,           old.job.name.str(),        found.snapshot->id,
                   found.snapshot->name, property(property::epoch), property(property::step)};
}

/// What is to be submitted, from the declaration and what was asked.
Result<DesiredJob> job_to_submit(const Machine& m, const api::Dispatch& op, const JobId& id) {
  auto declared = find_declared_job(m.desired, op.job);
  const Job* base = declared ? *declared : nullptr;
  if (base == nullptr) {  // a name that only a former file declared still means its last job
    auto former = find_job(m.desired, op.job);
    if (!former) return fail(declared.error());
    base = &m.desired.find(*former)->job;
  }
  DesiredJob job;
  job.job = *base;
  job.job.content.reset();
  job.job.inputs.clear();
  const DesiredJob* holder = holder_of(m.desired, base->name);
  const bool is_array = !op.array.empty();  // whose jobs have names and datasets of their own
  if (!is_array) ZED_CHECK(name_is_free(m, holder, op));
  job.job.id = id;
  if (!op.argv.empty()) job.job.argv = op.argv;
  if (op.prefer) {
    ZED_TRY(job.job.prefer, with_known_nodes(m.desired, m.fleet.view(), *op.prefer));
  }
  if (op.fallback) {
    ZED_TRY(job.job.fallback, with_known_nodes(m.desired, m.fleet.view(), *op.fallback));
  }
  if (job.job.argv.empty())
    return fail(ErrorCode::invalid, "job " + base->name.str() + " has no command to run",
                fmt::format("zedctl dispatch {} -- COMMAND, or `run` in the cluster file",
                            base->name.str()));
  if (is_array) {
    if (!op.from.empty())
      return fail(ErrorCode::invalid, "--from and --array do not go together",
                  fmt::format("zedctl dispatch {} --again --from {}", base->name.str(), op.from));
  } else if (op.again) {
    ZED_TRY(job.job.dataset, next_numbered(m, holder->job.dataset));
    if (!op.from.empty()) {
      ZED_TRY(job.begins, beginning_in(m, *holder, op.from));
    }
  } else if (!op.from.empty()) {
    return fail(ErrorCode::invalid, "--from goes with --again",
                fmt::format("zedctl resume {} --from {}", base->name.str(), op.from));
  } else if (auto there = made_by_hand(m, job.job.dataset)) {
    return fail(ErrorCode::exists, "somebody made " + *there + " by hand",
                fmt::format("zedctl adopt {} --as job {} lets the job go on with it; or give the "
                            "job another dataset in the cluster file",
                            *there, base->name.str()));
  } else if (is_taken(m, job.job.dataset) && adopted_for(m, job.job.dataset) != id) {
    return fail(ErrorCode::exists, "dataset " + job.job.dataset.str() + " is there already",
                "give the job another dataset in the cluster file");
  }
  return job;
}

/// A job that begins with another's checkpoint has its code among those files.
void take_code_of_beginning(const Machine& m, DesiredJob& job) {
  if (!job.begins) return;
  job.job.code.reset();
  const DesiredJob* old = m.desired.find(job.begins->job);
  const auto known = old != nullptr ? old->job.content : std::nullopt;
  job.job.content = known ? known : job.begins->checkpoint;
}

/// What is to be submitted, or why not.
Result<DesiredJob> checked_job(const Machine& m, const api::Dispatch& op, const JobId& id) {
  ZED_TRY(DesiredJob job, job_to_submit(m, op, id));
  ZED_CHECK(inputs_exist(m, job.job));
  take_code_of_beginning(m, job);
  job.job.inputs = inputs_to_pin(m, job.job);
  if (auto rejection = impossible(m, job))
    return fail(ErrorCode::unplaceable,
                fmt::format("no node can ever hold job {}: {}", job.job.name.str(),
                            sched::show(*rejection)),
                rejection->nearest.empty() ? "" : "the nearest fit is " + rejection->nearest.str());
  return job;
}

Result<Value> dispatched(Machine& m, const std::vector<JobId>& ids) {
  const DesiredJob& job = *m.desired.find(ids.front());
  api::DispatchReply reply;
  reply.job = row_of(m, job);
  reply.safe = is_safe(m, *m.desired.find(ids.back()));
  if (job.placed)
    reply.placement = Placement{job.placed->node, job.placed->gpus, 0, job.placed->why};
  if (ids.size() > 1)
    for (const JobId& id : ids)
      reply.array.push_back(row_of(m, *m.desired.find(id)));
  return api::encode_reply(reply);
}

/// Answers if the same submit came before: its answer was lost.
bool was_submitted(const Asked& asked, const JobId& id) {
  if (asked.m.desired.find(id) == nullptr) return false;
  asked.reply_when_safe(safe_when(id),
                        [id](Machine& machine) { return dispatched(machine, {id}); });
  return true;
}

void submit(const Asked& asked, const DesiredJob& job) {
  const JobId id = job.job.id;
  Record record = Submitted{job.job, asked.by(), asked.m.now.wall, job.begins};
  if (encode_record(record).size() > largest_record)
    return asked.refuse(ErrorCode::invalid, "the job is too large: command and environment have "
                                            "more than 200 KiB");
  asked.m.record(record);
  asked.audit("job " + job.job.name.str(), "dispatched");
  asked.reply_when_safe(safe_when(id),
                        [id](Machine& machine) { return dispatched(machine, {id}); });
}

/// The folder of code as it is now becomes a dataset, and only then there is a job: what is edited
/// after the answer is not submitted, and a folder that cannot be read refuses the submit. `next`
/// gets the job as it is by then.
void pack_first(const Asked& asked, const api::Dispatch& op, const DesiredJob& job,
                std::function<void(const Asked&, const DesiredJob&)> next) {
  Machine& m = asked.m;
  const NodeName node = m.files_node();
  const JobId id = job.job.id;
  if (auto ordered = pack_code(m, id, *job.job.code, node); !ordered)
    return asked.refuse(ordered.error());
  asked.continue_with_outcome(
      code_need(id), node, packing_patience, "pack the code in " + *job.job.code,
      [op, id, next = std::move(next)](const Asked& again, const NeedOutcome& packed) {
        if (!again.may_change()) return;
        auto checked = checked_job(again.m, op, id);
        if (!checked) return again.refuse(checked.error());
        checked->job.content = packed.snapshot;
        next(again, *checked);
      });
}

/// Whether name and dataset of an array's job are free; `again` takes the next free number.
Status free_element(const Machine& m, Job& job, bool again, std::set<DatasetName>& taken) {
  const DesiredJob* holder = holder_of(m.desired, job.name);
  if (holder != nullptr && !holder->is_over())
    return fail(ErrorCode::refused, "job " + job.name.str() + " of an earlier array is not over",
                "zedctl cancel " + job.name.str());
  if (!is_taken(m, job.dataset) && taken.insert(job.dataset).second) return {};
  if (!again)
    return fail(ErrorCode::exists, "dataset " + job.dataset.str() + " is there already",
                "--again gives its jobs new datasets");
  ZED_TRY(job.dataset, next_numbered(m, job.dataset, taken));
  taken.insert(job.dataset);
  return {};
}

void submit_elements(const Asked& asked, const api::Dispatch& op, const DesiredJob& base,
                     const std::vector<ArrayElement>& elements, const std::vector<JobId>& ids) {
  Machine& m = asked.m;
  std::vector<Record> records;
  std::set<DatasetName> taken;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    auto job = element_of(base.job, elements[i], i + 1, ids[i]);
    if (!job) return asked.refuse(job.error());
    if (auto free = free_element(m, *job, op.again, taken); !free)
      return asked.refuse(free.error());
    records.emplace_back(Submitted{*job, asked.by(), m.now.wall, base.begins});
    if (encode_record(records.back()).size() > largest_record)
      return asked.refuse(ErrorCode::invalid, "the command and environment of an array's job have "
                                              "more than 200 KiB");
  }
  for (const Record& record : records)
    m.record(record);
  asked.audit("job " + base.job.name.str(),
              "dispatched as an array of " + std::to_string(ids.size()));
  asked.reply_when_safe(safe_when(ids.back()),
                        [ids](Machine& machine) { return dispatched(machine, ids); });
}

/// One submit makes all jobs of an array or none. Their identities follow from the submit's, so
/// that a repeated one finds them there.
void submit_array(const Asked& asked, const api::Dispatch& op) {
  Machine& m = asked.m;
  JobId first = m.fresh<JobId>();
  if (auto parsed = JobId::parse(op.uuid); parsed && !parsed->is_nil()) first = *parsed;
  auto elements = elements_of(op.array);
  if (!elements) return asked.refuse(elements.error());
  std::vector<JobId> ids;
  for (std::size_t i = 0; i < elements->size(); ++i)
    ids.push_back(element_id(first, i));
  auto was_there = [ids](const Asked& again) {
    if (again.m.desired.find(ids.back()) == nullptr) return false;
    again.reply_when_safe(safe_when(ids.back()),
                          [ids](Machine& machine) { return dispatched(machine, ids); });
    return true;
  };
  if (was_there(asked)) return;
  auto base = checked_job(m, op, first);
  if (!base) return asked.refuse(base.error());
  if (auto used = check_parameters(base->job, op.array); !used) return asked.refuse(used.error());
  if (!base->job.code) return submit_elements(asked, op, *base, *elements, ids);
  pack_first(asked, op, *base,
             [op, was_there, ids, elements = *elements](const Asked& again, const DesiredJob& job) {
               if (!was_there(again)) submit_elements(again, op, job, elements, ids);
             });
}

}  // namespace

void handle(const Asked& asked, const api::Dispatch& op) {
  Machine& m = asked.m;
  if (!op.array.empty()) return submit_array(asked, op);
  JobId id = m.fresh<JobId>();
  if (!op.uuid.empty()) {
    auto parsed = JobId::parse(op.uuid);
    if (!parsed || parsed->is_nil())
      return asked.refuse(ErrorCode::invalid, "uuid is not 32 hexadecimal digits");
    id = *parsed;
    if (was_submitted(asked, id)) return;
  }
  if (auto adopted = adopted_identity(m, op)) id = *adopted;
  auto job = checked_job(m, op, id);
  if (!job) return asked.refuse(job.error());
  if (!job->job.code) return submit(asked, *job);
  pack_first(asked, op, *job, [](const Asked& again, const DesiredJob& packed) {
    if (!was_submitted(again, packed.job.id)) submit(again, packed);
  });
}

}  // namespace zed::controller
