#pragma once
// Words that stand for versions of a model, as the copies of its versions tell: a copy keeps,
// beside its list `aliases`, when each word came or went (`alias_times`). Of all copies of all
// versions the newest change of a word counts, so that no word stands for two versions, whichever
// machine was away when it moved on. Pure.

#include <map>
#include <string>

#include "base/units.hpp"
#include "core/dataset.hpp"

namespace zed::controller {

/// The last change of a word. Ordered by time; of two at once the one that lets it stand is later.
struct AliasChange {
  WallTime at;
  bool stands = false;
  friend auto operator<=>(const AliasChange&, const AliasChange&) = default;
};

/// By word, as one copy's properties tell. What a person listed, or took off the list, by hand
/// counts from just after the copy's own last change of that word.
std::map<std::string, AliasChange> alias_changes(const Properties& copy);

/// What to set on a copy with these properties when a word comes or goes.
PropertyChanges with_alias(const Properties& copy, const std::string& word,
                           const AliasChange& change);

}  // namespace zed::controller
