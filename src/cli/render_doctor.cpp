// Findings about this machine as text.

#include <algorithm>

#include "base/text.hpp"
#include "cli/render.hpp"

namespace zed::cli {
namespace {

struct Mark {
  std::string_view word;
  Style style = Style::plain;
};

Mark mark_of(Finding::Level level) {
  switch (level) {
  case Finding::Level::ok: return {"ok  ", Style::good};
  case Finding::Level::warn: return {"warn", Style::warning};
  case Finding::Level::fail: return {"fail", Style::bad};
  }
  return {};
}

std::size_t count(const Findings& findings, Finding::Level level) {
  return static_cast<std::size_t>(
      std::count_if(findings.findings.begin(), findings.findings.end(),
                    [level](const Finding& finding) { return finding.level == level; }));
}

}  // namespace

std::string render(const Findings& findings, const View& view) {
  std::size_t widest = 0;
  for (const Finding& finding : findings.findings)
    widest = std::max(widest, display_width(printable(finding.subject)));
  std::string text;
  for (const Finding& finding : findings.findings) {
    const Mark mark = mark_of(finding.level);
    const std::string subject = printable(finding.subject);
    text += styled(mark.word, mark.style, view) + "  " + subject +
            std::string(widest - display_width(subject), ' ') + "  " + printable(finding.what) +
            "\n";
    if (!finding.todo.empty()) text += "      -> " + printable(finding.todo) + "\n";
  }
  const std::size_t failures = count(findings, Finding::Level::fail);
  const std::size_t warnings = count(findings, Finding::Level::warn);
  if (failures + warnings == 0) return text + "nothing is wrong\n";
  return text + plural(failures, "failure") + ", " + plural(warnings, "warning") + "\n";
}

}  // namespace zed::cli
