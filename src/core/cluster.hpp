#pragma once
// The declared fleet: what a cluster file says, validated.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "core/job.hpp"
#include "core/names.hpp"
#include "core/requirement.hpp"

namespace zed {

enum class StoreKind { zfs, dir };
constexpr auto enum_names(StoreKind) {
  return std::array<std::string_view, 2>{"zfs", "dir"};
}

struct DeclaredGpu {
  std::string model;  ///< "RTX 4090"
  std::optional<MemorySize> vram;
  bool unified = false;
  std::int64_t count = 1;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("model", self.model);
    visit("vram", self.vram);
    visit("unified", self.unified);
    visit("count", self.count);
  }
  friend bool operator==(const DeclaredGpu&, const DeclaredGpu&) = default;
};

struct DeclaredNode {
  NodeName name;
  std::optional<std::string> address;
  std::optional<std::string> pool;
  std::optional<StoreKind> store;
  std::optional<std::string> run_as;
  std::vector<DeclaredGpu> gpus;           ///< compared with what is detected, never capacity
  std::vector<DatasetName> dataset_roots;  ///< what it may hold; empty: all
  std::vector<std::string> labels;
  /// Whether a dataset may live here.
  bool may_hold(const DatasetName& dataset) const;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("address", self.address);
    visit("pool", self.pool);
    visit("store", self.store);
    visit("run_as", self.run_as);
    visit("gpus", self.gpus);
    visit("dataset_roots", self.dataset_roots);
    visit("labels", self.labels);
  }
  friend bool operator==(const DeclaredNode&, const DeclaredNode&) = default;
};

struct DeclaredModel {
  ModelName name;
  DatasetName dataset;
  std::string version;
  Requirement requirement;
  std::optional<std::string> file;  ///< relative to the cluster file
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("dataset", self.dataset);
    visit("version", self.version);
    visit("requirement", self.requirement);
    visit("file", self.file);
  }
  friend bool operator==(const DeclaredModel&, const DeclaredModel&) = default;
};

struct DeclaredData {
  DatasetName dataset;
  std::string version;
  std::optional<std::string> file;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("version", self.version);
    visit("file", self.file);
  }
  friend bool operator==(const DeclaredData&, const DeclaredData&) = default;
};

/// A filter expression as text, already parsed once by `validate` (spec/filter.hpp evaluates it).
struct ReplicationPolicy {
  std::string name;  ///< the atom: a dataset prefix, a model or a job
  enum class Selects { prefix, model, job };
  Selects selects = Selects::prefix;
  DatasetName selector;  ///< the dataset or prefix that the name resolved to
  NodeName source;
  std::vector<NodeName> targets;  ///< source is not among them
  std::string filter;             ///< "" selects all
  std::optional<Millis> every;    ///< none: on each new snapshot
  std::optional<Bytes> max_rate;  ///< per second
  Retention retention;            ///< on targets
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("selects", self.selects);
    visit("selector", self.selector);
    visit("source", self.source);
    visit("targets", self.targets);
    visit("filter", self.filter);
    visit("every", self.every);
    visit("max_rate", self.max_rate);
    visit("retention", self.retention);
  }
  friend bool operator==(const ReplicationPolicy&, const ReplicationPolicy&) = default;
};
constexpr auto enum_names(ReplicationPolicy::Selects) {
  return std::array<std::string_view, 3>{"prefix", "model", "job"};
}

/// Only spec::validate makes one from text: sorted by name, names unique, references resolved.
/// A declared job's `id` is nil: each submit gives a new one.
struct Cluster {
  std::string name;
  std::string pool;  ///< default pool of nodes
  std::vector<DeclaredNode> nodes;
  std::vector<DeclaredModel> models;
  std::vector<DeclaredData> data;
  std::vector<Job> jobs;
  std::vector<ReplicationPolicy> policies;

  const DeclaredNode* find_node(const NodeName& wanted) const;
  const DeclaredModel* find_model(const ModelName& wanted) const;
  const Job* find_job(const JobName& wanted) const;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("pool", self.pool);
    visit("nodes", self.nodes);
    visit("models", self.models);
    visit("data", self.data);
    visit("jobs", self.jobs);
    visit("policies", self.policies);
  }
  friend bool operator==(const Cluster&, const Cluster&) = default;
};

}  // namespace zed
