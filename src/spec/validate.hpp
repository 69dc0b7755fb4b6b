#pragma once
// From what is written to what is meant.

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster.hpp"
#include "spec/parse.hpp"
#include "spec/read.hpp"

namespace zed::spec {

/// The cluster, if nothing in the report is an error.
std::optional<Cluster> validate(const Parsed& parsed, const Source& source, Report& report);

/// A name that refers to another declaration, and where.
template <class T> struct Reference {
  T name;
  std::size_t offset = 0;
};

/// A declaration as read, before names that it refers to are known.
struct NodeDraft {
  DeclaredNode node;
  std::size_t offset = 0;
};
struct ModelDraft {
  DeclaredModel model;
  std::size_t offset = 0;
  std::size_t dataset_offset = 0;
};
struct DataDraft {
  DeclaredData data;
  std::size_t offset = 0;
};
struct JobDraft {
  Job job;
  std::size_t offset = 0;
  std::size_t dataset_offset = 0;
  std::optional<Reference<ModelName>> model;
  std::vector<Reference<JobName>> after;
  std::vector<Reference<NodeName>> wished_nodes;
  std::vector<Reference<DatasetName>> data;
};
struct PolicyDraft {
  ReplicationPolicy policy;
  std::size_t offset = 0;
  std::vector<Reference<NodeName>> nodes;  ///< source and targets
};

// Each reads one declaration and reports what is wrong inside it. Nothing if not even its name is
// known. (validate_node.cpp, validate_job.cpp, validate_policy.cpp)
std::optional<NodeDraft> read_node(Reader& reader, const Met& met);
std::optional<ModelDraft> read_model(Reader& reader, const Met& met);
std::optional<DataDraft> read_data(Reader& reader, const Met& met);
std::optional<JobDraft> read_job(Reader& reader, const Met& met);
std::optional<PolicyDraft> read_policy(Reader& reader, const Met& met);

}  // namespace zed::spec
