#include "cli/render_models.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"
#include "cli/table.hpp"

namespace zed::cli {
namespace {

std::string property(const Properties& properties, const char* name) {
  auto found = properties.find(name);
  return found == properties.end() ? "" : found->second;
}

/// "8.03 B" of 8030261248; the text as it is if it is no number.
std::string counted(const std::string& number) {
  const auto read = parse_number<double>(number);
  if (!read) return number;
  const double n = *read;
  for (const auto& [size, unit] : {std::pair{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "K"}})
    if (n >= size) return fmt::format("{:.3g} {}", n / size, unit);
  return number;
}

std::string quantisation_of(const Properties& properties) {
  const std::string label = property(properties, "quantized");
  const std::string type = property(properties, "dtype");
  const std::string bits = property(properties, "bits_per_weight");
  std::string text =
      label == "none" ? "not quantised" + (type.empty() ? "" : " (" + type + ")") : label;
  if (!bits.empty()) text += (text.empty() ? "" : ", ") + bits + " bits per weight";
  return text;
}

/// As `models` says it; filters compare `size_gb`, so that is told, too.
std::string size_of(const api::ModelRow& model) {
  const std::string filtered = property(model.properties, "size_gb");
  if (model.size.value == 0) return filtered.empty() ? "" : filtered + " GB";
  return show(model.size) + (filtered.empty() ? "" : " (size_gb " + filtered + ")");
}

void add_line(std::string& text, const char* name, const std::string& value) {
  if (!value.empty()) text += fmt::format("{:<12}{}\n", name, printable(value));
}

std::string use_of(const api::MemoryParts& memory, const api::ModelUse& use) {
  std::string text = std::to_string(memory.context) + " tokens";
  if (use.parallel > 1) text += fmt::format(" for each of {} sequences", use.parallel);
  text += ", " + use.cache + " cache";
  if (!use.flash_attention) text += ", no flash attention";
  if (memory.gpus > 1) text += fmt::format(", over {} GPUs", memory.gpus);
  return text;
}

std::string render_memory(const api::MemoryParts& memory, const api::ModelUse& use,
                          const View& view) {
  Table table({{"MEMORY"}, {"", Align::right}});
  const auto add = [&table](const char* name, Bytes size) {
    if (size.value != 0) table.add({name, show(size)});
  };
  add("weights", memory.weights);
  add("projector", memory.projector);
  add("cache", memory.cache);
  add("compute", memory.compute);
  add("overhead", memory.overhead);
  table.add({Cell("total", Style::strong), Cell(show(memory.total), Style::strong)});
  if (memory.gpus > 1) add("fullest GPU", memory.largest);
  return "\nwith " + printable(use_of(memory, use)) + "\n" + table.render(view);
}

}  // namespace

std::string copies_of(const api::ModelRow& model) {
  std::vector<std::string> parts;
  for (const api::ModelCopy& copy : model.copies)
    parts.push_back(copy.node + (copy.up_to_date         ? ""
                                 : copy.snapshot.empty() ? " (on its way)"
                                                         : " (" + at(copy.snapshot) + ", older)"));
  return join(parts, ", ");
}

std::string summary_of(const Properties& properties) {
  std::vector<std::string> parts;
  const auto add = [&parts](std::string text) {
    if (!text.empty()) parts.push_back(std::move(text));
  };
  add(quantisation_of(properties));
  add(property(properties, "architecture"));
  if (auto count = property(properties, "parameters"); !count.empty())
    add(counted(count) + " parameters");
  if (auto context = property(properties, "context"); !context.empty()) add(context + " tokens");
  if (auto need = property(properties, "requires"); !need.empty()) add("needs " + need);
  return join(parts, ", ");
}

std::string render(const api::ShowModelReply& reply, const View& view) {
  const api::ModelRow& model = reply.model;
  const Properties& p = model.properties;
  std::string text = styled(printable(model.name), Style::strong, view);
  if (!model.version.empty()) text += " " + printable(model.version);
  text += "\n";
  add_line(text, "dataset", model.dataset);
  add_line(text, "copies", copies_of(model));
  add_line(text, "size", size_of(model));
  add_line(text, "format", property(p, "format"));
  add_line(text, "weights", quantisation_of(p));
  add_line(text, "kind", property(p, "architecture"));
  add_line(text, "parameters", counted(property(p, "parameters")));
  add_line(text, "context", property(p, "context"));
  add_line(text, "licence", property(p, "licence"));
  add_line(text, "requires", model.requirement);
  add_line(text, "aliases", property(p, "aliases"));
  for (const char* origin :
       {"source", "base_model", "trained_on", "epochs", "loss", "lineage", "sha256"})
    add_line(text, origin, property(p, origin));
  if (auto why = property(p, "unread"); !why.empty())
    text += styled("! its files were not read: " + printable(why), Style::warning, view) + "\n";
  for (const std::string& note : reply.notes)
    text += styled("! " + printable(note), Style::warning, view) + "\n";
  if (reply.memory) text += render_memory(*reply.memory, reply.use, view);
  return text;
}

std::string render(const api::FitReply& reply, const View& view) {
  std::string text = fmt::format("{} with {} tokens takes {}\n", printable(reply.model),
                                 reply.memory.context, show(reply.memory.total));
  Table table({{"NODE"},
               {"FITS"},
               {"GPUS", Align::left, true},
               {"NEEDS", Align::right},
               {"HAS", Align::right},
               {"BESIDES", Align::left, true}});
  for (const api::FitRow& row : reply.nodes) {
    Cell fits("no", Style::bad);
    if (row.whole)
      fits = Cell("whole", Style::good);
    else if (row.context > 0)
      fits = Cell(fmt::format("{} tokens", row.context), Style::warning);
    std::vector<std::string> gpus;
    for (const std::string& gpu : row.gpus)
      gpus.push_back(gpu_name(gpu, view));
    table.add({row.node, fits, join(gpus, ", "), row.gpus.empty() ? "" : show(row.need),
               row.gpus.empty() ? "" : show(row.have), row.why});
  }
  if (table.empty()) return text + "there are no nodes\n";
  return text + table.render(view);
}

std::string render(const api::AliasReply& reply, const View&) {
  if (reply.version.empty())
    return printable(reply.alias + " no longer stands for version " + reply.was + " of " +
                     reply.model) +
           "\n";
  const std::string version =
      "version " + printable(reply.version) + " of " + printable(reply.model);
  std::string text = printable(reply.alias) + " is " + version;
  if (!reply.was.empty() && reply.was != reply.version)
    text += ", no longer version " + printable(reply.was);
  return text + "\n";
}

std::string render(const api::RemoveModelReply& reply, const View& view) {
  const std::string subject =
      printable(reply.model + "@" + reply.version + " (" + reply.dataset + ")");
  const std::string where = printable(join(reply.nodes, ", "));
  std::string text = reply.removed ? subject + " is gone from " + where + "\n"
                                   : subject + " would go from " + where + "\n";
  if (!reply.removed)
    for (const std::string& dependent : reply.dependents)
      text += styled("! " + printable(dependent), Style::warning, view) + "\n";
  for (const std::string& node : reply.away)
    text +=
        styled("! " + printable(node) + " is away and keeps its copy", Style::warning, view) + "\n";
  return text;
}

namespace {

void add_rows(std::string& text, const std::vector<api::LineageRow>& rows, const View& view) {
  for (const api::LineageRow& row : rows) {
    text +=
        std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(row.depth, 0, 64)) * 2, ' ') +
        printable(row.kind + " " + row.name);
    if (!row.detail.empty()) text += styled("  " + printable(row.detail), Style::faint, view);
    text += "\n";
  }
}

}  // namespace

std::string render(const api::LineageReply& reply, const View& view) {
  std::string text = styled(printable(reply.subject), Style::strong, view) + "\n";
  text += reply.from.empty() ? "made from nothing that is known\n" : "made from\n";
  add_rows(text, reply.from, view);
  text += reply.into.empty() ? "nothing was made from it\n" : "made into\n";
  add_rows(text, reply.into, view);
  return text;
}

}  // namespace zed::cli
