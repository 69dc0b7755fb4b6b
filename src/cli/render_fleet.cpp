#include <algorithm>
#include <functional>
#include <set>

#include "base/text.hpp"
#include "cli/render.hpp"
#include "cli/render_models.hpp"
#include "cli/table.hpp"

namespace zed::cli {
namespace {

Style style_of(NodeStatus status) {
  switch (status) {
  case NodeStatus::up: return Style::good;
  case NodeStatus::suspect:
  case NodeStatus::draining:
  case NodeStatus::cordoned: return Style::warning;
  case NodeStatus::lost: return Style::bad;
  }
  return Style::plain;
}

/// Equal texts side by side, counted: "2x A100, RTX 3080".
std::string counted(const std::vector<std::string>& texts) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < texts.size();) {
    std::size_t same = i;
    while (same < texts.size() && texts[same] == texts[i])
      ++same;
    parts.push_back(same - i == 1 ? texts[i] : std::to_string(same - i) + "x " + texts[i]);
    i = same;
  }
  return join(parts, ", ");
}

std::string memory_of(const Gpu& gpu) {
  const std::string size =
      gpu.vram_nominal_gb ? std::to_string(*gpu.vram_nominal_gb) + " GB" : show(gpu.vram_reported);
  return gpu.memory_kind == MemoryKind::unified ? size + " unified" : size;
}

std::string gpus_of(const api::NodeRow& row, const View& view) {
  std::vector<std::string> texts;
  for (const Gpu& gpu : row.node.gpus) {
    const std::string name = gpu_name(gpu.model, view);
    texts.push_back(gpu.health == GpuHealth::ok
                        ? name
                        : name + " (" + std::string(to_string(gpu.health)) + ")");
  }
  if (row.joined || !row.node.declared) return counted(texts);
  for (const DeclaredGpu& gpu : row.node.declared->gpus)
    texts.insert(texts.end(), static_cast<std::size_t>(std::clamp<std::int64_t>(gpu.count, 0, 64)),
                 gpu.model);
  return counted(texts);
}

std::string vram_of(const api::NodeRow& row) {
  std::vector<std::string> texts;
  for (const Gpu& gpu : row.node.gpus)
    texts.push_back(memory_of(gpu));
  return counted(texts);
}

std::string jobs_of(const api::NodeRow& row) {
  std::set<std::string> names;
  for (const auto& [gpu, job] : row.gpu_jobs)
    names.insert(job);
  return join({names.begin(), names.end()}, ", ");
}

/// "server 112 MB/s, macbook 41 MB/s": to where, as transfers went.
std::string links_of(const api::NodeRow& row) {
  std::vector<std::string> texts;
  for (const api::LinkRow& link : row.links)
    texts.push_back(link.to + " " + show(link.rate) + "/s");
  return join(texts, ", ");
}

std::string seen_of(const api::NodeRow& row) {
  if (!row.joined) return "never";
  return row.node.silent < seconds(6) ? "now" : brief(row.node.silent) + " ago";
}

void add_row(Table& table, const api::NodeRow& row, const View& view) {
  const NodeFacts& facts = row.node.facts;
  Cell status = row.joined
                    ? Cell(std::string(to_string(row.node.status)), style_of(row.node.status))
                    : Cell("declared", Style::faint);
  std::string store = row.joined ? std::string(to_string(facts.store)) + " " + facts.pool : "";
  if (row.joined && !facts.may_run_jobs) store += ", copies only";
  table.add({row.node.name.str(), status, gpus_of(row, view), vram_of(row), jobs_of(row),
             std::move(store), row.joined ? show(row.node.pool_free) : "", seen_of(row),
             row.joined ? facts.os + " " + facts.cpu_arch : "",
             row.joined ? std::to_string(facts.cpus) : "", row.joined ? show(facts.memory) : "",
             row.joined ? facts.power : "", row.joined ? facts.data_address : "", links_of(row),
             join(facts.labels, ", "), row.joined ? facts.version : ""});
}

std::string counts_of(const std::map<std::string, std::int64_t>& counts) {
  std::vector<std::string> parts;
  for (const auto& [word, count] : counts)
    if (count != 0) parts.push_back(std::to_string(count) + " " + printable(word));
  return parts.empty() ? "none" : join(parts, ", ");
}

}  // namespace

std::string render(const api::StatusReply& reply, const View& view) {
  std::string text = reply.cluster.empty() ? "no cluster file applied yet (zedctl apply FILE)"
                                           : styled(printable(reply.cluster), Style::strong, view);
  text += "\ncontroller  " + printable(reply.controller) + ", term " +
          printable(view.wide ? reply.term : reply.term.substr(0, reply.term.find('-'))) +
          ", revision " + std::to_string(reply.revision) + "\n";
  if (reply.journal_second.empty())
    text += "journal     " + styled("on this machine only", Style::warning, view) +
            ": no second node is up to hold its copy\n";
  else
    text += "journal     " + std::string(reply.safe ? "safe, also on " : "being copied to ") +
            printable(reply.journal_second) + "\n";
  text += "nodes       " + counts_of(reply.nodes) + "\n";
  text += "gpus        " + std::to_string(reply.gpus_busy) + " of " + std::to_string(reply.gpus) +
          " busy\n";
  text += "jobs        " + counts_of(reply.jobs) + "\n";
  for (std::size_t i = 0; i < reply.transfers.size(); ++i)
    text += std::string(i == 0 ? "moving      " : "            ") +
            sentence_of(reply.transfers[i]) + "\n";
  for (const std::string& warning : reply.warnings)
    text += styled("! " + printable(warning), Style::warning, view) + "\n";
  return text;
}

std::string render(const api::NodesReply& reply, const View& view) {
  if (reply.nodes.empty()) return "no node has joined, and none is declared\n";
  std::vector<Column> columns{{"NODE"},
                              {"STATUS"},
                              {"GPUS", Align::left, true},
                              {"VRAM", Align::left, true},
                              {"JOBS", Align::left, true},
                              {"STORE"},
                              {"FREE", Align::right},
                              {"SEEN", Align::right, false, true}};
  const std::size_t narrow = columns.size();
  for (const char* header :
       {"OS", "CPUS", "MEMORY", "POWER", "DATA ADDRESS", "SENDS TO", "LABELS", "VERSION"})
    columns.push_back({header, Align::left, true, true});
  Table table(columns);
  for (const api::NodeRow& row : reply.nodes)
    add_row(table, row, view);
  if (!view.wide) table.keep(narrow);
  std::string text = table.render(view);
  if (const std::size_t left_out = table.left_out(view); view.wide && left_out > 0)
    text += styled(plural(left_out, "column") + " more in a wider terminal, or by -o csv",
                   Style::faint, view) +
            "\n";
  for (const api::NodeRow& row : reply.nodes) {
    for (const std::string& difference : row.differences)
      text +=
          styled("! " + row.node.name.str() + ": " + printable(difference), Style::warning, view) +
          "\n";
    for (const Gpu& gpu : row.node.gpus)
      if (!gpu.why.empty())
        text += styled("! " + row.node.name.str() + ": " + printable(gpu.model + ": " + gpu.why),
                       Style::warning, view) +
                "\n";
  }
  return text;
}

std::string render(const api::ModelsReply& reply, const View& view) {
  if (reply.models.empty())
    return "no models yet (zedctl model add FILE --name NAME, or a cluster file)\n";
  Table table({{"MODEL"},
               {"VERSION"},
               {"ALIASES", Align::left, true},
               {"SIZE", Align::right},
               {"NEEDS", Align::left, true},
               {"HOME"},
               {"COPIES", Align::left, true},
               {"DATASET", Align::left, true, true}});
  for (const api::ModelRow& model : reply.models) {
    const bool here = !model.copies.empty();
    const auto aliases = model.properties.find("aliases");
    table.add({model.name, model.version, aliases == model.properties.end() ? "" : aliases->second,
               model.size.value > 0 ? show(model.size) : "", model.requirement, model.home,
               here ? Cell(copies_of(model)) : Cell("none yet", Style::warning), model.dataset});
  }
  if (!view.wide) table.keep(7);
  std::string text = table.render(view);
  if (!view.wide) return text;
  for (const api::ModelRow& model : reply.models) {
    for (const auto& [node, why] : model.not_on)
      text += printable(model.name + " is not on " + node + ": " + why) + "\n";
    for (const auto& [key, value] : model.properties)
      text += styled(printable(model.name + " " + key + "=" + value), Style::faint, view) + "\n";
  }
  return text;
}

std::string render(const api::MatchReply& reply, const View& view) {
  std::string text;
  if (reply.matches.empty()) {
    text = "no node can hold this\n";
  } else {
    Table table({{"NODE"}, {"GPUS", Align::right}, {"WHY", Align::left, true}});
    for (const Placement& match : reply.matches)
      table.add(
          {Cell(match.node.str(), Style::good), std::to_string(match.gpus.size()), match.why});
    text = table.render(view);
  }
  if (!reply.refusals.empty()) text += "\n" + render_refusals(reply.refusals, "", view);
  return text;
}

std::string render_refusals(const std::vector<Refusal>& refusals, const std::string& nearest,
                            const View& view) {
  Table table({{"NOT ON"}, {"BECAUSE"}, {"WANTED", Align::left, true}, {"HAS", Align::left, true}});
  for (const Refusal& refusal : refusals) {
    std::string name = refusal.node.str();
    if (!nearest.empty() && name == nearest) name += " (nearest)";
    for (const Shortfall& shortfall : refusal.shortfalls) {
      std::string constraint = shortfall.constraint + (shortfall.for_now ? " (for now)" : "");
      table.add({std::exchange(name, ""),
                 Cell(std::move(constraint), shortfall.for_now ? Style::warning : Style::bad),
                 shortfall.wanted, shortfall.had});
    }
  }
  return table.empty() ? "" : table.render(view);
}

}  // namespace zed::cli
