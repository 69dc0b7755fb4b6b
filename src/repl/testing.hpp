#pragma once
// Histories in one line, for tests: "a b c" are three snapshots, oldest first, of which the letter
// gives the identity; "b!7" has the guid 7, "c=3" the sequence number 3, "x^" is a closing
// snapshot.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/id.hpp"
#include "base/text.hpp"
#include "core/dataset.hpp"
#include "core/fleet.hpp"

namespace zed::repl::testing {

inline CheckpointId id(std::string_view letter) {
  CheckpointId identity;
  for (std::size_t i = 0; i < letter.size() && i < 16; ++i)
    identity.bytes[i] = static_cast<std::uint8_t>(letter[i]);
  return identity;
}

inline DatasetId uuid(std::uint8_t number) {
  DatasetId identity;
  identity.bytes[15] = number;
  return identity;
}

inline Snapshot snapshot(const std::string& word, std::uint64_t position) {
  Snapshot made;
  std::size_t end = word.find_first_of("!=^");
  made.name = word.substr(0, end);
  made.id = id(made.name);
  made.createtxg = position;
  made.guid = made.id.bytes[0] + 256u * made.id.bytes[1];
  made.used = mebibytes(1);
  auto number = [&](char mark) {
    std::size_t at = word.find(mark);
    return at == std::string::npos ? std::string() : word.substr(at + 1);
  };
  if (word.find('!') != std::string::npos)
    made.guid = static_cast<std::uint64_t>(std::atoll(number('!').c_str()));
  if (word.find('=') != std::string::npos) made.properties[property::seq] = number('=');
  if (word.find('^') != std::string::npos) made.properties[property::closing] = "success";
  return made;
}

inline Dataset history(std::string_view text, std::string_view name = "jobs/train") {
  Dataset dataset;
  dataset.name = DatasetName::parse(name).value();
  dataset.uuid = uuid(1);
  std::uint64_t position = 1;
  for (const std::string& word : split(text, ' '))
    if (!word.empty()) dataset.snapshots.push_back(snapshot(word, position++));
  return dataset;
}

inline NodeName node(std::string_view name) {
  return NodeName::parse(name).value();
}

inline Node& add_node(FleetView& view, std::string_view name, StoreKind store = StoreKind::zfs) {
  Node made;
  made.name = node(name);
  made.facts.store = store;
  made.facts.data_address = std::string(name) + ":4373";
  made.pool_free = gibibytes(100);
  return view.nodes.emplace(made.name, made).first->second;
}

class CountingIds : public IdSource {
public:
  std::array<std::uint8_t, 16> next() override {
    std::array<std::uint8_t, 16> bytes{};
    bytes[15] = ++count_;
    return bytes;
  }

private:
  std::uint8_t count_ = 0;
};

}  // namespace zed::repl::testing
