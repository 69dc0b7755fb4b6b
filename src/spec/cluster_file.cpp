#include "spec/cluster_file.hpp"

#include "base/text.hpp"
#include "spec/parse.hpp"
#include "spec/validate.hpp"

namespace zed::spec {

std::optional<Diagnostic> too_large(std::string_view text) {
  if (text.size() <= largest_file) return std::nullopt;
  return Diagnostic{Severity::error,
                    {1, 1},
                    "the file has " + show(Bytes{static_cast<std::int64_t>(text.size())}) +
                        "; a cluster file has at most " +
                        show(Bytes{static_cast<std::int64_t>(largest_file)}),
                    "is this a cluster file?"};
}

Checked check(std::string_view text) {
  if (auto refused = too_large(text)) return {std::nullopt, {*refused}};
  Report report;
  Source source(text, report);
  Parsed parsed = parse(source, report);
  Checked checked;
  checked.cluster = validate(parsed, source, report);
  checked.diagnostics = source.diagnostics(report);
  return checked;
}

}  // namespace zed::spec
