#include "store/zfs/marker.hpp"

#include "base/enum.hpp"
#include "base/text.hpp"

namespace zed::store::zfs {
namespace {

constexpr std::string_view snapshot_gets = "rx.s.";
constexpr std::string_view dataset_gets = "rx.d.";
constexpr std::string_view dataset_loses = "rx.x.";

std::optional<CheckpointId> id_of(const env::ReceiveRequest& request) {
  auto found = request.snapshot_properties.find(property::id);
  return found == request.snapshot_properties.end() ? std::nullopt
                                                    : CheckpointId::parse(found->second);
}

}  // namespace

std::string Marker::str() const {
  return std::string(to_string(kind)) + " " + snapshot.str() + " " + (base ? base->str() : "-") +
         " " + (made_dataset ? "1" : "0") + " " + std::string(to_string(phase)) + " " + word;
}

std::optional<Marker> Marker::parse(std::string_view text) {
  auto parts = split(text, ' ');
  if (parts.size() != 6 || !is_snapshot_word(parts[5])) return std::nullopt;
  Marker marker;
  auto kind = enum_of<StreamKind>(parts[0]);
  auto id = CheckpointId::parse(parts[1]);
  if (!kind || !id) return std::nullopt;
  marker.kind = *kind;
  marker.snapshot = *id;
  if (parts[2] != "-") {
    marker.base = CheckpointId::parse(parts[2]);
    if (!marker.base) return std::nullopt;
  }
  marker.made_dataset = parts[3] == "1";
  auto phase = enum_of<Phase>(parts[4]);
  if (!phase) return std::nullopt;
  marker.phase = *phase;
  marker.word = parts[5];
  return marker;
}

bool Marker::continues(const env::ReceiveRequest& request) const {
  return kind == request.kind && id_of(request) == snapshot && base == request.base &&
         word == request.snapshot;
}

Marker Marker::of(const env::ReceiveRequest& request, bool made_dataset) {
  Marker marker;
  marker.kind = request.kind;
  marker.snapshot = id_of(request).value_or(CheckpointId{});
  marker.base = request.base;
  marker.made_dataset = made_dataset;
  marker.word = request.snapshot;
  return marker;
}

Properties marker_properties(const Marker& marker, const env::ReceiveRequest& request) {
  Properties kept{{std::string(marker_name), marker.str()}};
  if (marker.kind != StreamKind::zfs) return kept;
  for (const auto& [name, value] : request.snapshot_properties)
    kept[std::string(snapshot_gets) + name] = value;
  for (const auto& [name, value] : request.dataset_changes) {
    if (value)
      kept[std::string(dataset_gets) + name] = *value;
    else
      kept[std::string(dataset_loses) + name] = "1";
  }
  return kept;
}

MarkedProperties take_apart(const Properties& own) {
  MarkedProperties parts;
  for (const auto& [name, value] : own) {
    std::string_view rest = name;
    bool is_kept = true;
    if (rest == marker_name)
      parts.marker = Marker::parse(value);
    else if (rest.starts_with(snapshot_gets))
      parts.for_snapshot[std::string(rest.substr(snapshot_gets.size()))] = value;
    else if (rest.starts_with(dataset_gets))
      parts.for_dataset[std::string(rest.substr(dataset_gets.size()))] = value;
    else if (rest.starts_with(dataset_loses))
      parts.for_dataset[std::string(rest.substr(dataset_loses.size()))] = std::nullopt;
    else
      is_kept = false;
    if (is_kept)
      parts.kept.push_back(name);
    else
      parts.plain[name] = value;
  }
  return parts;
}

}  // namespace zed::store::zfs
