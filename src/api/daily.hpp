#pragma once
// Operations of daily use: looking into copies, moving and thinning them by hand, jobs without a
// cluster file, commands beside jobs. Part of the table in api/operations.hpp.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/daily_replies.hpp"
#include "api/replies.hpp"
#include "core/requirement.hpp"

namespace zed::api {

struct ListGpus {
  static constexpr std::string_view tag = "gpus";
  static constexpr bool changes = false;
  static constexpr std::string_view help = "GPUs, their memory, and which job holds them";
  using Reply = GpusReply;
  template <class Self, class Visit> static void fields(Self&, Visit&&) {}
};

struct ListDatasets {
  static constexpr std::string_view tag = "datasets";
  static constexpr bool changes = false;
  static constexpr std::string_view help = "datasets, their size and where the copies are";
  using Reply = DatasetsReply;
  std::string under;  ///< only this one and what is below it: "jobs"
  bool all = false;   ///< branches, submitted code and Zed's own too
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("under", self.under);
    visit("all", self.all);
  }
};

struct ListFiles {
  static constexpr std::string_view tag = "files";
  static constexpr bool changes = false;
  static constexpr std::string_view help = "files of a job or a dataset, live or in a checkpoint";
  using Reply = FilesReply;
  std::string of;          ///< a job, or a dataset by its name
  std::string checkpoint;  ///< "@epoch-15"; empty: the live files
  std::string path;
  Bytes digest_up_to;  ///< files of this size or less are read for their SHA-256
  std::string after;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("of", self.of);
    visit("checkpoint", self.checkpoint);
    visit("path", self.path);
    visit("digest_up_to", self.digest_up_to);
    visit("after", self.after);
  }
};

struct ReadFile {
  static constexpr std::string_view tag = "file";
  static constexpr bool changes = false;
  static constexpr std::string_view help = "a piece of a file, at most 128 KiB";
  using Reply = FileReply;
  std::string of;
  std::string checkpoint;
  std::string path;
  std::int64_t offset = 0;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("of", self.of);
    visit("checkpoint", self.checkpoint);
    visit("path", self.path);
    visit("offset", self.offset);
  }
};

struct ReadMetrics {
  static constexpr std::string_view tag = "metrics";
  static constexpr bool changes = false;
  static constexpr std::string_view help = "what a job logged, thinned out for a screen";
  using Reply = MetricsReply;
  std::string job;
  std::string checkpoint;          ///< as of then; empty: now
  std::vector<std::string> names;  ///< empty: all
  std::int64_t points = 1000;      ///< of each, at most; 2 to 10,000
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("checkpoint", self.checkpoint);
    visit("names", self.names);
    visit("points", self.points);
  }
};

struct DiffCheckpoints {
  static constexpr std::string_view tag = "diff";
  static constexpr bool changes = false;
  static constexpr std::string_view help =
      "what differs between two checkpoints: code, environment, parameters, metrics";
  using Reply = DiffReply;
  std::string a;  ///< "finetune@epoch-15"; without a checkpoint: the live files
  std::string b;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("a", self.a);
    visit("b", self.b);
  }
};

struct Replicate {
  static constexpr std::string_view tag = "replicate";
  static constexpr bool changes = true;
  static constexpr std::string_view help = "bring a copy of a job or a dataset to a node now";
  using Reply = ReplicateReply;
  std::string what;  ///< a job, or a dataset by its name
  std::string to;
  bool dry_run = false;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("what", self.what);
    visit("to", self.to);
    visit("dry_run", self.dry_run);
  }
};

struct Prune {
  static constexpr std::string_view tag = "prune";
  static constexpr bool changes = true;
  static constexpr std::string_view help = "destroy the checkpoints of a job that need not be kept";
  using Reply = PruneReply;
  std::string job;
  std::optional<Retention> keep;  ///< replaces the cluster file's
  bool branches = false;          ///< of the abandoned timelines instead, each by the same `keep`
  bool dry_run = false;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("keep", self.keep);
    visit("branches", self.branches);
    visit("dry_run", self.dry_run);
  }
};

struct RunJob {
  static constexpr std::string_view tag = "run";
  static constexpr bool changes = true;
  static constexpr std::string_view help = "submit a job that no cluster file declares";
  using Reply = DispatchReply;
  std::string name;  ///< empty: made from the command
  std::string uuid;  ///< of the submit, made by the client: a repeated one is one job
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;
  std::string code;   ///< folder, absolute, on `node`; empty: none
  std::string node;   ///< whose disk `code` names; empty: the controller's machine
  std::string setup;  ///< shell command, once a node and content, before the command; empty: none
  std::optional<Millis> setup_timeout;  ///< none: an hour
  std::string model;
  std::vector<std::string> data;
  Requirement requirement;
  Preference prefer;
  std::string checkpoint_every;  ///< "1 epoch", "500 steps", "10 minutes"; empty: when asked
  std::int64_t retries = 0;
  std::int64_t priority = 0;
  std::optional<Millis> timeout;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("uuid", self.uuid);
    visit("argv", self.argv);
    visit("env", self.env);
    visit("code", self.code);
    visit("node", self.node);
    visit("setup", self.setup);
    visit("setup_timeout", self.setup_timeout);
    visit("model", self.model);
    visit("data", self.data);
    visit("requirement", self.requirement);
    visit("prefer", self.prefer);
    visit("checkpoint_every", self.checkpoint_every);
    visit("retries", self.retries);
    visit("priority", self.priority);
    visit("timeout", self.timeout);
  }
};

struct Exec {
  static constexpr std::string_view tag = "exec";
  static constexpr bool changes = true;
  static constexpr std::string_view help =
      "start a command beside a running job: its folder, environment and user";
  using Reply = ExecReply;
  std::string job;
  std::string command;  ///< its name, 32 hexadecimal digits made by the client
  std::vector<std::string> argv;
  bool terminal = false;
  std::int64_t rows = 24;
  std::int64_t columns = 80;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("command", self.command);
    visit("argv", self.argv);
    visit("terminal", self.terminal);
    visit("rows", self.rows);
    visit("columns", self.columns);
  }
};

struct ExecTend {
  static constexpr std::string_view tag = "exec-tend";
  static constexpr bool changes = true;
  static constexpr std::string_view help = "give a command beside a job input, take its output";
  using Reply = ExecTendReply;
  std::string node;  ///< from the reply to exec
  TendCommand tend;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("tend", self.tend);
  }
};

}  // namespace zed::api
