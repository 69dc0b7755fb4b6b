#pragma once
// Reading the arguments of verbs: each function gives the value, or reports what is wrong with it
// and gives nothing.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cluster.hpp"
#include "spec/source.hpp"
#include "spec/syntax.hpp"
#include "spec/verbs.hpp"

namespace zed::spec {

/// A verb met in the file.
struct Met {
  const Verb& verb;
  const Call& call;
};

class Reader {
public:
  Reader(const Source& source, Report& report) : source_(source), report_(report) {}

  void error(std::size_t offset, std::string message, std::string hint = {}) {
    report_.error(offset, std::move(message), std::move(hint));
  }
  void warning(std::size_t offset, std::string message, std::string hint = {}) {
    report_.warning(offset, std::move(message), std::move(hint));
  }
  int line(std::size_t offset) const { return source_.line(offset); }

  /// Calls `handle` for each verb of the block that may stand there; reports unknown and misplaced
  /// verbs, repetitions, blocks where none may be and none where one must be.
  void each(const Block& block, Place place, const std::function<void(const Met&)>& handle);

  /// "did you mean `word`?" or the fallback. Bounded: after many wrong words it no longer searches.
  std::string nearest(std::string_view wrong, const std::vector<std::string>& known,
                      std::string fallback = {});

  // --- shape of the arguments
  /// The one argument of a verb that takes one.
  const Expression* only(const Met& met);
  /// The first argument of a verb that takes one and then perhaps keywords.
  const Expression* first(const Met& met);
  /// At least one argument, no keyword.
  bool positional(const Met& met);
  /// Each keyword once. `known` in the order of the documentation.
  void keywords(const Met& met, const std::vector<std::string>& known, bool repeatable,
                const std::function<void(const Argument&)>& handle);
  /// At least one keyword and nothing else.
  bool only_keywords(const Met& met);

  // --- values; `subject` is how the message names them: "`priority`", "`vram:`"
  std::optional<std::string> text(const Expression& value, std::string_view subject);
  /// Text that is not empty, on one line.
  std::optional<std::string> word(const Expression& value, std::string_view subject);
  std::optional<std::string> atom(const Expression& value, std::string_view subject);
  std::optional<std::int64_t> integer(const Expression& value, std::string_view subject,
                                      std::int64_t least, std::int64_t most);
  std::optional<bool> boolean(const Expression& value, std::string_view subject);
  std::optional<MemorySize> size(const Expression& value, std::string_view subject);
  std::optional<std::string> version(const Expression& value, std::string_view subject);
  std::optional<NodeName> node(const Expression& value, std::string_view subject);
  std::optional<DatasetName> dataset(const Expression& value, std::string_view subject);
  std::optional<std::string> pool(const Expression& value, std::string_view subject);
  std::optional<Millis> duration(const Expression& value, std::string_view subject);
  /// The name of a job or model: one legal component of a dataset's name.
  std::optional<std::string> component(const Expression& value, std::string_view subject);
  /// The name of a model that a job needs, perhaps of a version or alias: :llama, :"llama@2.1".
  std::optional<std::string> versioned_model(const Expression& value, std::string_view subject);
  /// The value itself, or each item of a list (not empty, no keywords).
  std::vector<const Expression*> one_or_list(const Expression& value, std::string_view subject);

  /// Whether a list of that many may grow; reports the item that is too many.
  bool has_room(std::size_t size, std::size_t offset, std::string_view subject);

  std::nullopt_t wrong(const Expression& value, std::string_view subject, std::string_view wanted,
                       std::string hint = {});

  Requirement requirement(const Met& met);
  Retention retention(const Met& met);

private:
  void unknown_verb(const Call& call, Place place);
  bool block_is_legal(const Met& met);
  std::string example(const Met& met) const;

  const Source& source_;
  Report& report_;
  std::size_t comparisons_left_ = 10'000;
};

/// "a string", "the name :x", "a list": what a person would call it.
std::string describe(const Expression& value);

/// "`name`"
std::string ticked(std::string_view name);
/// "`key:`"
std::string keyed(const Argument& argument);

}  // namespace zed::spec
