#pragma once
// Replies as text for people: pure functions, tested against test/golden/cli/*.txt. Every name and
// text that came from elsewhere is made printable on its way.

#include <string>
#include <vector>

#include "api/daily_replies.hpp"
#include "api/replies.hpp"
#include "api/store_operations.hpp"
#include "base/result.hpp"
#include "cli/view.hpp"
#include "core/finding.hpp"

namespace zed::cli {

// The fleet (render_fleet.cpp).
std::string render(const api::StatusReply& reply, const View& view);
std::string render(const api::NodesReply& reply, const View& view);
std::string render(const api::ModelsReply& reply, const View& view);
std::string render(const api::MatchReply& reply, const View& view);

// Jobs (render_jobs.cpp).
std::string render(const api::JobsReply& reply, const View& view);
std::string render(const api::CheckpointsReply& reply, const View& view);
std::string render(const api::WhyReply& reply, const View& view);
std::string render(const api::DispatchReply& reply, const View& view);
std::string render(const api::ExpireReply& reply, const View& view);
std::string render(const api::ForkReply& reply, const View& view);
std::string render(const api::JobReply& reply, const View& view);
/// What a rollback with --discard destroys, or leaves as a branch: before asking.
std::string render_fork_preview(const api::ForkReply& reply, const View& view);
/// "finetune is running on server".
std::string sentence_of(const api::JobRow& job);

// Daily use (render_daily.cpp).
std::string render(const api::GpusReply& reply, const View& view);
std::string render(const api::DatasetsReply& reply, const View& view);
std::string render(const api::FilesReply& reply, const View& view);
std::string render(const api::MetricsReply& reply, const View& view);
std::string render(const api::DiffReply& reply, const View& view);
std::string render(const api::ReplicateReply& reply, const View& view);
std::string render(const api::PruneReply& reply, const View& view);
std::string render(const api::AdoptReply& reply, const View& view);

// Changes and what happens (render_changes.cpp).
std::string render(const api::PlanReply& reply, const View& view);
std::string render(const api::ApplyReply& reply, const View& view);
std::string render(const api::AddModelReply& reply, const View& view);
std::string render(const api::SyncReply& reply, const View& view);
std::string render(const api::EventsReply& reply, const View& view);
std::string render(const api::TransfersReply& reply, const View& view);
std::string render(const api::FleetEvent& event, const View& view);
/// "models/llama@v1 server -> workstation: 1.20 GiB of 40.0 GiB (3 %), 110 MiB/s, 5 min left".
std::string sentence_of(const api::TransferRow& transfer);
std::string render(const LogLine& line, bool with_time, const View& view);

/// Why each node was refused, one line a node; `nearest` is marked.
std::string render_refusals(const std::vector<Refusal>& refusals, const std::string& nearest,
                            const View& view);

// This machine (render_doctor.cpp).
/// A line a finding, what to type below it, the sums at the end.
std::string render(const Findings& findings, const View& view);

/// Cause, what was under way, next command.
std::string render(const Error& error, const View& view);

}  // namespace zed::cli
