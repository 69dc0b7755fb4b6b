#pragma once
// The one table of operations: what anyone may ask of a controller, through any door (command line,
// HTTP, Erlang). Each is a struct with
//   tag      its name: `POST /v1/<tag>`, `{:zed, 1, Zed.Cluster, tag, args}`
//   changes  whether it changes anything (an operator's; the others are a viewer's too)
//   help     one line
//   Reply    what success brings; errors are base Errors everywhere
// Names are as a person typed them; the controller resolves them (core/names.hpp same_typed_name).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/daily.hpp"
#include "api/model_operations.hpp"
#include "api/replies.hpp"
#include "api/store_operations.hpp"
#include "base/describe.hpp"
#include "core/requirement.hpp"

namespace zed::api {

/// The number in every JSON reply ("schema": 1); raised when a field's meaning changes.
inline constexpr std::int64_t schema_version = 1;

struct GetStatus {
  static constexpr std::string_view tag = "status";
  static constexpr bool changes = false;
  static constexpr std::string_view help = "the fleet in a few lines";
  using Reply = StatusReply;
  template <class Self, class Visit> static void fields(Self&, Visit&&) {}
};

struct ListNodes {
  static constexpr std::string_view tag = "nodes";
  static constexpr bool changes = false;
  static constexpr std::string_view help = "machines, their GPUs, stores and health";
  using Reply = NodesReply;
  template <class Self, class Visit> static void fields(Self&, Visit&&) {}
};

struct ListModels {
  static constexpr std::string_view tag = "models";
  static constexpr bool changes = false;
  static constexpr std::string_view help = "models and which node holds which snapshot";
  using Reply = ModelsReply;
  template <class Self, class Visit> static void fields(Self&, Visit&&) {}
};

struct ListJobs {
  static constexpr std::string_view tag = "jobs";
  static constexpr bool changes = false;
  static constexpr std::string_view help = "jobs, their state, node and newest checkpoint";
  using Reply = JobsReply;
  bool all = false;  ///< finished ones too, and those that are only declared
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("all", self.all);
  }
};

struct ListCheckpoints {
  static constexpr std::string_view tag = "checkpoints";
  static constexpr bool changes = false;
  static constexpr std::string_view help =
      "a job's checkpoints, its branches, and where the copies are";
  using Reply = CheckpointsReply;
  std::string job;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
  }
};

struct MatchNodes {
  static constexpr std::string_view tag = "match";
  static constexpr bool changes = false;
  static constexpr std::string_view help =
      "nodes that can hold a requirement, and why the others cannot";
  using Reply = MatchReply;
  Requirement requirement;
  Preference prefer;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("requirement", self.requirement);
    visit("prefer", self.prefer);
  }
};

struct WhyJob {
  static constexpr std::string_view tag = "why";
  static constexpr bool changes = false;
  static constexpr std::string_view help = "why a job is where it is, or runs nowhere";
  using Reply = WhyReply;
  std::string job;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
  }
};

struct ListEvents {
  static constexpr std::string_view tag = "events";
  static constexpr bool changes = false;
  static constexpr std::string_view help = "what happened";
  using Reply = EventsReply;
  std::uint64_t after = 0;   ///< only events of a higher number
  std::int64_t limit = 200;  ///< 1 to 1000, the newest ones
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("after", self.after);
    visit("limit", self.limit);
  }
};

struct ListTransfers {
  static constexpr std::string_view tag = "transfers";
  static constexpr bool changes = false;
  static constexpr std::string_view help = "what is moving, with bytes, rate and time left";
  using Reply = TransfersReply;
  template <class Self, class Visit> static void fields(Self&, Visit&&) {}
};

struct ReadJobLog {
  static constexpr std::string_view tag = "logs";
  static constexpr bool changes = false;
  static constexpr std::string_view help = "what a job wrote";
  using Reply = LogReply;
  std::string job;
  std::int64_t offset = -100;  ///< negative: that many lines from the end
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("offset", self.offset);
  }
};

struct MakePlan {
  static constexpr std::string_view tag = "plan";
  static constexpr bool changes = false;
  static constexpr std::string_view help = "what applying a cluster file would change";
  using Reply = PlanReply;
  std::string text;    ///< the cluster file
  std::string folder;  ///< where it lies, absolute: `file` and `code` are relative to it
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("text", self.text);
    visit("folder", self.folder);
  }
};

struct Apply {
  static constexpr std::string_view tag = "apply";
  static constexpr bool changes = true;
  static constexpr std::string_view help = "make a cluster file the declared fleet";
  using Reply = ApplyReply;
  std::string text;
  std::string folder;
  std::optional<std::uint64_t> expected_revision;  ///< refused as stale if the fleet moved on
  std::string from_node;  ///< whose disk `file` names; empty: the controller's
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("text", self.text);
    visit("folder", self.folder);
    visit("expected_revision", self.expected_revision);
    visit("from_node", self.from_node);
  }
};

struct AddModel {
  static constexpr std::string_view tag = "model-add";
  static constexpr bool changes = true;
  static constexpr std::string_view help = "import a file or folder as a model";
  using Reply = AddModelReply;
  std::string name;
  std::string path;  ///< absolute, on `node`
  std::string node;  ///< empty: the controller's machine
  std::string version;
  Requirement requirement;
  std::map<std::string, std::string> properties;  ///< quantized, format, source …
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("path", self.path);
    visit("node", self.node);
    visit("version", self.version);
    visit("requirement", self.requirement);
    visit("properties", self.properties);
  }
};

struct SyncToRemote {
  static constexpr std::string_view tag = "sync";
  static constexpr bool changes = true;
  static constexpr std::string_view help =
      "send a snapshot to another machine now, by ssh if it has no agent";
  using Reply = SyncReply;
  std::string snapshot;     ///< with its pool: "nvme/models/llama-finetune@v1"
  std::string destination;  ///< "[user@]host"
  std::string dataset;      ///< there, with its pool: "tank/models/llama-finetune"
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("snapshot", self.snapshot);
    visit("destination", self.destination);
    visit("dataset", self.dataset);
  }
};

/// One parameter of an array and its values: `lr` of 0.1 and 0.01. Several make every combination.
struct ArrayAxis {
  std::string name;  ///< letters, digits and '_', not starting with a digit
  std::vector<std::string> values;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("values", self.values);
  }
};

struct Dispatch {
  static constexpr std::string_view tag = "dispatch";
  static constexpr bool changes = true;
  static constexpr std::string_view help = "submit a declared job";
  using Reply = DispatchReply;
  std::string job;
  std::string uuid;               ///< of the submit, made by the client: a repeated one is one job
  std::vector<std::string> argv;  ///< replaces the file's `run`
  std::optional<Preference> prefer;  ///< replaces the file's
  std::optional<Preference> fallback;
  bool again = false;  ///< a succeeded job: a new, next-numbered one
  std::string from;    ///< with again: begin at this checkpoint of the old one
  /// One job for each combination: "{lr}" in its command is the value, and so is its environment's
  /// ZED_PARAM_LR. At most 1000.
  std::vector<ArrayAxis> array;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("uuid", self.uuid);
    visit("argv", self.argv);
    visit("prefer", self.prefer);
    visit("fallback", self.fallback);
    visit("again", self.again);
    visit("from", self.from);
    visit("array", self.array);
  }
};

struct Rollback {
  static constexpr std::string_view tag = "rollback";
  static constexpr bool changes = true;
  static constexpr std::string_view help =
      "begin a new timeline at a checkpoint, keeping the newer one as a branch";
  using Reply = ForkReply;
  std::string job;
  std::string checkpoint;  ///< "@epoch-20"
  bool discard = false;    ///< destroy the newer timeline instead of keeping it
  bool force = false;      ///< although the home cannot be reached
  bool dry_run = false;    ///< only say what would be left or destroyed
  bool hold = false;       ///< do not resume by itself afterwards
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("checkpoint", self.checkpoint);
    visit("discard", self.discard);
    visit("force", self.force);
    visit("dry_run", self.dry_run);
    visit("hold", self.hold);
  }
};

struct Resume {
  static constexpr std::string_view tag = "resume";
  static constexpr bool changes = true;
  static constexpr std::string_view help =
      "run a job again from a checkpoint, here or on another machine";
  using Reply = ForkReply;
  std::string job;
  std::string from;  ///< "@epoch-15", "start", empty: the newest
  std::string on;    ///< node; empty: the best
  bool force = false;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("from", self.from);
    visit("on", self.on);
    visit("force", self.force);
  }
};

struct StopJob {
  static constexpr std::string_view tag = "stop";
  static constexpr bool changes = true;
  static constexpr std::string_view help =
      "checkpoint if the job can, then stop it; it can be resumed";
  using Reply = JobReply;
  std::string job;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
  }
};

struct CancelJob {
  static constexpr std::string_view tag = "cancel";
  static constexpr bool changes = true;
  static constexpr std::string_view help = "stop a job for good";
  using Reply = JobReply;
  std::string job;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
  }
};

struct CheckpointJob {
  static constexpr std::string_view tag = "checkpoint";
  static constexpr bool changes = true;
  static constexpr std::string_view help = "ask a running job for a checkpoint now";
  using Reply = JobReply;
  std::string job;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
  }
};

enum class NodeDuty { cordon, uncordon, drain };
constexpr auto enum_names(NodeDuty) {
  return std::array<std::string_view, 3>{"cordon", "uncordon", "drain"};
}

struct SetNodeDuty {
  static constexpr std::string_view tag = "node-duty";
  static constexpr bool changes = true;
  static constexpr std::string_view help = "cordon, uncordon or drain a node";
  using Reply = NodesReply;
  std::string node;
  NodeDuty duty = NodeDuty::cordon;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("duty", self.duty);
  }
};

struct ForgetNode {
  static constexpr std::string_view tag = "node-forget";
  static constexpr bool changes = true;
  static constexpr std::string_view help = "free the name of a machine that does not come back";
  using Reply = NodesReply;
  std::string node;
  bool force = false;  ///< although it is the home of jobs that go on, which then go on elsewhere
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("force", self.force);
  }
};

struct ExpireBranch {
  static constexpr std::string_view tag = "expire";
  static constexpr bool changes = true;
  static constexpr std::string_view help = "let a branch be destroyed after a time";
  using Reply = ExpireReply;
  std::string branch;           ///< "jobs/finetune-001.1a2b"
  std::optional<Millis> after;  ///< from now, at least a day; none: never (the default of all)
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("branch", self.branch);
    visit("after", self.after);
  }
};

enum class TokenRole { agent, operator_, viewer };
constexpr auto enum_names(TokenRole) {
  return std::array<std::string_view, 3>{"agent", "operator", "viewer"};
}

struct CreateToken {
  static constexpr std::string_view tag = "token-create";
  static constexpr bool changes = true;
  static constexpr std::string_view help =
      "a one-time token with which a machine joins, or a person logs in";
  using Reply = TokenReply;
  std::string node;  ///< the name it is good for
  TokenRole role = TokenRole::agent;
  Millis expires = minutes(60);  ///< from now: a minute to 30 days
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("role", self.role);
    visit("expires", self.expires);
  }
};

struct ListTokens {
  static constexpr std::string_view tag = "tokens";
  static constexpr bool changes = false;
  static constexpr std::string_view help = "tokens that wait, and certificates that live";
  using Reply = TokensReply;
  template <class Self, class Visit> static void fields(Self&, Visit&&) {}
};

using Request =
    std::variant<GetStatus, ListNodes, ListModels, ShowModel, FitModel, RegisterModel, AliasModel,
                 RemoveModel, ShowLineage, ListJobs, ListCheckpoints, MatchNodes, WhyJob,
                 ListEvents, ListTransfers, ReadJobLog, MakePlan, Apply, AddModel, SyncToRemote,
                 Dispatch, Rollback, Resume, StopJob, CancelJob, CheckpointJob, SetNodeDuty,
                 ForgetNode, ExpireBranch, CreateToken, ListTokens, ListGpus, ListDatasets,
                 ListFiles, ReadFile, ReadMetrics, DiffCheckpoints, Replicate, Prune, RunJob, Exec,
                 ExecTend, Adopt>;

/// Who asks, for the audit line and for `by`.
struct Caller {
  std::string who;         ///< "uid 1000", "zed@server", a certificate's name
  std::string door;        ///< "socket", "http", "https", "erlang"
  bool may_change = true;  ///< an operator's; a viewer only looks
  std::string from = {};   ///< address, where there is one
};

/// The request of that name with these arguments. Errors: `not_found` naming the nearest operation,
/// `invalid` naming the argument.
Result<Request> make_request(std::string_view operation, const Value& arguments);

struct OperationInfo {
  std::string_view name;
  std::string_view help;
  bool changes = false;
};
/// All operations, in the order of the table.
std::vector<OperationInfo> all_operations();

/// A reply with "schema" added, as every door sends it.
template <class Reply> Value encode_reply(const Reply& reply) {
  Value value = Value::map();
  value.set("schema", schema_version);
  Value body = to_value(reply);
  for (const auto& member : *body.as_map())
    value.set(member.key, member.value);
  return value;
}

}  // namespace zed::api
