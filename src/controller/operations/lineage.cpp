// What a model or a job was made from, and what was made from it: read from properties of models
// and from what jobs are declared to use.

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "controller/imports.hpp"
#include "controller/names.hpp"
#include "controller/operations/models.hpp"

namespace zed::controller {
namespace {

constexpr std::int64_t deepest = 32;
constexpr std::size_t most_rows = 1000;

std::string property_of(const api::ModelRow& row, const char* key) {
  auto found = row.properties.find(key);
  return found == row.properties.end() ? "" : found->second;
}

std::string outcome_of(const api::ModelRow& row) {
  std::vector<std::string> parts;
  for (const char* key : {"epochs", "loss"})
    if (auto value = property_of(row, key); !value.empty())
      parts.push_back(std::string(key) + " " + value);
  return join(parts, ", ");
}

/// Walks one way from a subject. A name is followed once, so that a circle ends.
class Walk {
public:
  explicit Walk(const Machine& m) : m_(m), models_(models_reply(m).models) {}

  std::vector<api::LineageRow> origins_of_model(const api::ModelRow& row) {
    from_model(row, 1);
    return std::move(rows_);
  }
  std::vector<api::LineageRow> origins_of_job(const DesiredJob& job) {
    from_job(job, 1);
    return std::move(rows_);
  }
  std::vector<api::LineageRow> uses_of_model(const api::ModelRow& row) {
    into_model(row, 1);
    return std::move(rows_);
  }
  std::vector<api::LineageRow> uses_of_job(const DesiredJob& job) {
    into_job(job, 1);
    return std::move(rows_);
  }

private:
  bool add(std::int64_t depth, const char* kind, const std::string& name, std::string detail) {
    if (depth > deepest || rows_.size() >= most_rows || !seen_.insert(kind + name).second)
      return false;
    rows_.push_back({depth, kind, name, std::move(detail)});
    return true;
  }

  const DesiredJob* job_called(const std::string& name) const {
    auto id = find_job(m_.desired, name);
    return id ? m_.desired.find(*id) : nullptr;
  }

  void from_model(const api::ModelRow& row, std::int64_t depth) {
    const std::string job = property_of(row, "job");
    const std::string source = property_of(row, "source");
    if (job.empty()) {
      if (!source.empty()) add(depth, "source", source, "imported");
      return;
    }
    const std::size_t at = source.rfind('@');
    const std::string checkpoint = at == std::string::npos ? "" : source.substr(at);
    if (!add(depth, "job", job + checkpoint, outcome_of(row))) return;
    if (const DesiredJob* known = job_called(job)) return from_job(*known, depth + 1);
    // The job is forgotten; what it left in the model's properties is not.
    for (const std::string& data : split(property_of(row, "trained_on"), ','))
      if (!data.empty()) add(depth + 1, "data", data, "");
    from_base(property_of(row, "base_model"), depth + 1);
  }

  void from_base(const std::string& base, std::int64_t depth) {
    if (base.empty()) return;
    auto row = find_model(m_, base);
    if (add(depth, "model", row ? versioned(*row) : base,
            row ? row->dataset : "not here any more") &&
        row)
      from_model(*row, depth + 1);
  }

  void from_job(const DesiredJob& job, std::int64_t depth) {
    if (job.job.code)
      add(depth, "code", *job.job.code,
          job.job.content ? code_dataset(*job.job.content).str() : "not packed yet");
    for (const DatasetName& data : job.job.data)
      from_data(job.job, data, depth);
    if (!job.job.model) return;
    auto dataset = dataset_of_model(m_, *job.job.model);
    from_base(dataset ? dataset->str() : job.job.model->str(), depth);
  }

  /// A data set, as of the snapshot that the job was submitted with.
  void from_data(const Job& job, const DatasetName& data, std::int64_t depth) {
    const Input* pinned = find_pin(job, data);
    if (pinned == nullptr) {
      add(depth, "data", data.str(), "no snapshot yet");
      return;
    }
    add(depth, "data", shown_input(m_, *pinned), "snapshot " + pinned->snapshot.str());
  }

  void into_model(const api::ModelRow& row, std::int64_t depth) {
    for (const auto& [id, job] : m_.desired.jobs) {
      if (!job.job.model) continue;
      auto dataset = dataset_of_model(m_, *job.job.model);
      if (!dataset || dataset->str() != row.dataset) continue;
      if (add(depth, "job", job.job.name.str(), std::string(to_string(state_of(m_, job)))))
        into_job(job, depth + 1);
    }
    // Models whose job is forgotten.
    for (const api::ModelRow& other : models_)
      if (property_of(other, "base_model") == versioned(row) &&
          job_called(property_of(other, "job")) == nullptr &&
          add(depth, "model", versioned(other), other.dataset))
        into_model(other, depth + 1);
  }

  void into_job(const DesiredJob& job, std::int64_t depth) {
    for (const api::ModelRow& row : models_)
      if (property_of(row, "job") == job.job.name.str() &&
          add(depth, "model", versioned(row), property_of(row, "source")))
        into_model(row, depth + 1);
  }

  const Machine& m_;
  std::vector<api::ModelRow> models_;
  std::vector<api::LineageRow> rows_;
  std::set<std::string> seen_;
};

}  // namespace

void handle(const Asked& asked, const api::ShowLineage& op) {
  const Machine& m = asked.m;
  api::LineageReply reply;
  if (auto row = find_model(m, op.subject)) {
    reply.subject = "model " + versioned(*row);
    reply.from = Walk(m).origins_of_model(*row);
    reply.into = Walk(m).uses_of_model(*row);
    return asked.reply(reply);
  }
  auto id = find_job(m.desired, op.subject.substr(0, op.subject.find('@')));
  if (!id)
    return asked.refuse(ErrorCode::not_found,
                        "there is no model and no job \"" +
                            percent_encode(op.subject.substr(0, 80)) + "\"",
                        "zedctl model ls; zedctl jobs --all");
  const DesiredJob& job = *m.desired.find(*id);
  reply.subject = "job " + job.job.name.str();
  reply.from = Walk(m).origins_of_job(job);
  reply.into = Walk(m).uses_of_job(job);
  asked.reply(reply);
}

}  // namespace zed::controller
