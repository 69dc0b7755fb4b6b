#include "cli/daily_arguments.hpp"

#include <CLI/CLI.hpp>

namespace zed::cli {
namespace {

CLI::Option* positional(CLI::App* sub, const std::string& name, std::string& into,
                        const std::string& help = "") {
  return sub->add_option(name, into, help)->required()->type_name("");
}

CLI::Option* several(CLI::App* sub, const std::string& names, std::vector<std::string>& into,
                     const std::string& help, const std::string& value) {
  return sub->add_option(names, into, help)->type_name(value)->allow_extra_args(false);
}

}  // namespace

void DailyArguments::add_to(const Add& add, bool& watch) {
  add_looks(add, watch);
  add_files(add);
  add_run(add);
  add_orders(add);
}

void DailyArguments::add_looks(const Add& add, bool& watch) {
  auto* gpus = add(std::string(api::ListGpus::tag), "GPUs, their memory, and which job holds them",
                   [] { return Look{api::ListGpus{}}; });
  gpus->add_flag("-w,--watch", watch, "again every second until Ctrl-C");
  auto* datasets = add(std::string(api::ListDatasets::tag), "datasets and where the copies are",
                       [this] { return Look{datasets_}; });
  datasets->add_option("DATASET", datasets_.under, "only this one and what is below it")
      ->type_name("");
  datasets->add_flag("-a,--all", datasets_.all, "branches, submitted code and Zed's own too");
  datasets->add_flag("-w,--watch", watch, "again every second until Ctrl-C");
  auto* metrics = add(std::string(api::ReadMetrics::tag), "what a job logged, as a curve",
                      [this] { return metrics_; });
  positional(metrics, "JOB", metrics_.target, "or JOB@CHECKPOINT");
  metrics->add_option("METRIC", metrics_.names, "only these")->type_name("");
  metrics->add_option("--points", metrics_.points, "of each, at most (1000)")
      ->check(CLI::Range(2, 10'000))
      ->type_name("COUNT");
  metrics->add_flag("-w,--watch", watch, "again every second until Ctrl-C");
  add("top", "everything at once, live", [] { return TopCommand{}; });
}

void DailyArguments::add_files(const Add& add) {
  auto* files = add(std::string(api::ListFiles::tag), "files of a job or a dataset",
                    [this] { return files_; });
  positional(
      files, "JOB@CHECKPOINT", files_.target,
      "below a folder: JOB@CHECKPOINT:PATH; JOB alone: as they are now; a dataset does as well");
  auto* copy =
      add("cp", "copy files of a job or a dataset to this machine", [this] { return copy_; });
  positional(copy, "JOB@CHECKPOINT", copy_.from,
             "with what to copy: JOB@CHECKPOINT:PATH; without @CHECKPOINT: as it is now");
  positional(copy, "FILE", copy_.to, "file or folder; - for standard output");
  auto* diff = add(std::string(api::DiffCheckpoints::tag),
                   "what differs between two checkpoints: code, environment, parameters, metrics",
                   [this] { return diff_; });
  positional(diff, "JOB@CHECKPOINT", diff_.a);
  positional(diff, "OTHER@CHECKPOINT", diff_.b, "@CHECKPOINT alone: of the same job");
  diff->add_flag("--names", diff_.only_names, "only which files, not what is in them");
}

void DailyArguments::add_run(const Add& add) {
  auto* run = add(std::string(api::RunJob::tag), "run a command as a job, without a cluster file",
                  [this] { return run_; });
  run->add_option("--name", run_.name, "of the job (made from the command)")->type_name("NAME");
  several(run, "-r,--requires", run_.requires_, "vram=24, gpus=2, gpu=A100, labels=fast ...",
          "KEY=VALUE");
  several(run, "--prefer", run_.prefer, "gpu=A100, node=NODE, label=WORD; best first",
          "KIND=VALUE");
  auto* code = run->add_option("--code", run_.code,
                               "folder to submit (this one, if the command names a file of it)");
  code->type_name("DIR");
  run->add_flag("--no-code", run_.no_code, "submit no folder")->excludes(code);
  run->add_option("--code-on", run_.code_on, "whose disk the folder is on (the controller's)")
      ->type_name("NODE");
  run->add_option("--setup", run_.setup, "shell command, once a node and code, before the command")
      ->type_name("COMMAND");
  run->add_option("--setup-timeout", run_.setup_timeout, "of that (1 hour)")->type_name("TIME");
  run->add_option("--model", run_.model, "readable at ZED_MODEL_DIR")->type_name("MODEL");
  several(run, "--data", run_.data, "readable at ZED_DATA_DIR", "DATASET");
  several(run, "-e,--env", run_.env, "for the job; NAME alone: as it is here", "NAME=VALUE");
  run->add_option("--checkpoint-every", run_.checkpoint_every, "\"1 epoch\", \"10 minutes\" ...")
      ->type_name("INTERVAL");
  run->add_option("--retries", run_.retries, "after failures of its own (0)")
      ->check(CLI::Range(0, 1000))
      ->type_name("COUNT");
  run->add_option("--priority", run_.priority, "higher first (0)")
      ->check(CLI::Range(-100, 100))
      ->type_name("NUMBER");
  run->add_option("--timeout", run_.timeout, "of its running time: \"12 hours\"")
      ->type_name("TIME");
  run->add_flag("-d,--detach", run_.detach, "only submit; do not follow its log");
  run->footer("zedctl run --requires vram=24 -- python3 train.py\n"
              "The words after -- are the command. Ctrl-C leaves the job running.");
  auto* exec = add(std::string(api::Exec::tag),
                   "run a command beside a running job: in its folder, as its user",
                   [this] { return exec_; });
  positional(exec, "JOB", exec_.job);
  exec->footer("zedctl exec JOB -- nvidia-smi\nThe status is the command's.");
}

void DailyArguments::add_orders(const Add& add) {
  auto* replicate =
      add(std::string(api::Replicate::tag), "bring a copy of a job or a dataset to a node now",
          [this] { return replicate_; });
  positional(replicate, "JOB|DATASET", replicate_.what);
  replicate->add_option("--to", replicate_.to, "the node that gets it")
      ->required()
      ->type_name("NODE");
  replicate->add_flag("-n,--dry-run", replicate_.dry_run, "only say what would travel");
  auto* adopt = add(std::string(api::Adopt::tag),
                    "make a dataset that was made by hand one of Zed's", [this] { return adopt_; });
  positional(adopt, "DATASET", adopt_.dataset, "with its pool: tank/stuff/llama");
  adopt
      ->add_option("--as", adopt_.as, "model [NAME], job [NAME] or data (as its com.zed:type says)")
      ->expected(1, 2)
      ->type_name("KIND");
  adopt->add_option("--version", adopt_.version, "of a model (1)")->type_name("VERSION");
  adopt->add_option("--to", adopt_.to, "rename it to this: models/llama")->type_name("DATASET");
  adopt->add_option("--node", adopt_.node, "who has it, if several have")->type_name("NODE");
  adopt->add_flag("-n,--dry-run", adopt_.dry_run, "only say what would be done");
  auto* doctor = add("doctor", "what is wrong with this machine, and what to type",
                     [this] { return doctor_; });
  doctor->add_option("--state", doctor_.state, "folder of its agent")->type_name("DIR");
  doctor->add_option("--pool", doctor_.pool, "pool of its agent")->type_name("POOL");
  doctor->add_option("--store", doctor_.store, "zfs or dir: what its agent is to use")
      ->check(CLI::IsMember({"zfs", "dir"}))
      ->type_name("STORE");
  auto* prune =
      add(std::string(api::Prune::tag), "destroy the checkpoints of a job that need not be kept",
          [this] { return prune_; });
  positional(prune, "JOB", prune_.job);
  several(prune, "--keep", prune_.keep,
          "last=5, best=3, metric=loss, mode=min, every=10 (the cluster file's)", "KEY=VALUE");
  prune->add_flag("--branches", prune_.branches, "those of abandoned timelines instead");
  prune->add_flag("-n,--dry-run", prune_.dry_run, "only say what would go");
  add("man", "the manual page, for man -l -", [] { return ManualCommand{}; });
}

}  // namespace zed::cli
