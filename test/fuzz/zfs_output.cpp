// Whatever zfs prints, and whatever somebody set as a property by hand, is read as rows or left
// out; what is taken keeps its promises.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "store/zfs/errors.hpp"
#include "store/zfs/inventory.hpp"
#include "store/zfs/marker.hpp"
#include "store/zfs/output.hpp"

namespace {

using namespace zed;
using namespace zed::store::zfs;

void require(bool holds) {
  if (!holds) std::abort();
}

void try_values(std::string_view text) {
  std::string stored = encode_value(text);
  require(decode_value(stored) == text);
  for (char c : stored)
    require(c >= 0x20 && c < 0x7f);
  (void)decode_value(text);
}

void try_listings(std::string_view text) {
  auto rows = parse_snapshots(text);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    require(is_snapshot_word(rows[i].word));
    bool follows = i == 0 || rows[i - 1].dataset != rows[i].dataset ||
                   rows[i - 1].createtxg <= rows[i].createtxg;
    require(follows);
  }
  auto name = DatasetName::parse("jobs/a").value();
  for (const auto& [full, facts] : gather(parse_properties(text))) {
    Record record = assemble(name, facts, rows, {});
    // Without known facts no snapshot counts, and nothing of a marker shows.
    require(record.dataset.snapshots.empty());
    require(!record.dataset.properties.contains(std::string(marker_name)));
  }
}

void try_marker(std::string_view text) {
  auto marker = Marker::parse(text);
  if (!marker) return;
  auto again = Marker::parse(marker->str());
  require(again && again->str() == marker->str());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  try_values(text);
  try_listings(text);
  try_marker(text);
  (void)parse_mounts(text);
  (void)parse_estimate(text);
  (void)parse_version(text);
  if (auto point = parse_resume_point(text)) require(point->to_name.size() <= size);
  require(error_of("try it", text).message.size() < 600);
  return 0;
}
