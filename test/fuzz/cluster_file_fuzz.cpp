// Any bytes as a cluster file, and as a filter: read or refused, never both, and what is formatted
// means the same.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "spec/cluster_file.hpp"
#include "spec/filter.hpp"
#include "spec/words.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace zed::spec;
  std::string text(data, data + size);

  Checked checked = check(text);
  ZED_ASSERT(checked.cluster.has_value() != has_errors(checked.diagnostics));
  render(checked.diagnostics, "fuzz.exs", text);

  Formatted formatted = format(text);
  ZED_ASSERT(formatted.text.has_value() != has_errors(formatted.diagnostics));
  ZED_ASSERT(formatted.text.has_value() || !checked.cluster.has_value());
  if (formatted.text) {
    ZED_ASSERT(check(*formatted.text).cluster == checked.cluster);
    ZED_ASSERT(format(*formatted.text).text == formatted.text);
  }

  auto filter = Filter::parse(text);
  if (filter) {
    evaluate(*filter, {{"size_gb", "4.7"}, {"version", "2.1"}});
    auto again = Filter::parse(filter->str());
    // Canonical text may have more parentheses than was allowed, and be longer.
    if (again) ZED_ASSERT(again->str() == filter->str());
  }
  split_words(text);
  return 0;
}
