#include "core/dataset.hpp"

#include "base/number.hpp"

namespace zed {
namespace {

const std::string* find_property(const Properties& properties, std::string_view name) {
  auto found = properties.find(std::string(name));
  return found == properties.end() ? nullptr : &found->second;
}

std::optional<Generation> generation_property(const Properties& properties, std::string_view name) {
  const std::string* text = find_property(properties, name);
  return text != nullptr ? Generation::parse(*text) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> Snapshot::seq() const {
  const std::string* text = find_property(properties, property::seq);
  if (text == nullptr) return std::nullopt;
  return parse_number<std::uint64_t>(*text);
}

std::optional<Timeline> Snapshot::timeline() const {
  return generation_property(properties, property::timeline);
}

DatasetName code_dataset(const CheckpointId& content) {
  return *DatasetName::parse(std::string(code_root) + "/" + content.str());
}

CheckpointId id_from_guid(std::uint64_t guid) {
  CheckpointId id;
  constexpr std::array<std::uint8_t, 8> mark{'z', 'f', 's', '-', 'g', 'u', 'i', 'd'};
  for (std::size_t i = 0; i < 8; ++i) {
    id.bytes[i] = mark[i];
    id.bytes[8 + i] = static_cast<std::uint8_t>(guid >> (56 - 8 * i));
  }
  return id;
}

const Snapshot* Dataset::find(const CheckpointId& id) const {
  for (const Snapshot& snapshot : snapshots)
    if (snapshot.id == id) return &snapshot;
  return nullptr;
}

const Snapshot* Dataset::find(std::string_view snapshot_name) const {
  if (snapshot_name.starts_with('@')) snapshot_name.remove_prefix(1);
  for (const Snapshot& snapshot : snapshots)
    if (snapshot.name == snapshot_name) return &snapshot;
  return nullptr;
}

const Bookmark* Dataset::find_bookmark(const CheckpointId& id) const {
  for (const Bookmark& bookmark : bookmarks)
    if (bookmark.id == id) return &bookmark;
  return nullptr;
}

const Snapshot* Dataset::newest_checkpoint() const {
  const Snapshot* newest = nullptr;
  for (const Snapshot& snapshot : snapshots)
    if (auto seq = snapshot.seq(); seq && (newest == nullptr || *seq > *newest->seq()))
      newest = &snapshot;
  return newest;
}

std::string Dataset::property(std::string_view wanted) const {
  const std::string* text = find_property(properties, wanted);
  return text != nullptr ? *text : std::string();
}

std::optional<Timeline> Dataset::timeline() const {
  return generation_property(properties, property::timeline);
}

std::optional<Generation> Dataset::generation() const {
  return generation_property(properties, property::generation);
}

}  // namespace zed
