#pragma once
// Replies of the operations of daily use (api/daily.hpp). Units as in api/replies.hpp.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.hpp"
#include "core/fleet.hpp"
#include "core/gpu.hpp"
#include "core/question.hpp"

namespace zed::api {

struct GpuRow {
  std::string node;
  NodeStatus status = NodeStatus::up;  ///< of the node
  Gpu gpu;
  std::vector<std::string> jobs;  ///< that hold it
  std::optional<GpuLoad> load;    ///< the last one measured
  std::vector<GpuLoad> history;   ///< the last ones, oldest first; bounded
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("status", self.status);
    visit("gpu", self.gpu);
    visit("jobs", self.jobs);
    visit("load", self.load);
    visit("history", self.history);
  }
};

struct GpusReply {
  std::vector<GpuRow> gpus;  ///< by node
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("gpus", self.gpus);
  }
};

struct DatasetCopy {
  std::string node;
  Bytes used;
  std::int64_t snapshots = 0;
  std::string newest;       ///< "@epoch-15"; empty: none
  bool up_to_date = false;  ///< has the newest snapshot of the home's copy
  bool connected = true;    ///< its node can be reached now
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("used", self.used);
    visit("snapshots", self.snapshots);
    visit("newest", self.newest);
    visit("up_to_date", self.up_to_date);
    visit("connected", self.connected);
  }
};

struct DatasetRow {
  std::string dataset;  ///< "jobs/finetune-001"
  DatasetId uuid;
  std::string type;  ///< model, job, data, code, branch, node; empty: not Zed's
  std::string name;  ///< as declared
  std::string home;  ///< node whose copy may be written, or is followed
  Bytes used;        ///< at home
  std::int64_t snapshots = 0;
  std::string newest;
  std::vector<DatasetCopy> copies;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("uuid", self.uuid);
    visit("type", self.type);
    visit("name", self.name);
    visit("home", self.home);
    visit("used", self.used);
    visit("snapshots", self.snapshots);
    visit("newest", self.newest);
    visit("copies", self.copies);
  }
};

struct DatasetsReply {
  std::vector<DatasetRow> datasets;  ///< by name
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("datasets", self.datasets);
  }
};

/// Where the files of an answer lie.
struct Place {
  std::string node;
  std::string dataset;
  std::string snapshot;  ///< "@epoch-15"; empty: the live files
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("dataset", self.dataset);
    visit("snapshot", self.snapshot);
  }
};

struct FilesReply {
  Place place;
  std::vector<FileEntry> files;
  bool more = false;  ///< ask again, `after` the last of these
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("place", self.place);
    visit("files", self.files);
    visit("more", self.more);
  }
};

struct FileReply {
  Place place;
  std::int64_t offset = 0;
  std::int64_t size = 0;  ///< of the whole file
  std::string data;       ///< base64
  std::string digest;     ///< SHA-256 of these bytes
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("place", self.place);
    visit("offset", self.offset);
    visit("size", self.size);
    visit("data", self.data);
    visit("digest", self.digest);
  }
};

/// A checkpoint on the axis of a metric.
struct CheckpointMark {
  std::string name;  ///< "epoch-15"
  std::optional<double> step;
  std::optional<double> epoch;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("step", self.step);
    visit("epoch", self.epoch);
  }
};

struct MetricsReply {
  std::string job;
  Place place;
  std::vector<MetricSeries> series;
  std::vector<std::string> other_names;
  bool complete = true;
  std::vector<CheckpointMark> checkpoints;  ///< of the current timeline
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("place", self.place);
    visit("series", self.series);
    visit("other_names", self.other_names);
    visit("complete", self.complete);
    visit("checkpoints", self.checkpoints);
  }
};

/// One fact of two checkpoints; empty where it is not there.
struct FactDifference {
  std::string kind;  ///< command, environment, code, data, parameter, package, metric
  std::string name;
  std::string a;
  std::string b;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("kind", self.kind);
    visit("name", self.name);
    visit("a", self.a);
    visit("b", self.b);
  }
};

enum class FileChange { added, removed, changed };
constexpr auto enum_names(FileChange) {
  return std::array<std::string_view, 3>{"added", "removed", "changed"};
}

struct FileDifference {
  std::string path;
  FileChange change = FileChange::changed;
  Bytes a;
  Bytes b;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("path", self.path);
    visit("change", self.change);
    visit("a", self.a);
    visit("b", self.b);
  }
};

struct DiffReply {
  Place a;
  Place b;
  std::vector<FactDifference> facts;  ///< only what differs
  std::vector<FileDifference> files;  ///< only what differs, `.zed` and `metrics` left out
  bool complete = true;               ///< false: there are more files than are compared
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("a", self.a);
    visit("b", self.b);
    visit("facts", self.facts);
    visit("files", self.files);
    visit("complete", self.complete);
  }
};

struct ReplicateReply {
  std::string dataset;
  std::string source;
  std::string target;
  std::vector<std::string> snapshots;  ///< that were missing there, oldest first
  Bytes bytes;                         ///< of them, about; what travelled once it is done
  bool dry_run = false;
  std::string newest;  ///< "@epoch-15": what the target has in the end
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("source", self.source);
    visit("target", self.target);
    visit("snapshots", self.snapshots);
    visit("bytes", self.bytes);
    visit("dry_run", self.dry_run);
    visit("newest", self.newest);
  }
};

struct PruneRow {
  std::string node;
  std::string dataset;
  std::string snapshot;  ///< "@epoch-3"
  Bytes frees;           ///< at least
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("dataset", self.dataset);
    visit("snapshot", self.snapshot);
    visit("frees", self.frees);
  }
};

struct PruneReply {
  std::string job;
  std::string keep;  ///< "last 5, best 3 by loss (min)"
  std::vector<PruneRow> pruned;
  std::int64_t kept = 0;  ///< snapshots that stay, at home
  Bytes frees;            ///< in all, at least
  bool dry_run = false;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("keep", self.keep);
    visit("pruned", self.pruned);
    visit("kept", self.kept);
    visit("frees", self.frees);
    visit("dry_run", self.dry_run);
  }
};

struct ExecReply {
  std::string command;  ///< its name for exec-tend
  std::string job;
  std::string node;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("command", self.command);
    visit("job", self.job);
    visit("node", self.node);
  }
};

struct ExecTendReply {
  CommandState state;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("state", self.state);
  }
};

}  // namespace zed::api
