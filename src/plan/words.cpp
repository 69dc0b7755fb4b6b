#include "plan/words.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/describe.hpp"
#include "base/enum.hpp"
#include "base/text.hpp"

namespace zed::plan {
namespace {

constexpr std::array<std::string_view, 4> durations{"every", "timeout", "setup_timeout", "grace"};

struct Word {
  std::string_view field;
  std::string_view verb;
};
constexpr std::array<Word, 10> verbs{{{"argv", "run"},
                                      {"checkpoint_policy", "checkpoint_every"},
                                      {"dataset_roots", "dataset"},
                                      {"gpus", "gpu"},
                                      {"requirement", "requires"},
                                      {"retention", "keep"},
                                      {"selector", "of"},
                                      {"setup_timeout", "setup timeout"},
                                      {"source", "from"},
                                      {"targets", "to"}}};

std::string interval_of(const CheckpointPolicy& policy) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(0, policy.count));
  switch (policy.unit) {
  case CheckpointPolicy::Unit::explicit_only: return "only when it asks";
  case CheckpointPolicy::Unit::epochs: return plural(count, "epoch");
  case CheckpointPolicy::Unit::steps: return plural(count, "step");
  case CheckpointPolicy::Unit::time: return show(policy.every);
  }
  return "none";
}

std::string words_of_list(const Value::List& list) {
  std::vector<std::string> parts;
  for (const Value& item : list)
    parts.push_back(words_of("", item));
  return list.empty() ? "none" : "[" + join(parts, ", ") + "]";
}

/// "gpu A100" of a wish, else every member that says something: "model RTX 4090, vram 24".
std::string words_of_map(const Value::Map& map) {
  std::vector<std::string> parts;
  bool is_wish = map.size() == 2 && map[0].key == "kind" && map[1].key == "value";
  if (is_wish) return words_of("", map[0].value) + " " + words_of("", map[1].value);
  for (const Value::Member& member : map)
    if (!member.value.is_null())
      parts.push_back(member.key + " " + words_of(member.key, member.value));
  return map.empty() ? "none" : join(parts, ", ");
}

}  // namespace

std::string words_of(const Retention& r) {
  if (r.keeps_all()) return "all";
  std::vector<std::string> clauses;
  if (r.last) clauses.push_back("last " + std::to_string(*r.last));
  if (r.best)
    clauses.push_back("best " + std::to_string(*r.best) + " by " + std::string(to_string(r.mode)) +
                      " " + r.metric);
  if (r.every) clauses.push_back("every " + std::to_string(*r.every));
  return join(clauses, ", ");
}

std::string_view verb_of(std::string_view field) {
  for (const Word& word : verbs)
    if (word.field == field) return word.verb;
  return field;
}

std::string words_of(const DeclaredGpu& gpu) {
  std::string text = gpu.count == 1 ? "" : std::to_string(gpu.count) + "x ";
  text += gpu.model;
  if (gpu.vram) {
    const bool nominal = gpu.vram->kind == MemorySize::Kind::nominal_gb;
    text += " " + (nominal ? std::to_string(gpu.vram->amount) + " GB" : gpu.vram->str());
  }
  return gpu.unified ? text + " unified" : text;
}

std::string words_of(std::string_view field, const Value& value) {
  if (field == "retention")
    if (auto retention = from_value<Retention>(value)) return words_of(*retention);
  if (field == "checkpoint_policy")
    if (auto policy = from_value<CheckpointPolicy>(value)) return interval_of(*policy);
  if (field == "gpus")
    if (auto gpus = from_value<std::vector<DeclaredGpu>>(value); gpus && !gpus->empty()) {
      std::vector<std::string> parts;
      for (const DeclaredGpu& gpu : *gpus)
        parts.push_back(words_of(gpu));
      return join(parts, ", ");
    }
  if (const std::int64_t* number = value.as_int()) {
    if (field == "max_rate") return show(Bytes{*number}) + "/s";
    if (std::find(durations.begin(), durations.end(), field) != durations.end())
      return show(Millis{*number});
    return std::to_string(*number);
  }
  if (value.is_null()) return "none";
  if (const bool* flag = value.as_bool()) return *flag ? "true" : "false";
  if (const double* number = value.as_double()) return fmt::format("{}", *number);
  if (const std::string* text = value.as_text()) return text->empty() ? "none" : *text;
  if (const Value::List* list = value.as_list()) return words_of_list(*list);
  return words_of_map(*value.as_map());
}

}  // namespace zed::plan
