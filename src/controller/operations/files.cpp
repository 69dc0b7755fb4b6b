// Files and metrics of a copy, asked of the node that has it.

#include "base/number.hpp"
#include "controller/names.hpp"
#include "controller/operations/daily.hpp"
#include "controller/timelines.hpp"

namespace zed::controller {
namespace {

std::string snapshot_of(const FoundCopy& copy) {
  return copy.snapshot == nullptr ? "" : copy.snapshot->name;
}

std::optional<double> number_in(const Snapshot& snapshot, const char* property) {
  auto found = snapshot.properties.find(property);
  if (found == snapshot.properties.end()) return std::nullopt;
  return parse_number<double>(found->second);
}

std::vector<api::CheckpointMark> marks_of(const Machine& m, const FoundCopy& copy) {
  std::vector<api::CheckpointMark> marks;
  for (const Snapshot& snapshot : m.fleet.copy(copy.node, copy.uuid)->snapshots)
    if (snapshot.seq() && is_on_current_timeline(*copy.job, snapshot))
      marks.push_back({snapshot.name, number_in(snapshot, property::step),
                       number_in(snapshot, property::epoch)});
  return marks;
}

Result<FoundCopy> newest_copy(const Machine& m, const std::string& typed, const Error& otherwise) {
  ZED_TRY(JobId id, find_job(m.desired, typed));
  const DesiredJob& job = *m.desired.find(id);
  auto newest = newest_reachable(m, job);
  if (!newest) return fail(otherwise);
  const Dataset* held = m.fleet.copy(newest->node, job.dataset_uuid());
  return FoundCopy{newest->node, held->uuid, held->name, newest->snapshot, &job};
}

}  // namespace

void handle(const Asked& asked, const api::ListFiles& op) {
  auto copy = find_files(asked.m, op.of, op.checkpoint);
  if (!copy) return asked.refuse(copy.error());
  ListFiles question{copy->dataset, snapshot_of(*copy), op.path, op.digest_up_to, op.after};
  ask_node_for<FileList>(asked, copy->node, std::move(question),
                         "list files of " + copy->dataset.str() + " on " + copy->node.str(),
                         [place = copy->place()](const Asked& again, const FileList& list) {
                           again.reply(api::FilesReply{place, list.entries, list.more});
                         });
}

void handle(const Asked& asked, const api::ReadFile& op) {
  auto copy = find_files(asked.m, op.of, op.checkpoint);
  if (!copy) return asked.refuse(copy.error());
  ReadFile question{copy->dataset, snapshot_of(*copy), op.path, op.offset};
  ask_node_for<FilePiece>(
      asked, copy->node, std::move(question),
      "read " + op.path + " of " + copy->dataset.str() + " on " + copy->node.str(),
      [place = copy->place()](const Asked& again, const FilePiece& piece) {
        again.reply(api::FileReply{place, piece.offset, piece.size, piece.data, piece.digest});
      });
}

void handle(const Asked& asked, const api::ReadMetrics& op) {
  auto copy = find_files(asked.m, op.job, op.checkpoint);
  // The home is away: the newest checkpoint that another has is better than nothing.
  if (!copy && copy.error().code == ErrorCode::unavailable && op.checkpoint.empty())
    copy = newest_copy(asked.m, op.job, copy.error());
  if (!copy) return asked.refuse(copy.error());
  if (copy->job == nullptr)
    return asked.refuse(ErrorCode::invalid, copy->dataset.str() + " is no job's: it has no metrics",
                        "zedctl jobs --all");
  api::MetricsReply reply;
  reply.job = copy->job->job.name.str();
  reply.place = copy->place();
  reply.checkpoints = marks_of(asked.m, *copy);
  ReadMetrics question{copy->dataset, snapshot_of(*copy), op.names, op.points};
  ask_node_for<MetricsPage>(asked, copy->node, std::move(question),
                            "read the metrics of " + reply.job + " on " + copy->node.str(),
                            [reply](const Asked& again, const MetricsPage& page) {
                              api::MetricsReply full = reply;
                              full.series = page.series;
                              full.other_names = page.other_names;
                              full.complete = page.complete;
                              again.reply(full);
                            });
}

}  // namespace zed::controller
