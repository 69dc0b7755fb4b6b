#include <algorithm>

#include "base/text.hpp"
#include "cli/render.hpp"
#include "cli/render_models.hpp"
#include "cli/table.hpp"

namespace zed::cli {
namespace {

struct Mark {
  const char* sign;
  Style style;
};

Mark mark_of(Change::Kind kind) {
  switch (kind) {
  case Change::Kind::add: return {"+", Style::good};
  case Change::Kind::change: return {"~", Style::warning};
  case Change::Kind::remove: return {"-", Style::bad};
  case Change::Kind::note: return {" ", Style::faint};
  }
  return {"?", Style::plain};
}

/// `line` at a terminal that it does not fit: broken after a ';', what follows further in.
std::string broken_to_fit(const std::string& line, const View& view) {
  if (view.width == 0 || display_width(line) <= view.width) return line;
  std::string text;
  std::size_t used = 0;
  std::size_t at = 0;
  while (at < line.size()) {
    const std::size_t end = std::min(line.find("; ", at), line.size());
    const bool last = end == line.size();
    const std::string part = line.substr(at, last ? end : end + 1 - at);
    const std::size_t width = display_width(part);
    if (used > 0 && used + 1 + width > view.width) {
      text += "\n    ";
      used = 4;
    } else if (used > 0) {
      text += " ";
      used += 1;
    }
    text += part;
    used += width;
    at = last ? end : end + 2;
  }
  return text;
}

std::string lines_of(const std::vector<Change>& changes, const View& view) {
  std::string text;
  for (const Change& change : changes) {
    const Mark mark = mark_of(change.kind);
    std::string line = std::string(mark.sign) + " " + printable(change.subject);
    if (!change.detail.empty()) line += ": " + printable(change.detail);
    if (change.destroys) line += "  (DESTROYS DATA)";
    text +=
        styled(broken_to_fit(line, view), change.destroys ? Style::bad : mark.style, view) + "\n";
  }
  return text;
}

std::string summary_of(const std::vector<Change>& changes, std::size_t steps) {
  auto count = [&changes](Change::Kind kind) {
    return std::to_string(std::count_if(changes.begin(), changes.end(),
                                        [kind](const Change& c) { return c.kind == kind; }));
  };
  std::string text = count(Change::Kind::add) + " to add, " + count(Change::Kind::change) +
                     " to change, " + count(Change::Kind::remove) + " to remove";
  return steps == 0 ? text : text + "; " + plural(steps, "plan step");
}

bool changes_anything(const std::vector<Change>& changes) {
  return std::any_of(changes.begin(), changes.end(),
                     [](const Change& change) { return change.kind != Change::Kind::note; });
}

std::string step_lines(const Plan& plan, const View& view) {
  std::string text;
  for (const PlanStep& step : plan.steps) {
    std::string line = "> " + step.node.str() + ": " + printable(describe(step.action));
    if (!step.why.empty()) line += "  (" + printable(step.why) + ")";
    text += styled(line, destroys(step.action) ? Style::bad : Style::plain, view) + "\n";
  }
  return text;
}

/// Diagnostics are text with lines of its own, the caret's place included.
std::string diagnostic_text(const std::vector<std::string>& diagnostics) {
  std::string text;
  for (const std::string& diagnostic : diagnostics)
    for (const std::string& line : split(trim(diagnostic), '\n'))
      text += printable(line) + "\n";
  return text;
}

std::string percent_of(const api::TransferRow& transfer) {
  if (transfer.total.value <= 0) return "";
  return std::to_string(std::clamp<std::int64_t>(
             static_cast<std::int64_t>(100.0 * static_cast<double>(transfer.done.value) /
                                       static_cast<double>(transfer.total.value)),
             0, 100)) +
         " %";
}

std::string left_of(const api::TransferRow& transfer) {
  return transfer.time_left ? show(*transfer.time_left) : "";
}

}  // namespace

std::string render(const api::PlanReply& reply, const View& view) {
  std::string text = diagnostic_text(reply.diagnostics);
  if (!reply.plan) return text;
  const Plan& plan = *reply.plan;
  text += lines_of(plan.changes, view) + step_lines(plan, view);
  if (!changes_anything(plan.changes) && plan.steps.empty())
    return text + "nothing to do: the fleet is as declared\n";
  return text + "plan against revision " + std::to_string(plan.base_revision) + ": " +
         summary_of(plan.changes, plan.steps.size()) + "\n";
}

std::string render(const api::ApplyReply& reply, const View& view) {
  std::string text = diagnostic_text(reply.diagnostics) + lines_of(reply.changes, view);
  text += changes_anything(reply.changes) ? "applied" : "nothing changed";
  text += ", revision " + std::to_string(reply.revision) + "\n";
  if (!reply.safe)
    text += styled("accepted on one machine, not yet copied to a second\n", Style::faint, view);
  return text;
}

std::string render(const api::AddModelReply& reply, const View&) {
  const std::string summary = summary_of(reply.properties);
  std::vector<std::string> targets;
  for (const auto& [node, policy] : reply.goes_to)
    targets.push_back(node + " (policy " + policy + ")");
  return "model " + printable(reply.name) + " is " + printable(reply.dataset + at(reply.snapshot)) +
         " on " + printable(reply.node) + ", " + show(reply.size) + "\n" +
         (summary.empty() ? "" : "  " + printable(summary) + "\n") +
         (targets.empty() ? "  its only copy; one more: zedctl replicate " +
                                printable(reply.dataset) + " --to NODE\n"
                          : "  goes to " + printable(join(targets, ", ")) + "\n");
}

std::string render(const api::SyncReply& reply, const View&) {
  const std::string where = printable(reply.dataset) + " on " + printable(reply.target);
  if (reply.was_there) return printable(reply.snapshot) + " was there already: " + where + "\n";
  if (reply.by_ssh)
    return printable(reply.snapshot) + " went from " + printable(reply.source) +
           " by ssh: " + where + ", " + show(reply.moved) + "\n";
  return printable(reply.snapshot) + " came from " + printable(reply.source) + ": " + where + "\n";
}

std::string render(const api::FleetEvent& event, const View& view) {
  const std::string time = styled(clock_text(event.at, view), Style::faint, view);
  std::string line = printable(event.subject);
  if (!event.text.empty()) line += ": " + printable(event.text);
  const std::string kind = fitted(printable(event.kind), 10);
  return time + "  " + kind + std::string(12 - display_width(kind), ' ') + line + "\n";
}

std::string render(const api::EventsReply& reply, const View& view) {
  if (reply.events.empty()) return "nothing has happened\n";
  std::string text;
  for (const api::FleetEvent& event : reply.events)
    text += render(event, view);
  return text;
}

std::string sentence_of(const api::TransferRow& transfer) {
  std::string text = printable(transfer.dataset + at(transfer.snapshot) + " " + transfer.source +
                               " -> " + transfer.target) +
                     ": " + show(transfer.done);
  if (transfer.total.value > 0)
    text += " of " + show(transfer.total) + " (" + percent_of(transfer) + ")";
  text += ", " + show(transfer.rate) + "/s";
  return transfer.time_left ? text + ", " + show(*transfer.time_left) + " left" : text;
}

std::string render(const api::TransfersReply& reply, const View& view) {
  if (reply.transfers.empty()) return "nothing is moving\n";
  Table table({{"SNAPSHOT", Align::left, true},
               {"FROM"},
               {"TO"},
               {"DONE", Align::right},
               {"OF", Align::right},
               {"", Align::right},
               {"RATE", Align::right},
               {"LEFT", Align::right},
               {"WHY", Align::left, true, true}});
  for (const api::TransferRow& row : reply.transfers)
    table.add({row.dataset + at(row.snapshot), row.source, row.target, show(row.done),
               row.total.value > 0 ? show(row.total) : "", percent_of(row), show(row.rate) + "/s",
               left_of(row), row.why});
  return table.render(view);
}

std::string render(const LogLine& line, bool with_time, const View& view) {
  const std::string text = printable_log(line.text, view.colour);
  const std::string time =
      with_time ? styled(clock_text(line.at, view), Style::faint, view) + "  " : "";
  return time + (line.error_stream ? styled(text, Style::warning, view) : text) + "\n";
}

std::string render(const Error& error, const View& view) {
  std::string text = styled("error: ", Style::bad, view);
  for (auto frame = error.frames.rbegin(); frame != error.frames.rend(); ++frame)
    text += printable(*frame) + ": ";
  const std::vector<std::string> lines = split(error.message, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += (i == 0 ? "" : "  ") + printable(lines[i]) + "\n";
  if (error.hint.empty()) return text;
  std::string hint;
  for (const std::string& line : split(error.hint, '\n'))
    hint += (hint.empty() ? "  next: " : "        ") + printable(line) + "\n";
  return text + hint;
}

}  // namespace zed::cli
