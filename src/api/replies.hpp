#pragma once
// What operations answer: plain rows that tables, JSON and Erlang terms are made from. Times are
// milliseconds since 1970 (UTC), sizes bytes, durations milliseconds; null means unknown.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/fleet.hpp"
#include "core/message.hpp"
#include "core/placement.hpp"
#include "core/plan.hpp"

namespace zed::api {

struct FleetEvent {
  std::uint64_t number = 0;  ///< ascending, per controller term
  WallTime at;
  std::string kind;     ///< "node", "job", "checkpoint", "transfer", "fork", "audit", "notice"
  std::string subject;  ///< "job finetune", "node server"
  std::string text;     ///< for people
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("number", self.number);
    visit("at", self.at);
    visit("kind", self.kind);
    visit("subject", self.subject);
    visit("text", self.text);
  }
};

struct JobRow {
  JobId id;
  std::string name;
  JobState state = JobState::pending;
  std::string reason;             ///< why it is in that state, for people
  std::string node;               ///< where it runs, or whose copy is the home
  std::vector<std::string> gpus;  ///< models
  std::int64_t attempt = 0;
  std::string generation;                      ///< brief
  std::string timeline;                        ///< brief
  std::string checkpoint;                      ///< "@epoch-15", newest of the current timeline
  std::string checkpoint_copies;               ///< "server, workstation" or "only on server"
  std::map<std::string, std::string> metrics;  ///< of that checkpoint
  bool safe = false;  ///< its last change of desired state is on two machines
  WallTime submitted;
  WallTime started;  ///< the attempt that runs or was the last; none while it waits
  WallTime ended;
  bool declared_only = false;  ///< in the cluster file, never dispatched
  std::int64_t priority = 0;
  std::string by;  ///< who submitted it
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("id", self.id);
    visit("name", self.name);
    visit("state", self.state);
    visit("reason", self.reason);
    visit("node", self.node);
    visit("gpus", self.gpus);
    visit("attempt", self.attempt);
    visit("generation", self.generation);
    visit("timeline", self.timeline);
    visit("checkpoint", self.checkpoint);
    visit("checkpoint_copies", self.checkpoint_copies);
    visit("metrics", self.metrics);
    visit("safe", self.safe);
    visit("submitted", self.submitted);
    visit("started", self.started);
    visit("ended", self.ended);
    visit("declared_only", self.declared_only);
    visit("priority", self.priority);
    visit("by", self.by);
  }
};

struct TransferRow {
  std::string dataset;
  std::string snapshot;
  std::string source;
  std::string target;
  std::string why;
  Bytes done;
  Bytes total;
  Bytes rate;  ///< per second
  std::optional<Millis> time_left;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("snapshot", self.snapshot);
    visit("source", self.source);
    visit("target", self.target);
    visit("why", self.why);
    visit("done", self.done);
    visit("total", self.total);
    visit("rate", self.rate);
    visit("time_left", self.time_left);
  }
};

struct StatusReply {
  std::string cluster;     ///< name of the applied file; empty if none was
  std::string controller;  ///< node name of the controller's machine
  std::string term;
  std::uint64_t revision = 0;
  std::string journal_second;  ///< who holds the copy; empty: records are on one machine only
  bool safe = false;           ///< all journal records are on two machines
  std::map<std::string, std::int64_t> nodes;  ///< by status
  std::map<std::string, std::int64_t> jobs;   ///< by state
  std::int64_t gpus = 0;
  std::int64_t gpus_busy = 0;
  std::vector<TransferRow> transfers;
  std::vector<std::string> warnings;  ///< "newest checkpoint of finetune is only on server"
  WallTime at;                        ///< by the controller's clock
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("at", self.at);
    visit("cluster", self.cluster);
    visit("controller", self.controller);
    visit("term", self.term);
    visit("revision", self.revision);
    visit("journal_second", self.journal_second);
    visit("safe", self.safe);
    visit("nodes", self.nodes);
    visit("jobs", self.jobs);
    visit("gpus", self.gpus);
    visit("gpus_busy", self.gpus_busy);
    visit("transfers", self.transfers);
    visit("warnings", self.warnings);
  }
};

/// What transfers that have finished measured of the way to another node.
struct LinkRow {
  std::string to;
  Bytes rate;                 ///< per second, of the newest ones most
  std::vector<Bytes> recent;  ///< each of the last few, oldest first
  WallTime at;                ///< of the newest
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("to", self.to);
    visit("rate", self.rate);
    visit("recent", self.recent);
    visit("at", self.at);
  }
};

struct NodeRow {
  Node node;
  std::map<std::string, std::string> gpu_jobs;  ///< GPU UUID -> job name
  std::vector<std::string> differences;         ///< declared against detected
  bool joined = true;                           ///< false: declared, never seen
  bool listed = true;                           ///< it has told all that it holds
  std::string why;                              ///< it is cordoned or drained
  std::vector<LinkRow> links;                   ///< to nodes that data went to from here
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("gpu_jobs", self.gpu_jobs);
    visit("differences", self.differences);
    visit("joined", self.joined);
    visit("listed", self.listed);
    visit("why", self.why);
    visit("links", self.links);
  }
};

struct NodesReply {
  std::vector<NodeRow> nodes;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("nodes", self.nodes);
  }
};

struct ModelCopy {
  std::string node;
  std::string snapshot;     ///< newest there
  bool up_to_date = false;  ///< has the newest snapshot of all
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("snapshot", self.snapshot);
    visit("up_to_date", self.up_to_date);
  }
};

struct ModelRow {
  std::string name;
  std::string dataset;
  std::string version;
  std::string home;
  Bytes size;
  std::string requirement;
  Properties properties;
  std::vector<ModelCopy> copies;
  std::map<std::string, std::string> not_on;  ///< node -> why a policy does not bring it there
  bool declared_only = false;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("dataset", self.dataset);
    visit("version", self.version);
    visit("home", self.home);
    visit("size", self.size);
    visit("requirement", self.requirement);
    visit("properties", self.properties);
    visit("copies", self.copies);
    visit("not_on", self.not_on);
    visit("declared_only", self.declared_only);
  }
};

struct ModelsReply {
  std::vector<ModelRow> models;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("models", self.models);
  }
};

struct JobsReply {
  std::vector<JobRow> jobs;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("jobs", self.jobs);
  }
};

struct CheckpointRow {
  std::string name;  ///< "epoch-15"
  CheckpointId id;
  std::optional<std::uint64_t> seq;  ///< none: taken by hand, or closing
  std::string timeline;              ///< brief
  std::string generation;            ///< brief
  std::string dataset;               ///< the branch's, for those of an abandoned timeline
  bool current = true;               ///< on the current timeline
  std::string closing;               ///< outcome, for a closing snapshot
  WallTime created;
  Bytes used;
  std::map<std::string, std::string> metrics;
  std::vector<std::string> nodes;  ///< who has it
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("id", self.id);
    visit("seq", self.seq);
    visit("timeline", self.timeline);
    visit("generation", self.generation);
    visit("dataset", self.dataset);
    visit("current", self.current);
    visit("closing", self.closing);
    visit("created", self.created);
    visit("used", self.used);
    visit("metrics", self.metrics);
    visit("nodes", self.nodes);
  }
};

struct CheckpointsReply {
  JobRow job;
  std::vector<CheckpointRow> checkpoints;
  std::vector<Fork> forks;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("checkpoints", self.checkpoints);
    visit("forks", self.forks);
  }
};

struct MatchReply {
  std::vector<Placement> matches;  ///< best first
  std::vector<Refusal> refusals;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("matches", self.matches);
    visit("refusals", self.refusals);
  }
};

struct WhyReply {
  JobRow job;
  std::vector<std::string> reasons;  ///< in the order that they matter
  std::optional<Placement> placement;
  std::optional<Rejection> rejection;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("reasons", self.reasons);
    visit("placement", self.placement);
    visit("rejection", self.rejection);
  }
};

struct EventsReply {
  std::vector<FleetEvent> events;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("events", self.events);
  }
};

struct TransfersReply {
  std::vector<TransferRow> transfers;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("transfers", self.transfers);
  }
};

struct LogReply {
  std::int64_t offset = 0;
  std::int64_t end = 0;
  std::vector<LogLine> lines;
  bool live = false;  ///< the job may still write more
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("offset", self.offset);
    visit("end", self.end);
    visit("lines", self.lines);
    visit("live", self.live);
  }
};

struct PlanReply {
  std::vector<std::string> diagnostics;  ///< rendered; warnings only when `plan` is set
  std::optional<Plan> plan;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("diagnostics", self.diagnostics);
    visit("plan", self.plan);
  }
};

struct ApplyReply {
  std::vector<std::string> diagnostics;
  std::uint64_t revision = 0;
  std::vector<Change> changes;
  bool safe = false;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("diagnostics", self.diagnostics);
    visit("revision", self.revision);
    visit("changes", self.changes);
    visit("safe", self.safe);
  }
};

struct AddModelReply {
  std::string name;
  std::string dataset;
  std::string node;
  std::string snapshot;
  Bytes size;
  Properties properties = {};                       ///< as read from its files, and given
  std::map<std::string, std::string> goes_to = {};  ///< node -> the policy that brings it there
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("dataset", self.dataset);
    visit("node", self.node);
    visit("snapshot", self.snapshot);
    visit("size", self.size);
    visit("properties", self.properties);
    visit("goes_to", self.goes_to);
  }
};

struct SyncReply {
  std::string snapshot;    ///< "models/llama-finetune@v1"
  std::string source;      ///< the node that sent it
  std::string target;      ///< the node that has it now
  std::string dataset;     ///< there, with its pool
  bool was_there = false;  ///< nothing had to be sent
  bool by_ssh = false;     ///< to a machine without an agent; `target` is then its host
  Bytes moved;             ///< by ssh: what had to travel
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("snapshot", self.snapshot);
    visit("source", self.source);
    visit("target", self.target);
    visit("dataset", self.dataset);
    visit("was_there", self.was_there);
    visit("by_ssh", self.by_ssh);
    visit("moved", self.moved);
  }
};

struct DispatchReply {
  JobRow job;
  std::optional<Placement> placement;  ///< if it could be placed at once
  std::optional<Rejection> rejection;  ///< if not: it waits
  bool safe = false;
  std::vector<JobRow> array;  ///< of an array: all its jobs; `job` is the first
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("placement", self.placement);
    visit("rejection", self.rejection);
    visit("safe", self.safe);
    visit("array", self.array);
  }
};

struct TokenReply {
  std::string token;  ///< shown once, kept nowhere
  std::string node;   ///< "zed@server"
  std::string role;
  WallTime expires;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("token", self.token);
    visit("node", self.node);
    visit("role", self.role);
    visit("expires", self.expires);
  }
};

/// A token that waits to be used, or a certificate that lives.
struct CredentialRow {
  std::string node;
  std::string role;
  WallTime expires;
  std::string serial;  ///< of a certificate
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("role", self.role);
    visit("expires", self.expires);
    visit("serial", self.serial);
  }
};

struct TokensReply {
  std::vector<CredentialRow> tokens;
  std::vector<CredentialRow> certificates;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("tokens", self.tokens);
    visit("certificates", self.certificates);
  }
};

struct ExpireReply {
  std::string branch;
  std::optional<WallTime> at;  ///< not before; none: never
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("branch", self.branch);
    visit("at", self.at);
  }
};

struct ForkReply {
  JobRow job;
  std::string from;               ///< the checkpoint it begins at
  std::vector<std::string> left;  ///< checkpoints left behind (kept as a branch, or destroyed)
  std::string branch;  ///< dataset that keeps them; empty if nothing is left or discarded
  bool discard = false;
  bool safe = false;
  std::string note;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("from", self.from);
    visit("left", self.left);
    visit("branch", self.branch);
    visit("discard", self.discard);
    visit("safe", self.safe);
    visit("note", self.note);
  }
};

struct JobReply {
  JobRow job;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
  }
};

}  // namespace zed::api
