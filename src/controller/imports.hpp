#pragma once
// Files of a node's own disk that become datasets: `model add`, and `file` in the cluster file.
// Inside the room only.

#include "controller/machine.hpp"

namespace zed::controller {

struct Import {
  DatasetName dataset;
  std::string path;  ///< absolute, on the node
  std::string type;  ///< "model" | "data"
  std::string name;  ///< as declared
  std::string version;
  Requirement requirement;
  std::map<std::string, std::string> properties;  ///< further ones
  /// Files of a snapshot of the node's store instead; `path` is within it then.
  std::optional<DatasetName> source = {};
  CheckpointId source_snapshot = {};
};

/// Errors: `invalid` for a version that cannot be part of a snapshot's name.
Result<PlanStep> step_of(Machine& m, const NodeName& node, const Import& import,
                         const std::string& why);
std::string import_need(const DatasetName& dataset);
/// Whether an import of that name is complete somewhere; one that was cut off has no snapshot.
bool is_imported(const Machine& m, const DatasetName& dataset);

/// Where a job's submitted code is kept: zed/code/<the job's id>.
DatasetName code_dataset(const JobId& job);
/// Has the folder of a job's code packed into that dataset, by the agent of the machine where the
/// cluster file lies, unless it is there already or a copy of the job has it.
void import_code(Machine& m, const DesiredJob& job);
/// The same for a job that is being submitted: tried again at once, and nobody else can have its
/// code yet. False if the node where it lies is not connected.
bool pack_code(Machine& m, const DesiredJob& job);

}  // namespace zed::controller
