#include "cli/arguments.hpp"
#include "cli/model_arguments.hpp"
#include "spec/quantity.hpp"

#include <algorithm>
#include <functional>
#include <memory>

#include <CLI/CLI.hpp>

#include "base/text.hpp"
#include "cli/daily_arguments.hpp"
#include "cli/membership_arguments.hpp"
#include "cli/view.hpp"

namespace zed::cli {
namespace {

/// The grammar and where its values go. Commands are told apart by a callback that sets `command`.
class Grammar {
public:
  Grammar();
  std::variant<Invocation, Said> read(const std::vector<std::string>& arguments);
  std::vector<CommandShape> shapes() const;

private:
  CLI::App* add(CLI::App& parent, const std::string& name, const std::string& help,
                std::function<Command()> make);
  void add_files();
  void add_looks();
  void add_jobs();
  void add_orders();
  void add_rest();
  void add_dev();
  void add_common(CLI::App& app);
  template <class Operation> CLI::App* add_look(const std::string& help);
  template <class Operation> void add_order(const std::string& help);
  void add_duty(const std::string& name, api::NodeDuty duty, const std::string& help);

  CLI::App app_{"Runs a small, mixed GPU fleet as one thing.", "zedctl"};
  Common common_;
  std::string output_;
  std::function<Command()> make_;

  std::string name_;  ///< the JOB, NODE or FILE of any command
  std::string second_;
  bool all_ = false;
  FormatFile format_;
  AddModelCommand model_;
  ModelArguments models_;
  DispatchCommand dispatch_;
  LogsCommand logs_;
  EventsCommand events_;
  RollbackCommand rollback_;
  ResumeCommand resume_;
  MatchCommand match_;
  DailyArguments daily_;
  MembershipArguments membership_;
  api::SyncToRemote sync_;
  api::ExpireBranch expire_;
  bool never_ = false;
};

Grammar::Grammar() {
  app_.require_subcommand(1);
  app_.get_formatter()->column_width(34);
  app_.footer("Exit status: 0 done, 1 error, 2 changes pending (plan), 3 cannot be placed,\n"
              "4 not found, 5 refused. zedctl COMMAND --help says more.");
  add_common(app_);
  add_files();
  add_looks();
  add_jobs();
  add_orders();
  daily_.add_to([this](const std::string& name, const std::string& help,
                       std::function<Command()> make) { return add(app_, name, help, make); },
                common_.watch);
  add_rest();
  membership_.add_to(app_, [this](CLI::App& parent, const std::string& name,
                                  const std::string& help, std::function<Command()> make) {
    return add(parent, name, help, std::move(make));
  });
  add_dev();
}

void Grammar::add_common(CLI::App& app) {
  app.add_flag("--json", common_.json, "print the reply as JSON (docs/zedctl.md)");
  app.add_option("-o", output_, "\"wide\": more columns; \"json\"; \"csv\": rows for a spreadsheet")
      ->check(CLI::IsMember({"wide", "json", "csv"}))
      ->type_name("FORM");
  app.add_flag("-y,--yes", common_.yes, "do not ask");
  app.add_flag("--no-color", common_.no_color, "no colours (also NO_COLOR)");
  app.add_option("--socket", common_.socket, "the controller's socket (also ZED_CONTROLLER)")
      ->type_name("PATH");
}

CLI::App* Grammar::add(CLI::App& parent, const std::string& name, const std::string& help,
                       std::function<Command()> make) {
  CLI::App* sub = parent.add_subcommand(name, help);
  add_common(*sub);
  sub->callback([this, make = std::move(make)] { make_ = make; });
  return sub;
}

void Grammar::add_files() {
  auto* check = add(app_, "check", "say what is wrong with a cluster file",
                    [this] { return CheckFile{name_}; });
  check->add_option("FILE", name_, "a cluster file, or -")->required()->type_name("");
  auto* format = add(app_, "fmt", "print a cluster file in its canonical layout", [this] {
    format_.file = name_;
    return format_;
  });
  format->add_option("FILE", name_, "a cluster file, or -")->required()->type_name("");
  auto* write = format->add_flag("-w,--write", format_.write, "rewrite the file");
  format->add_flag("--check", format_.check, "only say whether it would change (status 1)")
      ->excludes(write);
  auto* plan = add(app_, "plan", "show what applying a cluster file would change",
                   [this] { return PlanFile{name_}; });
  plan->add_option("FILE", name_, "a cluster file, or -")->required()->type_name("");
  auto* apply = add(app_, "apply", "make a cluster file the declared fleet",
                    [this] { return ApplyFile{name_}; });
  apply->add_option("FILE", name_, "a cluster file, or -")->required()->type_name("");
}

template <class Operation> CLI::App* Grammar::add_look(const std::string& help) {
  auto* sub = add(app_, std::string(Operation::tag), help, [] { return Look{Operation{}}; });
  sub->add_flag("-w,--watch", common_.watch, "again every second until Ctrl-C");
  return sub;
}

void Grammar::add_looks() {
  add_look<api::GetStatus>("the fleet in a few lines");
  add_look<api::ListNodes>("machines, their GPUs, stores and health");
  add_look<api::ListModels>("models and who holds them");
  auto* jobs = add(app_, "jobs", "jobs, their state, node and newest checkpoint",
                   [this] { return Look{api::ListJobs{all_}}; });
  jobs->add_flag("-a,--all", all_, "finished and only declared ones too");
  jobs->add_flag("-w,--watch", common_.watch, "again every second until Ctrl-C");
  add_look<api::ListTransfers>("what is moving, with bytes, rate and time left");
  auto* checkpoints = add(app_, "checkpoints", "a job's checkpoints, branches and their copies",
                          [this] { return Look{api::ListCheckpoints{name_}}; });
  checkpoints->add_option("JOB", name_)->required()->type_name("");
  checkpoints->add_flag("-w,--watch", common_.watch, "again every second until Ctrl-C");
  auto* why = add(app_, "why", "why a job is where it is, or runs nowhere",
                  [this] { return Look{api::WhyJob{name_}}; });
  why->add_option("JOB", name_)->required()->type_name("");
  auto* match = add(app_, "match", "which nodes can hold something, and why the others cannot",
                    [this] { return match_; });
  match->add_option("-r,--requires", match_.requires_, "vram=48, gpus=2, gpu=A100, labels=fast ...")
      ->required()
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  match->add_option("--prefer", match_.prefer, "gpu=A100, node=NODE, label=WORD; best first")
      ->type_name("KIND=VALUE")
      ->allow_extra_args(false);
}

void Grammar::add_jobs() {
  auto* dispatch = add(app_, "dispatch", "submit a declared job", [this] {
    dispatch_.job = name_;
    return dispatch_;
  });
  dispatch->add_option("JOB", name_)->required()->type_name("");
  dispatch->add_option("--prefer", dispatch_.prefer, "gpu=A100, node=NODE, label=WORD; best first")
      ->type_name("KIND=VALUE")
      ->allow_extra_args(false);
  dispatch->add_option("--fallback", dispatch_.fallback, "the same, tried after --prefer")
      ->type_name("KIND=VALUE")
      ->allow_extra_args(false);
  dispatch->add_flag("--again", dispatch_.again, "a new run of a job that succeeded");
  dispatch->add_option("--from", dispatch_.from, "with --again: begin at this checkpoint")
      ->type_name("@CHECKPOINT");
  dispatch
      ->add_option("--array", dispatch_.array,
                   "a job for each value, {NAME} in its command; several: each combination")
      ->type_name("NAME=VALUE,...")
      ->allow_extra_args(false);
  dispatch->add_flag("--wait", dispatch_.wait, "until it ends; the status is the job's");
  dispatch->footer("Words after -- replace the command of the cluster file.");
  auto* logs = add(app_, "logs", "what a job wrote", [this] {
    logs_.job = name_;
    return logs_;
  });
  logs->add_option("JOB", name_)->required()->type_name("");
  logs->add_flag("-f,--follow", logs_.follow, "go on until the job ends or Ctrl-C");
  logs->add_option("-n,--lines", logs_.lines, "from the end (100)")->check(CLI::Range(1, 1000000));
  logs->add_flag("-a,--all", logs_.all, "from the start");
  logs->add_flag("-t,--times", logs_.times, "with the time of each line");
  auto* rollback = add(app_, "rollback", "begin a new timeline at a checkpoint", [this] {
    rollback_.target = name_;
    return rollback_;
  });
  rollback->add_option("JOB@CHECKPOINT", name_)->required()->type_name("");
  rollback->add_flag("--discard", rollback_.discard,
                     "destroy what is newer instead of keeping it as a branch");
  rollback->add_flag("--hold", rollback_.hold, "do not resume by itself afterwards");
  rollback->add_flag("--force", rollback_.force, "although its home cannot be reached");
  rollback->add_flag("-n,--dry-run", rollback_.dry_run, "only say what would go");
  auto* resume =
      add(app_, "resume", "run a job again from a checkpoint, here or elsewhere", [this] {
        resume_.job = name_;
        return resume_;
      });
  resume->add_option("JOB", name_)->required()->type_name("");
  resume->add_option("--from", resume_.from, "the newest if not given; \"start\": its input")
      ->type_name("@CHECKPOINT");
  resume->add_option("--on", resume_.on, "the best if not given")->type_name("NODE");
  resume->add_flag("--force", resume_.force, "although its home cannot be reached");
}

template <class Operation> void Grammar::add_order(const std::string& help) {
  auto* sub =
      add(app_, std::string(Operation::tag), help, [this] { return Order{Operation{name_}}; });
  sub->add_option("JOB", name_)->required()->type_name("");
}

void Grammar::add_duty(const std::string& name, api::NodeDuty duty, const std::string& help) {
  auto* sub = add(app_, name, help, [this, duty] { return Order{api::SetNodeDuty{name_, duty}}; });
  sub->add_option("NODE", name_)->required()->type_name("");
}

void Grammar::add_orders() {
  add_order<api::StopJob>("checkpoint if the job can, then stop it; it can be resumed");
  add_order<api::CancelJob>("stop a job for good");
  add_order<api::CheckpointJob>("ask a running job for a checkpoint now");
  auto* sync = add(app_, std::string(api::SyncToRemote::tag),
                   "send a snapshot to another machine now", [this] { return Order{sync_}; });
  sync->add_option("SNAPSHOT", sync_.snapshot, "with its pool: nvme/models/llama@v1")
      ->required()
      ->type_name("");
  sync->add_option("HOST", sync_.destination, "[user@]host")->required()->type_name("");
  sync->add_option("DATASET", sync_.dataset, "there, with its pool: tank/models/llama")
      ->required()
      ->type_name("");
  auto* expire = add(app_, std::string(api::ExpireBranch::tag),
                     "let a branch be destroyed after a time", [this] { return Order{expire_}; });
  expire->add_option("BRANCH", expire_.branch, "jobs/finetune-001.1a2b")->required()->type_name("");
  auto* after = expire->add_option_function<std::string>(
      "--after",
      [this](const std::string& text) {
        auto duration = spec::parse_duration(text);
        if (!duration) throw CLI::ValidationError("--after", duration.error().describe());
        expire_.after = *duration;
      },
      "\"30 days\": at least a day");
  after->type_name("TIME");
  expire->add_flag("--never", never_, "it stays, as all do by themselves")->excludes(after);
  // Not callback(): that is what makes the command.
  expire->parse_complete_callback([this] {
    if (!never_ && !expire_.after)
      throw CLI::ValidationError("expire", "says neither --after TIME nor --never");
  });
  add_duty("cordon", api::NodeDuty::cordon, "no new jobs on a node");
  add_duty("uncordon", api::NodeDuty::uncordon, "take a node back");
  add_duty("drain", api::NodeDuty::drain, "cordon a node and move what runs there");
}

void Grammar::add_rest() {
  auto* model = app_.add_subcommand("model", "import models, and what is known of them");
  model->require_subcommand(1);
  auto* add_model = add(*model, "add", "import a file or folder as a model", [this] {
    model_.path = name_;
    return model_;
  });
  add_model->add_option("FILE", name_, "a file or folder of this machine")
      ->required()
      ->type_name("");
  add_model->add_option("--name", model_.name, "what it is called")->required()->type_name("NAME");
  add_model->add_option("--version", model_.version)->type_name("VERSION");
  add_model->add_option("--node", model_.node, "whose disk FILE is on (the controller's)")
      ->type_name("NODE");
  add_model->add_option("-r,--requires", model_.requires_, "vram=48 ...")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_model->add_option("--property", model_.properties, "quantized=q4_k_m ...")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  models_.add_to(app_, *model,
                 [this](CLI::App& parent, const std::string& name, const std::string& help,
                        std::function<Command()> make) { return add(parent, name, help, make); });
  auto* events = add(app_, "events", "what happened", [this] { return events_; });
  events->add_flag("-f,--follow", events_.follow, "go on until Ctrl-C");
  events->add_option("-n,--limit", events_.limit, "at most so many (50)")
      ->check(CLI::Range(1, 1000));
  events
      ->add_option_function<std::uint64_t>(
          "--after", [this](const std::uint64_t& n) { events_.after = n; },
          "only those with a higher number")
      ->type_name("NUMBER");
  add(app_, "version", "which zedctl this is", [] { return VersionCommand{}; });
  auto* completion = add(app_, "completion", "a completion script for a shell",
                         [this] { return CompletionCommand{name_}; });
  completion->add_option("SHELL", name_, "bash, zsh or fish")
      ->required()
      ->type_name("")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  auto* names = add(app_, "complete-names", "", [this] { return NamesCommand{name_}; });
  names->add_option("KIND", name_)->required()->type_name("");
  names->group("");
}

void Grammar::add_dev() {
  auto* dev = app_.add_subcommand("dev", "a fleet of processes on this machine");
  dev->require_subcommand(1);
  auto add_folder = [this](CLI::App* sub) {
    sub->add_option("--dir", second_, "where its state is kept")->type_name("DIR");
  };
  auto* up = add(*dev, "up", "start it, or what of it does not run", [this] {
    return DevUp{name_, second_};
  });
  up->add_option("PROFILE.json", name_, "machines to pretend (docs/zedctl.md)")->type_name("");
  add_folder(up);
  add_folder(
      add(*dev, "down", "stop it, jobs too; its data stays", [this] { return DevDown{second_}; }));
  add_folder(add(*dev, "status", "its processes", [this] { return DevStatus{second_}; }));
  auto* kill = add(*dev, "kill", "kill -9 one machine: agent, supervisors and jobs", [this] {
    return DevKill{name_, second_};
  });
  kill->add_option("NODE", name_, "or \"controller\"")->required()->type_name("");
  add_folder(kill);
}

/// The command that was reached, and the words before its name.
struct Deepest {
  CLI::App* app;
  std::string parent;
};
Deepest deepest_of(CLI::App& root) {
  Deepest deepest{&root, ""};
  while (!deepest.app->get_subcommands().empty()) {
    deepest.parent += (deepest.parent.empty() ? "" : " ") + deepest.app->get_name();
    deepest.app = deepest.app->get_subcommands().front();
  }
  return deepest;
}

Said usage_error(std::string message, std::string hint) {
  std::string text = "error: " + message + "\n  next: " + hint + "\n";
  return {1, std::move(text), Error{ErrorCode::invalid, std::move(message), {}, std::move(hint)}};
}

/// What is said of a word that stands where a command should and is none; nothing if there is none.
std::optional<Said> unknown_command(const CLI::App& app, const std::string& path) {
  if (!app.get_subcommands().empty()) return std::nullopt;  // it is the command's own word
  std::vector<std::string> known;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!sub->get_group().empty()) known.push_back(sub->get_name());
  const std::vector<std::string> words = app.remaining();
  if (known.empty() || words.empty()) return std::nullopt;
  const std::string& word = words.front();
  const bool is_option = word.front() == '-';
  auto near = is_option ? std::nullopt : nearest_word(word, known);
  return usage_error(path + " has no " + (is_option ? "option " : "command ") + printable(word),
                     near ? "did you mean " + path + " " + *near + "?"
                          : path + " --help lists what it has");
}

/// Where the words after "--" go; nullptr for commands that take none.
struct RestOf {
  std::vector<std::string>* operator()(DispatchCommand& command) const { return &command.argv; }
  std::vector<std::string>* operator()(RunCommand& command) const { return &command.argv; }
  std::vector<std::string>* operator()(ExecCommand& command) const { return &command.argv; }
  template <class Other> std::vector<std::string>* operator()(Other&) const { return nullptr; }
};

std::variant<Invocation, Said> Grammar::read(const std::vector<std::string>& arguments) {
  // What follows "--" is the job's, whatever it looks like: not for the parser.
  auto marker = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> own(arguments.begin(), marker);
  std::vector<std::string> rest;
  if (marker != arguments.end()) rest.assign(marker + 1, arguments.end());
  if (own.empty()) return Said{1, app_.help()};
  std::reverse(own.begin(), own.end());
  try {
    app_.parse(std::move(own));
  } catch (const CLI::CallForHelp&) {
    const Deepest deepest = deepest_of(app_);
    return Said{0, deepest.app->help(deepest.parent)};
  } catch (const CLI::ParseError& error) {
    const Deepest deepest = deepest_of(app_);
    const std::string path =
        deepest.parent.empty() ? "zedctl" : deepest.parent + " " + deepest.app->get_name();
    if (auto said = unknown_command(*deepest.app, path)) return *said;
    return usage_error(error.what(), path + " --help");
  }
  common_.wide = output_ == "wide";
  common_.csv = output_ == "csv";
  common_.json = common_.json || output_ == "json";
  Invocation invocation{common_, make_()};
  std::vector<std::string>* argv = std::visit(RestOf{}, invocation.command);
  if (argv == nullptr && marker != arguments.end())
    return usage_error("only run, dispatch and exec take a command after --", "zedctl --help");
  if (argv != nullptr) *argv = std::move(rest);
  return invocation;
}

void collect(const CLI::App& app, const std::string& path, std::vector<CommandShape>& shapes) {
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_group().empty()) continue;
    CommandShape shape{path + sub->get_name(), sub->get_description(), {}, {}, {}};
    for (const CLI::Option* option : sub->get_options()) {
      if (option->get_positional()) {
        shape.positionals.push_back(option->get_name(true));
        continue;
      }
      OptionShape described{{},
                            option->get_type_size() == 0 ? "" : option->get_type_name(),
                            option->get_description()};
      for (const std::string& name : option->get_snames())
        described.names.push_back("-" + name);
      for (const std::string& name : option->get_lnames())
        described.names.push_back("--" + name);
      shape.options.insert(shape.options.end(), described.names.begin(), described.names.end());
      shape.described.push_back(std::move(described));
    }
    const std::string inner = shape.path + " ";
    shapes.push_back(std::move(shape));
    collect(*sub, inner, shapes);
  }
}

std::vector<CommandShape> Grammar::shapes() const {
  std::vector<CommandShape> shapes;
  collect(app_, "", shapes);
  return shapes;
}

}  // namespace

std::variant<Invocation, Said> read_arguments(const std::vector<std::string>& arguments) {
  return Grammar().read(arguments);
}

std::vector<CommandShape> command_shapes() {
  return Grammar().shapes();
}

}  // namespace zed::cli
