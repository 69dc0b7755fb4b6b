#pragma once
// Handlers of api/daily.hpp, and what they share: finding a copy that a person named, and asking
// its node. Inside the room only.

#include "api/daily.hpp"
#include "controller/operations/handlers.hpp"

namespace zed::controller {

// look.cpp
void handle(const Asked& asked, const api::ListGpus& op);
void handle(const Asked& asked, const api::ListDatasets& op);
// files.cpp
void handle(const Asked& asked, const api::ListFiles& op);
void handle(const Asked& asked, const api::ReadFile& op);
void handle(const Asked& asked, const api::ReadMetrics& op);
// diff.cpp
void handle(const Asked& asked, const api::DiffCheckpoints& op);
// replicate.cpp
void handle(const Asked& asked, const api::Replicate& op);
// prune.cpp
void handle(const Asked& asked, const api::Prune& op);
// run.cpp
void handle(const Asked& asked, const api::RunJob& op);
// exec.cpp
void handle(const Asked& asked, const api::Exec& op);
void handle(const Asked& asked, const api::ExecTend& op);

// adopt.cpp
void handle(const Asked& asked, const api::Adopt& op);
/// The identity of a dataset of that name that was adopted as a job's and never dispatched.
std::optional<JobId> adopted_for(const Machine& m, const DatasetName& dataset);

/// A copy that a person named, on a node that can be asked.
struct FoundCopy {
  NodeName node;
  DatasetId uuid;
  DatasetName dataset;
  const Snapshot* snapshot = nullptr;  ///< none: the live files
  const DesiredJob* job = nullptr;     ///< none: no job's

  api::Place place() const;
};
/// `typed` is a job or a dataset ("jobs/train-001", or its last component); `checkpoint` with or
/// without '@'. A checkpoint of an abandoned timeline is found by its branch's name. Errors:
/// `not_found`, `unavailable`.
Result<FoundCopy> find_files(const Machine& m, const std::string& typed,
                             const std::string& checkpoint);
/// The dataset of that name, or whose last component it is. Errors: `not_found`.
Result<DatasetName> find_dataset(const Machine& m, const std::string& typed);

/// Asks a node and goes on with what it says, errors included; refuses if it goes away or is late.
void ask_node(const Asked& asked, const NodeName& node, NodeQuestion question, std::string what,
              std::function<void(const Asked&, const Result<NodeReply>&)> next);
/// The same for a question that must succeed, answered by one type.
template <class Reply>
void ask_node_for(const Asked& asked, const NodeName& node, NodeQuestion question, std::string what,
                  std::function<void(const Asked&, const Reply&)> next) {
  auto taken = [what, next = std::move(next)](const Asked& again, const Result<NodeReply>& reply) {
    if (!reply) return again.refuse(Error(reply.error()).with(what));
    const auto* body = std::get_if<Reply>(&*reply);
    if (body == nullptr)
      return again.refuse(ErrorCode::internal, "the node's answer is of another kind");
    next(again, *body);
  };
  ask_node(asked, node, std::move(question), what, std::move(taken));
}

}  // namespace zed::controller
