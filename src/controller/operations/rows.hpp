#pragma once
// Rows of replies, made from what is desired and what is known. Inside the room only.

#include "api/replies.hpp"
#include "controller/machine.hpp"

namespace zed::controller {

api::JobRow row_of(const Machine& m, const DesiredJob& job);
api::JobRow row_of_declared(const Job& job);
api::TransferRow row_of(const Machine& m, const LiveStep& receive);
std::vector<api::TransferRow> transfer_rows(const Machine& m);
/// Epoch, step and metrics of a checkpoint, as text.
std::map<std::string, std::string> metrics_of(const Snapshot& snapshot);
/// Nodes that hold a snapshot of a dataset, whether they are there or not.
std::vector<std::string> nodes_with(const Machine& m, const DatasetId& uuid,
                                    const CheckpointId& snapshot);
/// Whether all that was decided about the job is on two machines, the code that its first attempt
/// begins with included.
bool is_safe(const Machine& m, const DesiredJob& job);
/// The same by its identity; of a job that is not there any more there is nothing to keep.
inline std::function<bool(const Machine&)> safe_when(const JobId& id) {
  return [id](const Machine& m) {
    const DesiredJob* job = m.desired.find(id);
    return job == nullptr || is_safe(m, *job);
  };
}

}  // namespace zed::controller
