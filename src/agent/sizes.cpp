#include "agent/sizes.hpp"

#include <algorithm>
#include <array>

namespace zed::agent {
namespace {

constexpr std::size_t fixed_part = 320;  // names of members, numbers, ids
constexpr std::size_t per_property = 12;
constexpr std::size_t encoded_bookmark = 200;  // a node's name, an id and two numbers, with names
constexpr std::size_t largest_properties = page_budget / 4;

constexpr std::array<const char*, 18> essential{
    property::type,       property::uuid,       property::name,     property::home,
    property::status,     property::generation, property::timeline, property::lineage,
    property::checkpoint, property::branch_of,  property::id,       property::job,
    property::seq,        property::parent,     property::epoch,    property::step,
    property::metrics,    property::closing};

void cut_down(Properties& properties) {
  if (encoded_size(properties) <= largest_properties) return;
  for (auto it = properties.begin(); it != properties.end();) {
    bool keep = it->second.size() <= 2048 &&
                std::any_of(essential.begin(), essential.end(),
                            [&](const char* name) { return it->first == name; });
    it = keep ? std::next(it) : properties.erase(it);
  }
}

struct Pager {
  std::size_t budget;
  std::vector<std::vector<Dataset>> pages{1};
  std::size_t used = 0;

  void turn_page_for(std::size_t size) {
    if (pages.back().empty() || used + size <= budget) return;
    pages.emplace_back();
    used = 0;
  }
  void begin(const Dataset& head, std::size_t size) {
    turn_page_for(size);
    pages.back().push_back(head);
    used += size;
  }
  void add(const Dataset& dataset) {
    Dataset head = dataset;
    head.snapshots.clear();
    cut_down(head.properties);
    std::size_t head_size =
        fixed_part + encoded_size(head.properties) + head.bookmarks.size() * encoded_bookmark;
    begin(head, head_size);
    for (Snapshot snapshot : dataset.snapshots) {
      cut_down(snapshot.properties);
      std::size_t size = encoded_size(snapshot);
      if (used + size > budget && used > head_size) {
        used = budget + 1;
        begin(head, head_size);
      }
      pages.back().back().snapshots.push_back(std::move(snapshot));
      used += size;
    }
  }
};

}  // namespace

std::size_t encoded_size(const Properties& properties) {
  std::size_t size = 0;
  for (const auto& [key, value] : properties)
    size += key.size() + value.size() + per_property;
  return size;
}

std::size_t encoded_size(const Snapshot& snapshot) {
  return fixed_part + snapshot.name.size() + encoded_size(snapshot.properties);
}

std::vector<std::vector<Dataset>> pages_of(const std::vector<const Dataset*>& datasets,
                                           std::size_t budget) {
  Pager pager{budget};
  for (const Dataset* dataset : datasets)
    pager.add(*dataset);
  return std::move(pager.pages);
}

}  // namespace zed::agent
