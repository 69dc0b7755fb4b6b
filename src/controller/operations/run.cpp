// A job without a cluster file: all that it is comes with the submit.

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/imports.hpp"
#include "controller/names.hpp"
#include "controller/operations/daily.hpp"
#include "controller/operations/rows.hpp"
#include "core/environment.hpp"
#include "sched/place.hpp"
#include "spec/quantity.hpp"

namespace zed::controller {
namespace {

constexpr Millis packing_patience = minutes(30);
constexpr std::size_t longest_stem = 40;
constexpr int most_numbers = 100'000;

bool is_taken(const Machine& m, const DatasetName& dataset) {
  if (m.fleet.uuid_of(dataset)) return true;
  return std::any_of(m.desired.jobs.begin(), m.desired.jobs.end(),
                     [&](const auto& entry) { return entry.second.job.dataset == dataset; });
}

bool is_declared(const Machine& m, const JobName& name) {
  if (!m.desired.applied) return false;
  const auto& jobs = m.desired.applied->cluster.jobs;
  return std::any_of(jobs.begin(), jobs.end(), [&](const Job& job) { return job.name == name; });
}

/// "train" of `python3 -u src/train.py --lr 0.1`: the script if there is one, else the program.
std::string stem_of(const std::vector<std::string>& argv) {
  std::string word = argv.front();
  for (const std::string& argument : argv)
    if (argument.size() > 3 && argument.ends_with(".py")) {
      word = argument;
      break;
    }
  word = word.substr(word.rfind('/') + 1);
  word = word.substr(0, word.find('.'));
  std::string stem;
  for (char c : lower(word))
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_') stem += c;
  while (!stem.empty() && (stem.front() == '-' || stem.front() == '_'))
    stem.erase(0, 1);
  return stem.empty() ? "run" : stem.substr(0, longest_stem);
}

/// The first of "train", "train-2", "train-3" … that no job and no dataset has.
Result<JobName> free_name(const Machine& m, const std::string& stem) {
  for (int number = 1; number < most_numbers; ++number) {
    JobName name(number == 1 ? stem : fmt::format("{}-{}", stem, number));
    auto dataset = DatasetName::parse("jobs/" + name.str());
    if (dataset && !is_taken(m, *dataset) && !m.desired.by_name.contains(name) &&
        !is_declared(m, name))
      return name;
  }
  return fail(ErrorCode::refused, "all numbers after " + stem + " are taken",
              "zedctl run --name NAME -- COMMAND");
}

/// A name that a person gave: free, or its last job is over.
Status may_take(const Machine& m, const JobName& name) {
  if (is_declared(m, name))
    return fail(ErrorCode::refused, "the cluster file declares job " + name.str(),
                "zedctl dispatch " + name.str() + ", or another --name");
  auto holder = m.desired.by_name.find(name);
  if (holder == m.desired.by_name.end()) return {};
  const DesiredJob& job = *m.desired.find(holder->second);
  if (job.is_terminal()) return {};
  return fail(ErrorCode::refused,
              fmt::format("job {} is {} already", name.str(), to_string(state_of(m, job))),
              fmt::format("zedctl why {0}; zedctl cancel {0} frees the name", name.str()));
}

Result<DatasetName> dataset_for(const Machine& m, const JobName& name) {
  ZED_TRY(DatasetName dataset, DatasetName::parse("jobs/" + name.str()));
  for (int number = 2; is_taken(m, dataset) && number < most_numbers; ++number) {
    ZED_TRY(dataset, DatasetName::parse(fmt::format("jobs/{}-{:03}", name.str(), number)));
  }
  if (is_taken(m, dataset))
    return fail(ErrorCode::refused, "all numbers after jobs/" + name.str() + " are taken");
  return dataset;
}

Status read_inputs(const Machine& m, const api::RunJob& op, Job& job) {
  if (!op.model.empty()) {
    job.model = ModelName(op.model);
    auto dataset = dataset_of_model(m, *job.model);
    if (!dataset || !m.fleet.uuid_of(*dataset))
      return fail(ErrorCode::not_found, "model " + percent_encode(op.model) + " is on no node",
                  "zedctl models; zedctl model add FILE --name NAME");
    const DatasetId uuid = *m.fleet.uuid_of(*dataset);
    const Dataset* copy = m.fleet.copy(m.fleet.holders(uuid).front(), uuid);
    if (auto needs = Requirement::parse(copy->property("requires")))
      job.requirement = needs->overridden_by(op.requirement);
  }
  for (const std::string& typed : op.data) {
    ZED_TRY(DatasetName dataset, find_dataset(m, typed));
    job.data.push_back(std::move(dataset));
  }
  job.inputs = inputs_to_pin(m, job);
  return {};
}

/// A name is part of a dataset's, and of what people type before '@' and ':'.
bool is_name(std::string_view name) {
  constexpr std::size_t longest = 64;
  return name.size() <= longest && name.front() != '.' && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
         });
}

Status check_variable(const std::string& name) {
  if (is_set_by_zed(name))
    return fail(ErrorCode::invalid,
                "Zed itself sets " + percent_encode(name.substr(0, 80)) + " for each attempt",
                "choose another name");
  if (!name.empty() && name.find('=') == std::string::npos) return {};
  return fail(ErrorCode::invalid,
              "\"" + percent_encode(name.substr(0, 80)) + "\" cannot be a variable of a job",
              "a name of 1 or more characters without '='");
}

Status check(const api::RunJob& op) {
  if (op.argv.empty() || op.argv.front().empty())
    return fail(ErrorCode::invalid, "there is no command to run", "zedctl run -- python3 train.py");
  if (!op.name.empty() && !is_name(op.name))
    return fail(ErrorCode::invalid, "\"" + percent_encode(op.name) + "\" is no name of a job",
                "1 to 64 letters, digits, '_', '-' and '.', not beginning with '-' or '.'");
  if (!op.code.empty() && (op.code.front() != '/' || op.code.find('\0') != std::string::npos))
    return fail(ErrorCode::invalid, "code " + percent_encode(op.code) + " is no absolute path");
  if (op.setup.find('\0') != std::string::npos)
    return fail(ErrorCode::invalid, "the setup command has a NUL in it");
  if (op.setup_timeout && op.setup_timeout->value <= 0)
    return fail(ErrorCode::invalid, "the time-out of setup is not above 0");
  if (op.retries < 0 || op.retries > 1000)
    return fail(ErrorCode::invalid, "retries are from 0 to 1000");
  if (op.priority < -100 || op.priority > 100)
    return fail(ErrorCode::invalid, "a priority is from -100 to 100");
  for (const auto& entry : op.env)
    ZED_CHECK(check_variable(entry.first));
  return {};
}

Result<DesiredJob> job_to_run(const Machine& m, const api::RunJob& op, const JobId& id) {
  ZED_CHECK(check(op));
  DesiredJob desired;
  Job& job = desired.job;
  job.id = id;
  if (op.name.empty()) {
    ZED_TRY(job.name, free_name(m, stem_of(op.argv)));
  } else {
    job.name = JobName(op.name);
    ZED_CHECK(may_take(m, job.name));
  }
  ZED_TRY(job.dataset, dataset_for(m, job.name));
  job.argv = op.argv;
  job.env = op.env;
  if (!op.code.empty()) job.code = op.code;
  if (!op.setup.empty()) job.setup = op.setup;
  job.setup_timeout = op.setup_timeout;
  job.requirement = op.requirement;
  ZED_CHECK(read_inputs(m, op, job));
  ZED_TRY(job.prefer, with_known_nodes(m.desired, m.fleet.view(), op.prefer));
  job.retries = op.retries;
  job.priority = op.priority;
  job.timeout = op.timeout;
  if (!op.checkpoint_every.empty()) {
    ZED_TRY(job.checkpoint_policy, spec::parse_checkpoint_policy(op.checkpoint_every));
  }
  if (auto rejection = impossible(m, desired))
    return fail(
        ErrorCode::unplaceable,
        fmt::format("no node can ever hold job {}: {}", job.name.str(), sched::show(*rejection)),
        rejection->nearest.empty() ? "" : "the nearest fit is " + rejection->nearest.str());
  return desired;
}

Result<Value> submitted(Machine& m, const JobId& id) {
  const DesiredJob& job = *m.desired.find(id);
  api::DispatchReply reply;
  reply.job = row_of(m, job);
  reply.safe = is_safe(m, job);
  if (job.placed)
    reply.placement = Placement{job.placed->node, job.placed->gpus, 0, job.placed->why};
  return api::encode_reply(reply);
}

/// Answers if the same submit came before: its answer was lost.
bool was_submitted(const Asked& asked, const JobId& id) {
  if (asked.m.desired.find(id) == nullptr) return false;
  asked.reply_when_safe(safe_when(id), [id](Machine& machine) { return submitted(machine, id); });
  return true;
}

void submit(const Asked& asked, const DesiredJob& job) {
  const JobId id = job.job.id;
  Submitted decided;
  decided.job = job.job;
  decided.by = asked.by();
  decided.at = asked.m.now.wall;
  const Record record = decided;
  if (encode_record(record).size() > largest_record)
    return asked.refuse(ErrorCode::invalid, "the job is too large: command and environment have "
                                            "more than 200 KiB");
  asked.m.record(record);
  asked.audit("job " + job.job.name.str(), "run");
  asked.reply_when_safe(safe_when(id), [id](Machine& machine) { return submitted(machine, id); });
}

Result<NodeName> code_node(const Machine& m, const api::RunJob& op) {
  NodeName node = m.home_machine;
  if (!op.node.empty()) {
    ZED_TRY(node, find_node(m.desired, m.fleet.view(), op.node));
  }
  if (!node.empty() && m.fleet.is_ready(node)) return node;
  const char* hint = "zedctl nodes; --code-on NODE says whose disk has it";
  if (node.empty())
    return fail(ErrorCode::unavailable, "the code lies on a machine without an agent", hint);
  return fail(ErrorCode::unavailable,
              fmt::format("the code lies on {}, which {}", node.str(), m.fleet.absence(node)),
              hint);
}

/// The folder as it is now becomes a dataset, and only then there is a job: what is edited after
/// the answer is not submitted, and a folder that cannot be read refuses the submit.
void pack_and_submit(const Asked& asked, const api::RunJob& op, const DesiredJob& job) {
  Machine& m = asked.m;
  auto node = code_node(m, op);
  if (!node) return asked.refuse(node.error());
  const JobId id = job.job.id;
  if (auto ordered = pack_code(m, id, op.code, *node); !ordered)
    return asked.refuse(ordered.error());
  asked.continue_with_outcome(code_need(id), *node, packing_patience, "pack the code in " + op.code,
                              [op, id](const Asked& again, const NeedOutcome& packed) {
                                if (was_submitted(again, id) || !again.may_change()) return;
                                auto checked = job_to_run(again.m, op, id);
                                if (!checked) return again.refuse(checked.error());
                                checked->job.content = packed.snapshot;
                                submit(again, *checked);
                              });
}

}  // namespace

void handle(const Asked& asked, const api::RunJob& op) {
  JobId id = asked.m.fresh<JobId>();
  if (!op.uuid.empty()) {
    auto parsed = JobId::parse(op.uuid);
    if (!parsed || parsed->is_nil())
      return asked.refuse(ErrorCode::invalid, "uuid is not 32 hexadecimal digits");
    id = *parsed;
    if (was_submitted(asked, id)) return;
  }
  auto job = job_to_run(asked.m, op, id);
  if (!job) return asked.refuse(job.error());
  if (job->job.code) return pack_and_submit(asked, op, *job);
  submit(asked, *job);
}

}  // namespace zed::controller
