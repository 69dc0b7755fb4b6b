#include <algorithm>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/render.hpp"
#include "cli/table.hpp"

namespace zed::cli {
namespace {

Style style_of(JobState state) {
  switch (state) {
  case JobState::running:
  case JobState::checkpointing:
  case JobState::succeeded: return Style::good;
  case JobState::pending:
  case JobState::preparing:
  case JobState::stopping:
  case JobState::stopped: return Style::warning;
  case JobState::failed:
  case JobState::lost:
  case JobState::waiting: return Style::bad;
  case JobState::cancelled: return Style::faint;
  }
  return Style::plain;
}

/// Four digits of a number that has more; anything else as it is. `--json` has all of them.
std::string shortened(const std::string& value) {
  constexpr std::size_t short_enough = 7;
  char* end = nullptr;
  double number = std::strtod(value.c_str(), &end);
  bool is_number = !value.empty() && end == value.c_str() + value.size();
  return is_number && value.size() > short_enough ? fmt::format("{:.4g}", number) : value;
}

/// "loss 0.0023, accuracy 0.91": the loss first, it is what people look for.
std::string metrics_of(const std::map<std::string, std::string>& metrics) {
  std::vector<std::string> parts;
  if (auto loss = metrics.find("loss"); loss != metrics.end())
    parts.push_back("loss " + shortened(loss->second));
  for (const auto& [name, value] : metrics)
    if (name != "loss" && name != "epoch" && name != "step")
      parts.push_back(name + " " + shortened(value));
  return join(parts, ", ");
}

WallTime latest_of(const api::JobRow& job) {
  if (job.ended.ms != 0) return job.ended;
  return job.started.ms != 0 ? job.started : job.submitted;
}

void add_row(Table& table, const api::JobRow& job, const View& view) {
  Cell state = job.declared_only ? Cell("declared", Style::faint)
                                 : Cell(std::string(to_string(job.state)), style_of(job.state));
  std::vector<std::string> gpus;
  for (const std::string& model : job.gpus)
    gpus.push_back(gpu_name(model, view));
  table.add({job.name, state, job.node, join(gpus, ", "), job.checkpoint, metrics_of(job.metrics),
             job.checkpoint_copies, job.declared_only ? "" : ago(latest_of(job), view), job.reason,
             job.attempt == 0 ? "" : std::to_string(job.attempt), job.generation, job.timeline,
             job.declared_only ? ""
             : job.safe        ? "yes"
                               : "accepted",
             job.id.str()});
}

std::string place_of(const std::optional<Placement>& placement) {
  if (!placement) return {};
  std::string text = "on " + placement->node.str();
  return placement->why.empty() ? text : text + ": " + printable(placement->why);
}

std::string rejection_text(const Rejection& rejection, const View& view) {
  std::string text = rejection.is_impossible()
                         ? styled("No node can hold it, not even an idle one.", Style::bad, view)
                         : styled("It waits: no node is free for it now.", Style::warning, view);
  return text + "\n" + render_refusals(rejection.nodes, rejection.nearest.str(), view);
}

std::string safety_of(bool safe, const View& view) {
  return safe ? ""
              : styled("accepted on one machine, not yet copied to a second\n", Style::faint, view);
}

/// What is left of an abandoned timeline, and what else its dataset keeps of older ones.
struct Branch {
  std::string dataset;
  std::string newest_timeline;  ///< of its rows, which come oldest first: the one that was left
  Table table;
};

std::string reason_of(Fork::Why why) {
  switch (why) {
  case Fork::Why::rollback: return "a rollback";
  case Fork::Why::resume_from: return "resume --from";
  case Fork::Why::node_lost: return "the loss of its node";
  case Fork::Why::hand_rollback: return "a rollback by hand";
  case Fork::Why::restart: return "a restart";
  }
  return "a fork";
}

std::string branch_heading(const Branch& branch, const api::CheckpointsReply& reply,
                           const View& view) {
  std::string text = "\nbranch " + printable(branch.dataset) + ", left";
  for (const Fork& fork : reply.forks)
    if (fork.left.brief() == branch.newest_timeline)
      text += " by " + reason_of(fork.why) + " at " + clock_text(fork.at, view) +
              (fork.by.empty() ? "" : " (" + printable(fork.by) + ")");
  return styled(text, Style::faint, view) + "\n";
}

Table checkpoint_table() {
  return Table({{"CHECKPOINT"},
                {"SEQ", Align::right},
                {"METRICS", Align::left, true},
                {"ON", Align::left, true},
                {"SIZE", Align::right, false, true},
                {"TAKEN", Align::right},
                {"TIMELINE"},
                {"GENERATION"},
                {"ID"}});
}

/// In the words of the state that follows from it: "exit-code" is said by its property only.
std::string ending_of(const std::string& closing) {
  return closing == to_string(ExitRecord::Kind::success)
             ? std::string(to_string(JobState::succeeded))
             : closing;
}

void add_row(Table& table, const api::CheckpointRow& row, const View& view) {
  std::string what = metrics_of(row.metrics);
  if (!row.closing.empty())
    what = "closing: " + ending_of(row.closing) + (what.empty() ? "" : ", " + what);
  const char* by = row.name == property::submitted ? "as submitted" : "taken by hand";
  if (row.closing.empty() && !row.seq) what = by + (what.empty() ? "" : ", " + what);
  table.add({at(row.name), row.seq ? std::to_string(*row.seq) : "",
             Cell(std::move(what), row.current ? Style::plain : Style::faint),
             row.nodes.empty() ? Cell("nowhere", Style::bad) : Cell(join(row.nodes, ", ")),
             show(row.used), ago(row.created, view), row.timeline, row.generation, row.id.str()});
}

std::string table_text(Table table, const View& view) {
  if (!view.wide) table.keep(6);
  return table.render(view);
}

std::string words_of(const std::vector<std::string>& checkpoints) {
  std::vector<std::string> words;
  for (const std::string& name : checkpoints)
    words.push_back(printable(at(name)));
  return join(words, ", ");
}

}  // namespace

std::string sentence_of(const api::JobRow& job) {
  const bool has = job.state == JobState::succeeded || job.state == JobState::failed;
  std::string text =
      printable(job.name) + (job.declared_only
                                 ? " is declared, not dispatched"
                                 : (has ? " has " : " is ") + std::string(to_string(job.state)));
  if (!job.node.empty() && !job.declared_only) text += " on " + printable(job.node);
  if (!job.checkpoint.empty()) text += ", newest checkpoint " + printable(job.checkpoint);
  return job.reason.empty() ? text : text + " (" + printable(job.reason) + ")";
}

std::string render(const api::JobsReply& reply, const View& view) {
  if (reply.jobs.empty()) return "no jobs (zedctl jobs --all shows finished and declared ones)\n";
  std::vector<Column> columns{{"JOB"},
                              {"STATE"},
                              {"NODE"},
                              {"GPU", Align::left, true, true},
                              {"CHECKPOINT"},
                              {"METRICS", Align::left, true, true},
                              {"COPIES", Align::left, true},
                              {"SINCE", Align::right},
                              {"REASON", Align::left, true}};
  const std::size_t narrow = columns.size();
  for (const char* header : {"ATTEMPT", "GENERATION", "TIMELINE", "SAFE", "ID"})
    columns.push_back({header});
  Table table(columns);
  for (const api::JobRow& job : reply.jobs)
    add_row(table, job, view);
  if (!view.wide) table.keep(narrow);
  return table.render(view);
}

std::string render(const api::CheckpointsReply& reply, const View& view) {
  std::string text = sentence_of(reply.job) + "\n";
  if (reply.checkpoints.empty()) return text + "no checkpoints yet\n";
  Table current = checkpoint_table();
  std::vector<Branch> branches;
  for (const api::CheckpointRow& row : reply.checkpoints) {
    if (row.current) {
      add_row(current, row, view);
      continue;
    }
    auto branch = std::find_if(branches.begin(), branches.end(), [&row](const Branch& known) {
      return known.dataset == row.dataset;
    });
    if (branch == branches.end())
      branch = branches.insert(branch, Branch{row.dataset, "", checkpoint_table()});
    branch->newest_timeline = row.timeline;
    add_row(branch->table, row, view);
  }
  if (!current.empty()) text += table_text(std::move(current), view);
  for (Branch& branch : branches)
    text += branch_heading(branch, reply, view) + table_text(std::move(branch.table), view);
  return text;
}

std::string render(const api::WhyReply& reply, const View& view) {
  std::string text = sentence_of(reply.job) + "\n";  // its reason included
  for (const std::string& reason : reply.reasons)
    if (reason != reply.job.reason) text += "- " + printable(reason) + "\n";
  if (reply.placement && reply.placement->why != reply.job.reason)
    text += place_of(reply.placement) + "\n";
  if (reply.rejection) text += rejection_text(*reply.rejection, view);
  if (reply.job.state == JobState::failed && !reply.job.declared_only)
    text += "  next: zedctl logs " + printable(reply.job.name) + " shows what it wrote, zedctl " +
            "resume " + printable(reply.job.name) + " runs it again\n";
  return text;
}

std::string render(const api::DispatchReply& reply, const View& view) {
  if (!reply.array.empty()) {
    std::string text = plural(reply.array.size(), "job") + ":\n";
    for (const api::JobRow& job : reply.array)
      text += "  " + sentence_of(job) + "\n";
    return text + safety_of(reply.safe, view);
  }
  std::string text = sentence_of(reply.job) + "\n";
  if (reply.placement) text += place_of(reply.placement) + "\n";
  if (reply.rejection) text += rejection_text(*reply.rejection, view);
  return text + safety_of(reply.safe, view);
}

std::string render(const api::ExpireReply& reply, const View& view) {
  if (!reply.at) return printable(reply.branch) + " stays until somebody removes it\n";
  return printable(reply.branch) + " may be destroyed after " + clock_text(*reply.at, view) +
         "; that is announced a day before\n";
}

std::string render(const api::ForkReply& reply, const View& view) {
  const std::string from = reply.from.empty() ? "its newest checkpoint" : words_of({reply.from});
  std::string text = printable(reply.job.name) + " goes on from " + from + "\n";
  if (!reply.left.empty() && reply.discard) text += "destroyed: " + words_of(reply.left) + "\n";
  if (!reply.left.empty() && !reply.discard)
    text += "kept as a branch" +
            (reply.branch.empty() ? "" : " (" + printable(reply.branch) + ")") + ": " +
            words_of(reply.left) + "\n";
  if (!reply.note.empty()) text += printable(reply.note) + "\n";
  return text + sentence_of(reply.job) + "\n" + safety_of(reply.safe, view);
}

std::string render_fork_preview(const api::ForkReply& reply, const View& view) {
  const std::string job = printable(reply.job.name);
  std::string text = job + " would go on from " + words_of({reply.from}) + "\n";
  if (reply.left.empty()) return text + "nothing is newer than that, nothing is lost\n";
  const std::string count = plural(reply.left.size(), "checkpoint");
  if (reply.discard)
    text += styled("DESTROYED on every node, for good: ", Style::bad, view) + count + ": " +
            words_of(reply.left) + "\n";
  else
    text += "kept as a branch: " + count + ": " + words_of(reply.left) + "\n";
  return reply.note.empty() ? text : text + printable(reply.note) + "\n";
}

std::string render(const api::JobReply& reply, const View&) {
  return sentence_of(reply.job) + "\n";
}

}  // namespace zed::cli
