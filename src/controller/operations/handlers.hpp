#pragma once
// One function an operation. A read answers at once; a change records, and answers when its record
// is durable; what needs an agent waits for it, with a deadline. Inside the room only.

#include "controller/machine.hpp"

namespace zed::controller {

/// One request under way.
struct Asked {
  Machine& m;
  RequestId request = 0;
  const api::Caller& caller;

  template <class Reply> void reply(const Reply& body) const {
    m.answer(request, api::encode_reply(body));
  }
  void refuse(ErrorCode code, std::string message, std::string hint = {}) const {
    m.answer(request, fail(code, std::move(message), std::move(hint)));
  }
  void refuse(Error error) const { m.answer(request, fail(std::move(error))); }
  /// Answers with the job's row and what `make` adds once all records so far are durable.
  void reply_when_durable(std::function<Result<Value>(Machine&)> make) const;
  /// The same for an answer that says whether it is safe: a second node that is there gets a moment
  /// to confirm it.
  void reply_when_safe(std::function<bool(const Machine&)> is_safe,
                       std::function<Result<Value>(Machine&)> make) const;
  /// Answers by the outcome of a need; fails when `node`'s connection goes or time is up.
  void reply_on_need(const std::string& need, const NodeName& node, Millis within, std::string what,
                     std::function<Result<Value>(Machine&, const NeedOutcome&)> make) const;
  /// Goes on with `next` once the need is met; refuses as reply_on_need does.
  void continue_on_need(const std::string& need, const NodeName& node, Millis within,
                        std::string what, std::function<void(const Asked&)> next) const;
  /// The same, but `next` is called too, to look again: after a failure that may pass, and at each
  /// tick at which nothing of the need is under way, as when a node of it went away.
  void persist_on_need(const std::string& need, const NodeName& node, Millis within,
                       std::string what, std::function<void(const Asked&)> next) const;
  /// The same for a `next` that wants to know what came of it.
  void continue_with_outcome(const std::string& need, const NodeName& node, Millis within,
                             std::string what,
                             std::function<void(const Asked&, const NeedOutcome&)> next) const;
  /// The journal is writable; else the request was refused.
  bool may_change() const;
  /// Who asked, for `by`.
  const std::string& by() const { return caller.who; }
  void audit(const std::string& subject, const std::string& text) const;
};

// reads.cpp
void handle(const Asked& asked, const api::GetStatus& op);
void handle(const Asked& asked, const api::ListNodes& op);
void handle(const Asked& asked, const api::ListModels& op);
void handle(const Asked& asked, const api::ListJobs& op);
void handle(const Asked& asked, const api::ListEvents& op);
void handle(const Asked& asked, const api::ListTransfers& op);
void handle(const Asked& asked, const api::ReadJobLog& op);
// checkpoints.cpp
void handle(const Asked& asked, const api::ListCheckpoints& op);
// why.cpp
void handle(const Asked& asked, const api::MatchNodes& op);
void handle(const Asked& asked, const api::WhyJob& op);
// apply.cpp
void handle(const Asked& asked, const api::MakePlan& op);
void handle(const Asked& asked, const api::Apply& op);
// models.cpp
void handle(const Asked& asked, const api::AddModel& op);
// sync.cpp
void handle(const Asked& asked, const api::SyncToRemote& op);
// dispatch.cpp
void handle(const Asked& asked, const api::Dispatch& op);
// forks.cpp
void handle(const Asked& asked, const api::Rollback& op);
void handle(const Asked& asked, const api::Resume& op);
// stop.cpp
void handle(const Asked& asked, const api::StopJob& op);
void handle(const Asked& asked, const api::CancelJob& op);
void handle(const Asked& asked, const api::CheckpointJob& op);
void handle(const Asked& asked, const api::SetNodeDuty& op);

// forget.cpp
void handle(const Asked& asked, const api::ForgetNode& op);
// expire.cpp
void handle(const Asked& asked, const api::ExpireBranch& op);

// tokens.cpp
void handle(const Asked& asked, const api::CreateToken& op);
void handle(const Asked& asked, const api::ListTokens& op);

/// All nodes as `zedctl nodes` shows them.
api::NodesReply nodes_reply(const Machine& m);
/// The job that was typed, or nullptr: the request was refused then.
DesiredJob* job_or_refuse(const Asked& asked, const std::string& typed);
/// Nothing for a node that is ready; else why it is not, as `code`.
Status check_ready(const Machine& m, const NodeName& node, ErrorCode code = ErrorCode::unavailable);
/// Why no node could ever hold the job; nothing if one could, now or later.
std::optional<Rejection> impossible(const Machine& m, const DesiredJob& job);

}  // namespace zed::controller
