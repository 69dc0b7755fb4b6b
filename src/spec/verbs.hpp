#pragma once
// The one table of verbs: where each may stand, what it opens, how it is written. The readers of
// validate_*.cpp are found by these names; docs/cluster-file.md says how to add one.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zed::spec {

/// What a block is the block of.
enum class Place : std::uint8_t { file, module, deploy, node, model, job, replicate, data };

/// "a `job` block", "the file": for messages.
std::string describe(Place place);

enum class BlockRule : std::uint8_t { none, optional, required };

struct Verb {
  std::string_view name;
  Place place;
  std::string_view example;  ///< shown when the arguments are wrong
  BlockRule block = BlockRule::none;
  Place opens = Place::file;  ///< what its block is
  bool repeatable = false;
};

struct VerbTable {
  const Verb* first;
  const Verb* last;
  const Verb* begin() const { return first; }
  const Verb* end() const { return last; }
};
VerbTable all_verbs();

/// Verbs that the language has and Zed does not do yet: refused, never accepted in silence. Take a
/// line away when the behaviour exists.
struct NotBuilt {
  std::string_view name;
  Place place;
};
inline constexpr std::array<NotBuilt, 1> verbs_not_built{{
    {"rollback_when", Place::job},
}};
bool is_not_built(std::string_view name, Place place);

/// Elixir's own forms that people try in a cluster file: def, if, import and the like.
bool is_code_form(std::string_view name);

const Verb* find_verb(std::string_view name, Place place);
std::vector<std::string> verb_names(Place place);
std::vector<Place> places_of(std::string_view name);

}  // namespace zed::spec
