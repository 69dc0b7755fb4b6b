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
/// Whether what is not in the view may still be on a node that has not come back yet.
bool is_anyone_awaited(const Machine& m);
/// Whether an import of that name is complete somewhere; one that was cut off has no snapshot.
bool is_imported(const Machine& m, const DatasetName& dataset);

// ---- code and data of jobs (reconcile_code.cpp)

/// What the packing of a job's code is called among the needs (steps.hpp). Its outcome brings the
/// content as its snapshot.
std::string code_need(const JobId& job);
/// Has a folder of a node's disk packed for a job that is being submitted, now. Errors:
/// `unavailable` (the node is not connected).
Status pack_code(Machine& m, const JobId& job, const std::string& folder, const NodeName& node);
/// Has the folder of a job that is in the journal packed again, if no node that is here or can come
/// back has its code.
void repack_code(Machine& m, const DesiredJob& job);
/// A folder was packed: a job that waits for it knows its content from then on.
void note_packed(Machine& m, const NeedOutcome& outcome);
/// The snapshot of that data set that the job was submitted with; none yet.
const Input* find_pin(const Job& job, const DatasetName& data);
/// The newest snapshot of each of the job's data sets that has one and is not pinned yet.
std::vector<Input> inputs_to_pin(const Machine& m, const Job& job);
/// What of a job's code and data was not known at its submit, as soon as it is.
void pin_inputs(Machine& m, DesiredJob& job);
/// A snapshot that the job was submitted with, on that node; nothing while it is on its way.
std::optional<Input> pinned_input(Machine& m, const DesiredJob& job, const Input& input,
                                  const NodeName& node);
/// "datasets/digits@v2", for people; the snapshot's identity where no node has it.
std::string shown_input(const Machine& m, const Input& input);
/// Whether nothing of the job's code is on one machine only: two nodes have it, or the job has
/// begun and has it among its own files.
bool is_code_safe(const Machine& m, const DesiredJob& job);
/// Has code that its first attempt will begin with copied to a second node.
void keep_code(Machine& m, const DesiredJob& job);
/// Destroys submitted code that no job needs any more, some minutes after the last one did.
void collect_code(Machine& m);

}  // namespace zed::controller
