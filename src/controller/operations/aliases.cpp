#include "controller/operations/aliases.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/number.hpp"
#include "base/text.hpp"

namespace zed::controller {
namespace {

using Changes = std::map<std::string, AliasChange>;

/// Words that a copy remembers; of more, those that went longest ago are forgotten first.
constexpr std::size_t most_words = 64;

std::vector<std::string> words_of(const Properties& copy, const char* property) {
  const auto found = copy.find(property);
  return found == copy.end() || found->second.empty() ? std::vector<std::string>()
                                                      : split(found->second, ',');
}

/// "production=1796107523330": it came then; a negative number: it went then.
Changes recorded(const Properties& copy) {
  Changes changes;
  for (const std::string& entry : words_of(copy, "alias_times")) {
    const std::size_t sign = entry.find('=');
    if (sign == std::string::npos) continue;
    const auto time = parse_number<std::int64_t>(std::string_view(entry).substr(sign + 1));
    if (time && *time > -INT64_MAX)
      changes[entry.substr(0, sign)] = {WallTime{*time < 0 ? -*time : *time}, *time > 0};
  }
  return changes;
}

void forget_oldest(Changes& changes) {
  while (changes.size() > most_words) {
    const auto oldest =
        std::min_element(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
          return std::pair(a.second.stands, a.second.at) < std::pair(b.second.stands, b.second.at);
        });
    changes.erase(oldest);
  }
}

std::optional<std::string> or_none(const std::vector<std::string>& words) {
  return words.empty() ? std::optional<std::string>() : join(words, ",");
}

}  // namespace

Changes alias_changes(const Properties& copy) {
  Changes changes = recorded(copy);
  std::set<std::string> listed;
  for (std::string& word : words_of(copy, "aliases"))
    listed.insert(std::move(word));
  for (const std::string& word : listed)
    changes.try_emplace(word, AliasChange{WallTime{-1}, false});
  for (auto& [word, change] : changes)
    if (change.stands != listed.contains(word))
      change = {WallTime{change.at.ms + 1}, !change.stands};
  return changes;
}

PropertyChanges with_alias(const Properties& copy, const std::string& word,
                           const AliasChange& change) {
  Changes changes = alias_changes(copy);
  changes[word] = change;
  forget_oldest(changes);
  std::vector<std::string> listed;
  std::vector<std::string> times;
  for (const auto& [name, last] : changes) {
    if (last.stands) listed.push_back(name);
    times.push_back(name + "=" + std::to_string(last.stands ? last.at.ms : -last.at.ms));
  }
  return {{"aliases", or_none(listed)}, {"alias_times", or_none(times)}};
}

}  // namespace zed::controller
