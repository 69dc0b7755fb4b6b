#include "spec/validate.hpp"

#include <algorithm>
#include <map>

namespace zed::spec {
namespace {

constexpr std::size_t most_cycles = 20;

class Validator {
public:
  Validator(const Source& source, Report& report) : reader_(source, report), report_(report) {}

  std::optional<Cluster> run(const Block& file) {
    // Names are resolved only where all declarations could be read: a faulty one would make every
    // mention of it a second error.
    bool all_read = !report_.failed();
    reader_.each(file, Place::file, [&](const Met& met) { read_top(met); });
    if (deploy_ == nullptr && all_read && !report_.failed())
      reader_.error(0, "the file declares no fleet",
                    "it needs one `deploy :name, pool: \"tank\" do … end`");
    if (all_read) resolve();
    if (report_.failed()) return std::nullopt;
    return assemble();
  }

private:
  // --- reading
  void read_top(const Met& met) {
    if (met.verb.name == "deploy") return read_deploy(met);
    if (module_ != nullptr)
      return reader_.error(met.call.offset, "a second `defmodule`", "a file has one");
    module_ = &met.call;
    if (const Expression* name = reader_.only(met); name && name->kind != Expression::Kind::alias)
      reader_.wrong(*name, "`defmodule`", "a module's name", "write for example `MyCluster.GPU`");
    if (!met.call.block) return;
    bool uses = false;
    reader_.each(*met.call.block, Place::module, [&](const Met& inner) {
      if (inner.verb.name == "deploy") return read_deploy(inner);
      if (inner.verb.name == "@moduledoc") return check_moduledoc(inner);
      uses = true;
      const Expression* what = reader_.only(inner);
      if (what && what->text != "Zed.DSL") reader_.wrong(*what, "`use`", "`Zed.DSL`");
    });
    if (!uses && !met.call.broken)
      reader_.error(met.call.offset, "`use Zed.DSL` is missing in this module",
                    "add it as the first line after `do`");
  }

  void check_moduledoc(const Met& met) {
    const Expression* value = reader_.only(met);
    bool hidden = value && value->kind == Expression::Kind::boolean && !value->boolean;
    if (value && !value->is_string() && !hidden)
      reader_.wrong(*value, "`@moduledoc`", "a string or `false`");
  }

  void read_deploy(const Met& met) {
    if (deploy_ != nullptr)
      return reader_.error(met.call.offset,
                           "a second `deploy`; the first is on line " +
                               std::to_string(reader_.line(deploy_->offset)),
                           "a file declares one fleet: put the other into its own file");
    deploy_ = &met.call;
    if (const Expression* value = reader_.first(met))
      cluster_.name = reader_.component(*value, "`deploy`").value_or("");
    reader_.keywords(met, {"pool"}, false, [&](const Argument& argument) {
      cluster_.pool = reader_.pool(argument.value, "`pool:`").value_or("");
    });
    if (met.call.block)
      reader_.each(*met.call.block, Place::deploy, [&](const Met& inner) { declare(inner); });
  }

  void declare(const Met& met) {
    if (met.verb.name == "node") {
      if (auto draft = read_node(reader_, met)) add("node", nodes_, draft->node.name, *draft);
    } else if (met.verb.name == "model") {
      if (auto draft = read_model(reader_, met)) add("model", models_, draft->model.name, *draft);
    } else if (met.verb.name == "job") {
      if (auto draft = read_job(reader_, met)) add("job", jobs_, draft->job.name, *draft);
    } else if (met.verb.name == "dataset") {
      if (auto draft = read_data(reader_, met)) add("dataset", data_, draft->data.dataset, *draft);
    } else {
      if (auto draft = read_policy(reader_, met))
        add("replicate", policies_, draft->policy.name, *draft);
    }
  }

  static const std::string& text_of(const std::string& name) { return name; }
  template <class Name> static const std::string& text_of(const Name& name) { return name.str(); }

  template <class Name, class Draft>
  void add(std::string_view kind, std::map<Name, Draft>& drafts, const Name& name, Draft& draft) {
    auto [first, fresh] = drafts.try_emplace(name, draft);
    if (fresh) return;
    reader_.error(draft.offset,
                  "a second `" + std::string(kind) + "` named " + quote(text_of(name)) +
                      "; the first is on line " +
                      std::to_string(reader_.line(first->second.offset)),
                  "give it another name, or remove it");
  }

  // --- resolving
  template <class Name, class Draft>
  static std::vector<std::string> names_of(const std::map<Name, Draft>& drafts) {
    std::vector<std::string> names;
    for (const auto& entry : drafts)
      names.push_back(text_of(entry.first));
    return names;
  }

  void resolve() {
    node_names_ = names_of(nodes_);
    model_names_ = names_of(models_);
    job_names_ = names_of(jobs_);
    data_names_ = names_of(data_);
    selectable_ = model_names_;
    selectable_.insert(selectable_.end(), job_names_.begin(), job_names_.end());
    selectable_.insert(selectable_.end(), {"models", "jobs"});
    resolve_datasets();
    collect_prefixes();
    for (auto& entry : jobs_)
      resolve_job(entry.second);
    find_cycles();
    for (auto& entry : policies_)
      resolve_policy(entry.second);
  }

  struct Owner {
    std::string what;
    std::size_t offset;
  };

  /// No two declarations may own one dataset, nor one inside another's.
  void resolve_datasets() {
    for (const auto& entry : models_)
      own(entry.second.model.dataset, "model " + quote(entry.first.str()),
          entry.second.dataset_offset);
    for (const auto& entry : data_)
      own(entry.first, "dataset " + quote(entry.first.str()), entry.second.offset);
    for (const auto& entry : jobs_)
      own(entry.second.job.dataset, "job " + quote(entry.first.str()), entry.second.dataset_offset);
    for (const auto& [dataset, owner] : owners_) {
      std::string ancestor = dataset.parent();
      while (!ancestor.empty()) {
        auto name = DatasetName::parse(ancestor);
        auto outer = owners_.find(*name);
        if (outer != owners_.end())
          reader_.error(owner.offset,
                        "dataset \"" + dataset.str() + "\" of " + owner.what +
                            " lies inside that of " + outer->second.what,
                        "give each its own dataset");
        ancestor = name->parent();
      }
    }
  }

  void own(const DatasetName& dataset, std::string what, std::size_t offset) {
    auto [first, fresh] = owners_.try_emplace(dataset, Owner{what, offset});
    if (!fresh)
      reader_.error(std::max(offset, first->second.offset),
                    "dataset \"" + dataset.str() + "\" belongs to " + first->second.what +
                        " and to " + what,
                    "give each its own dataset");
  }

  void warn_undeclared(const Reference<NodeName>& node, const std::string& consequence) {
    if (nodes_.count(node.name) > 0) return;
    reader_.warning(node.offset, "node " + quote(node.name.str()) + " is not declared in this file",
                    reader_.nearest(node.name.str(), node_names_, consequence));
  }

  void resolve_job(JobDraft& draft) {
    for (const auto& wished : draft.wished_nodes)
      warn_undeclared(wished, "the wish counts once a node of that name joins");
    for (const auto& wanted : draft.after)
      if (jobs_.count(wanted.name) == 0)
        reader_.error(wanted.offset, "job " + quote(wanted.name.str()) + " is not declared",
                      reader_.nearest(wanted.name.str(), job_names_, "declare it in this file"));
    for (const auto& wanted : draft.data)
      warn_undeclared_data(wanted);
    if (!draft.model) return;
    const std::string name = draft.model->name.str();
    auto model = models_.find(ModelName(name.substr(0, name.find('@'))));
    if (model != models_.end()) {
      draft.job.requirement = model->second.model.requirement.overridden_by(draft.job.requirement);
      return;
    }
    reader_.warning(
        draft.model->offset, "model " + quote(name) + " is not declared in this file",
        reader_.nearest(name, model_names_, "the job waits until a model of that name exists"));
  }

  /// A data set made by hand needs no declaration; one that is nearly declared is a slip.
  void warn_undeclared_data(const Reference<DatasetName>& wanted) {
    if (data_.count(wanted.name) > 0) return;
    std::string hint = reader_.nearest(wanted.name.str(), data_names_);
    if (!hint.empty())
      reader_.warning(wanted.offset,
                      "dataset \"" + wanted.name.str() + "\" is not declared in this file", hint);
  }

  /// Jobs that wait for themselves. Depth first, without recursion: a chain may be long.
  void find_cycles() {
    enum class Mark { fresh, open, done };
    std::map<JobName, Mark> marks;
    std::size_t found = 0;
    for (const auto& entry : jobs_) {
      if (marks[entry.first] != Mark::fresh) continue;
      std::vector<std::pair<const JobDraft*, std::size_t>> path{{&entry.second, 0}};
      marks[entry.first] = Mark::open;
      while (!path.empty()) {
        const JobDraft& job = *path.back().first;
        if (path.back().second == job.after.size()) {
          marks[job.job.name] = Mark::done;
          path.pop_back();
          continue;
        }
        const auto& next = job.after[path.back().second++];
        auto target = jobs_.find(next.name);
        if (target == jobs_.end() || marks[next.name] == Mark::done) continue;
        if (marks[next.name] == Mark::open) {
          if (++found <= most_cycles) report_cycle(path, next);
          continue;
        }
        marks[next.name] = Mark::open;
        path.push_back({&target->second, 0});
      }
    }
  }

  void report_cycle(const std::vector<std::pair<const JobDraft*, std::size_t>>& path,
                    const Reference<JobName>& back) {
    std::string circle = back.name.str();
    auto start = std::find_if(path.begin(), path.end(),
                              [&](const auto& step) { return step.first->job.name == back.name; });
    constexpr std::ptrdiff_t most_shown = 10;
    if (path.end() - start > most_shown)
      circle += " -> …";
    else
      for (auto step = start + 1; step != path.end(); ++step)
        circle += " -> " + step->first->job.name.str();
    reader_.error(back.offset,
                  "job " + quote(back.name.str()) + " would wait for itself: " + circle + " -> " +
                      back.name.str(),
                  "take one `after` away");
  }

  // --- policies
  void resolve_policy(PolicyDraft& draft) {
    for (const auto& node : draft.nodes)
      warn_undeclared(node, "the policy waits until a node of that name joins");
    ReplicationPolicy& policy = draft.policy;
    if (prefixes_.count(policy.selector.str()) > 0) return;
    auto model = models_.find(ModelName(policy.name));
    if (model != models_.end()) {
      policy.selects = ReplicationPolicy::Selects::model;
      policy.selector = model->second.model.dataset;
      return;
    }
    auto job = jobs_.find(JobName(policy.name));
    if (job != jobs_.end()) {
      policy.selects = ReplicationPolicy::Selects::job;
      policy.selector = job->second.job.dataset;
      return;
    }

    reader_.warning(draft.offset,
                    "nothing in this file is named or stored under " + quote(policy.name),
                    reader_.nearest(policy.name, selectable_,
                                    "the policy selects datasets under it once there are some"));
  }

  /// Every dataset and root of this file, with all that they lie under.
  void collect_prefixes() {
    prefixes_ = {"models", "jobs"};
    auto add = [this](const DatasetName& name) {
      for (std::string path = name.str(); !path.empty(); path = DatasetName::parse(path)->parent())
        if (!prefixes_.insert(path).second) return;
    };
    for (const auto& owner : owners_)
      add(owner.first);
    for (const auto& entry : nodes_)
      for (const DatasetName& root : entry.second.node.dataset_roots)
        add(root);
  }

  std::optional<Cluster> assemble() {
    for (auto& entry : nodes_)
      cluster_.nodes.push_back(std::move(entry.second.node));
    for (auto& entry : models_)
      cluster_.models.push_back(std::move(entry.second.model));
    for (auto& entry : data_)
      cluster_.data.push_back(std::move(entry.second.data));
    for (auto& entry : jobs_)
      cluster_.jobs.push_back(std::move(entry.second.job));
    for (auto& entry : policies_)
      cluster_.policies.push_back(std::move(entry.second.policy));
    return std::move(cluster_);
  }

  Reader reader_;
  Report& report_;
  Cluster cluster_;
  const Call* module_ = nullptr;
  const Call* deploy_ = nullptr;
  std::map<NodeName, NodeDraft> nodes_;
  std::map<ModelName, ModelDraft> models_;
  std::map<DatasetName, DataDraft> data_;
  std::map<JobName, JobDraft> jobs_;
  std::map<std::string, PolicyDraft> policies_;
  std::map<DatasetName, Owner> owners_;
  // What a wrong word is compared with.
  std::vector<std::string> node_names_;
  std::vector<std::string> model_names_;
  std::vector<std::string> job_names_;
  std::vector<std::string> data_names_;
  std::vector<std::string> selectable_;
  std::set<std::string> prefixes_;
};

}  // namespace

std::optional<Cluster> validate(const Parsed& parsed, const Source& source, Report& report) {
  // Where blocks begin and end is unknown, what stands inside which is a guess.
  if (!parsed.structure_known) return std::nullopt;
  return Validator(source, report).run(parsed.file);
}

}  // namespace zed::spec
