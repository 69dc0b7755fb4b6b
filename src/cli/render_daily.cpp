#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/plot.hpp"
#include "cli/render.hpp"
#include "cli/table.hpp"

namespace zed::cli {
namespace {

constexpr std::size_t usual_width = 80;

std::string vram_of(const Gpu& gpu) {
  const std::string size =
      gpu.vram_nominal_gb ? std::to_string(*gpu.vram_nominal_gb) + " GB" : show(gpu.vram_reported);
  return gpu.memory_kind == MemoryKind::unified ? size + " unified" : size;
}

Cell state_of(const api::GpuRow& row) {
  if (row.gpu.health != GpuHealth::ok) return {std::string(to_string(row.gpu.health)), Style::bad};
  if (row.status != NodeStatus::up)
    return {"node " + std::string(to_string(row.status)), Style::warning};
  if (!row.jobs.empty()) return {"busy", Style::warning};
  return {"free", Style::good};
}

std::string copies_of(const api::DatasetRow& row) {
  std::vector<std::string> parts;
  for (const api::DatasetCopy& copy : row.copies) {
    std::string text = copy.node;
    if (!copy.up_to_date) text += " (" + (copy.newest.empty() ? "nothing" : copy.newest) + ")";
    if (!copy.connected) text += " (away)";
    parts.push_back(std::move(text));
  }
  return join(parts, ", ");
}

std::string where(const api::Place& place) {
  return printable(place.dataset) +
         (place.snapshot.empty() ? " as it is now" : printable(place.snapshot)) + " on " +
         printable(place.node);
}

std::string mode_text(const FileEntry& entry) {
  std::string text = entry.kind == FileKind::folder ? "d"
                     : entry.kind == FileKind::link ? "l"
                                                    : "-";
  constexpr std::string_view letters = "rwxrwxrwx";
  for (std::size_t bit = 0; bit < letters.size(); ++bit)
    text += (entry.mode >> (8 - bit)) & 1 ? letters[bit] : '-';
  return text;
}

std::vector<PlotMark> marks_of(const api::MetricsReply& reply, const MetricSeries& series) {
  std::vector<PlotMark> marks;
  if (series.steps.empty()) return marks;
  for (const api::CheckpointMark& mark : reply.checkpoints) {
    // Metrics of a loop over epochs have the epoch as their step.
    const auto at = mark.step ? mark.step : mark.epoch;
    if (at) marks.push_back({*at, mark.name});
  }
  return marks;
}

/// "loss  0.1022  lowest 0.1001 at 15  2.31 at the start  25 values".
std::string heading_of(const MetricSeries& series, const View& view) {
  std::string text = styled(printable(series.name), Style::strong, view);
  if (!series.values.empty()) {
    const auto low = std::min_element(series.values.begin(), series.values.end());
    const auto high = std::max_element(series.values.begin(), series.values.end());
    auto step = [&series](auto it) {
      return brief_number(series.steps[static_cast<std::size_t>(it - series.values.begin())]);
    };
    text += "  " + brief_number(series.values.back()) + " at " + brief_number(series.steps.back()) +
            ", lowest " + brief_number(*low) + " at " + step(low) + ", highest " +
            brief_number(*high) + " at " + step(high);
  }
  text += ", " + plural(static_cast<std::size_t>(series.count), "value");
  if (series.not_finite > 0)
    text += styled(fmt::format(", {} of them not finite, the first at {}", series.not_finite,
                               brief_number(series.first_not_finite.value_or(0))),
                   Style::bad, view);
  return text + "\n";
}

/// The metric that people look for first.
const MetricSeries& main_series(const std::vector<MetricSeries>& series) {
  for (const char* name : {"loss", "train_loss", "train/loss", "val_loss", "eval_loss"})
    for (const MetricSeries& one : series)
      if (one.name == name) return one;
  return series.front();
}

/// A figure of the last load with its unit; empty where it is not known.
std::string figure(const api::GpuRow& row, std::optional<std::int64_t> GpuLoad::*field,
                   std::string_view unit) {
  if (!row.load || !((*row.load).*field)) return "";
  return std::to_string(*((*row.load).*field)) + std::string(unit);
}

std::string watts(const api::GpuRow& row) {
  return row.load && row.load->power ? fmt::format("{:.0f} W", *row.load->power) : "";
}

std::string row_label(const api::FactDifference& fact) {
  return fact.name.empty() ? fact.kind : fact.kind + " " + fact.name;
}

}  // namespace

std::string render(const api::GpusReply& reply, const View& view) {
  if (reply.gpus.empty()) return "no node has reported a GPU (zedctl nodes)\n";
  Table table({{"NODE"},
               {"GPU", Align::left, true},
               {"VRAM", Align::right},
               {"STATE"},
               {"JOBS", Align::left, true},
               {"ARCH"},
               {"DRIVER"},
               {"CUDA"},
               {"OTHERS", Align::right},
               {"BUSY", Align::right},
               {"USED", Align::right},
               {"TEMP", Align::right},
               {"POWER", Align::right},
               {"UUID", Align::left, true}});
  for (const api::GpuRow& row : reply.gpus)
    table.add({row.node, gpu_name(row.gpu.model, view), vram_of(row.gpu), state_of(row),
               join(row.jobs, ", "), row.gpu.arch, row.gpu.driver, row.gpu.cuda,
               row.gpu.vram_strangers == Bytes{} ? "" : show(row.gpu.vram_strangers),
               figure(row, &GpuLoad::utilization, " %"),
               row.load && row.load->used ? show(*row.load->used) : "",
               figure(row, &GpuLoad::temperature, " C"), watts(row), row.gpu.uuid});
  if (!view.wide) table.keep(5);
  std::string text = table.render(view);
  for (const api::GpuRow& row : reply.gpus)
    if (!row.gpu.why.empty())
      text += styled("! " + printable(row.node + ": " + row.gpu.model + ": " + row.gpu.why),
                     Style::warning, view) +
              "\n";
  return text;
}

std::string render(const api::DatasetsReply& reply, const View& view) {
  if (reply.datasets.empty()) return "no datasets yet\n";
  Table table({{"DATASET"},
               {"TYPE"},
               {"SIZE", Align::right},
               {"SNAPSHOTS", Align::right},
               {"NEWEST"},
               {"HOME"},
               {"COPIES", Align::left, true},
               {"NAME"},
               {"UUID", Align::left, true}});
  for (const api::DatasetRow& row : reply.datasets)
    table.add({row.dataset, row.type, show(row.used), std::to_string(row.snapshots), row.newest,
               row.home, copies_of(row), row.name, row.uuid.str()});
  if (!view.wide) table.keep(7);
  return table.render(view);
}

std::string render(const api::FilesReply& reply, const View& view) {
  std::string text = styled(where(reply.place), Style::faint, view) + "\n";
  if (reply.files.empty()) return text + "no files\n";
  Table table({{"MODE"}, {"SIZE", Align::right}, {"CHANGED"}, {"PATH"}, {"SHA-256"}});
  for (const FileEntry& entry : reply.files)
    table.add({mode_text(entry), entry.kind == FileKind::file ? show(entry.size) : "",
               clock_text(entry.modified, view),
               entry.path + (entry.kind == FileKind::folder ? "/" : "") +
                   (entry.target.empty() ? "" : " -> " + entry.target),
               entry.digest});
  text += table.render(view);
  if (reply.more) text += "and more: name a folder to see what is in it\n";
  return text;
}

std::string render(const api::MetricsReply& reply, const View& view) {
  const std::string job = printable(reply.job);
  if (reply.series.empty() && reply.other_names.empty())
    return job + " has logged no metrics\n"
                 "  next: zed.log(step=…, loss=…) in its script, docs/job-protocol.md in others\n";
  if (reply.series.empty())
    return job + " has logged no metrics of that name\n  next: zedctl metrics " + job +
           " NAME; it logs " + printable(join(reply.other_names, ", ")) + "\n";
  const PlotSize size{view.width == 0 ? usual_width : std::min<std::size_t>(view.width, 120), 12};
  std::string text;
  const MetricSeries& main = main_series(reply.series);
  for (const MetricSeries& series : reply.series) {
    // All of a few are drawn; of many the one that matters, and the others have a line each.
    const bool drawn = reply.series.size() <= 2 || &series == &main || view.wide;
    text += heading_of(series, view);
    if (drawn) text += plot(series, marks_of(reply, series), size, view) + "\n";
  }
  if (!reply.checkpoints.empty())
    text += styled("^ a checkpoint, " + reply.checkpoints.front().name + " to " +
                       reply.checkpoints.back().name,
                   Style::faint, view) +
            "\n";
  if (!reply.other_names.empty())
    text += styled("also logged: " + printable(join(reply.other_names, ", ")), Style::faint, view) +
            "\n";
  if (!reply.complete)
    text += styled("only the newest 16 MiB of its metrics were read", Style::warning, view) + "\n";
  return text;
}

std::string render(const api::DiffReply& reply, const View& view) {
  std::string text =
      styled("a  " + where(reply.a) + "\nb  " + where(reply.b), Style::faint, view) + "\n";
  if (reply.facts.empty() && reply.files.empty()) return text + "nothing differs\n";
  if (!reply.facts.empty()) {
    Table table({{""}, {"A", Align::left, true}, {"B", Align::left, true}});
    for (const api::FactDifference& fact : reply.facts)
      table.add({row_label(fact), fact.a.empty() ? "-" : fact.a, fact.b.empty() ? "-" : fact.b});
    text += "\n" + table.render(view);
  }
  if (!reply.files.empty()) {
    Table table({{""}, {"FILE"}, {"A", Align::right}, {"B", Align::right}});
    for (const api::FileDifference& file : reply.files)
      table.add({std::string(to_string(file.change)), file.path,
                 file.change == api::FileChange::added ? "" : show(file.a),
                 file.change == api::FileChange::removed ? "" : show(file.b)});
    text += "\n" + table.render(view);
  }
  if (!reply.complete)
    text += styled("there are more files than are compared", Style::warning, view) + "\n";
  return text;
}

std::string render(const api::ReplicateReply& reply, const View&) {
  const std::string what = printable(reply.dataset);
  const std::string target = printable(reply.target);
  if (reply.snapshots.empty())
    return target + " has all of " + what + " already (" + printable(reply.newest) + ")\n";
  const std::string load =
      plural(reply.snapshots.size(), "snapshot") + " (" + printable(reply.snapshots.front()) +
      (reply.snapshots.size() > 1 ? " to " + printable(reply.snapshots.back()) : "") + "), about " +
      show(reply.bytes);
  if (reply.dry_run)
    return "would bring " + load + " of " + what + " from " + printable(reply.source) + " to " +
           target + "\n";
  return target + " has " + what + printable(reply.newest) + " now: " + load + " from " +
         printable(reply.source) + "\n";
}

std::string render(const api::AdoptReply& reply, const View& view) {
  const std::string what = printable(reply.dataset) + " on " + printable(reply.node);
  std::string text;
  if (reply.steps.empty())
    text = what + " is Zed's already\n";
  else if (reply.dry_run)
    text = "would adopt " + what + ":\n";
  else
    text = "adopted " + what + (reply.uuid.empty() ? "" : ", " + printable(reply.uuid)) + "\n";
  if (reply.dry_run)
    for (const std::string& step : reply.steps)
      text += "  " + printable(step) + "\n";
  for (const std::string& warning : reply.warnings)
    text += styled("! " + printable(warning), Style::warning, view) + "\n";
  return text;
}

std::string render(const api::PruneReply& reply, const View& view) {
  const std::string job = printable(reply.job);
  const std::string kept =
      plural(static_cast<std::size_t>(std::max<std::int64_t>(0, reply.kept)), "snapshot") +
      " stay (" + printable(reply.keep) + ", and what forks, copies and models need)";
  if (reply.pruned.empty()) return "nothing to prune of " + job + ": " + kept + "\n";
  std::set<std::string> names;  // a row is a copy on one node
  for (const api::PruneRow& row : reply.pruned)
    names.insert(row.dataset + row.snapshot);
  const std::string sum = plural(names.size(), "snapshot") + " of " + job + ", " +
                          show(reply.frees) + " or more; " + kept + "\n";
  if (!reply.dry_run) return "destroyed " + sum;  // which ones was shown before
  Table table({{"SNAPSHOT"}, {"ON", Align::left, true}, {"FREES", Align::right}});
  std::vector<std::string> order;
  std::map<std::string, std::pair<std::vector<std::string>, Bytes>> by_snapshot;
  for (const api::PruneRow& row : reply.pruned) {
    const std::string name = row.dataset + row.snapshot;
    auto [entry, is_new] = by_snapshot.try_emplace(name);
    if (is_new) order.push_back(name);
    entry->second.first.push_back(row.node);
    entry->second.second = entry->second.second + row.frees;
  }
  for (const std::string& name : order) {
    const auto& [nodes, frees] = by_snapshot.at(name);
    table.add({name, join(nodes, ", "), show(frees)});
  }
  return table.render(view) + "would destroy " + sum;
}

}  // namespace zed::cli
