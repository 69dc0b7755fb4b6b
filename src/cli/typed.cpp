#include "cli/typed.hpp"

#include <algorithm>
#include <array>

#include "base/enum.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace zed::cli {
namespace {

const std::vector<std::string> requirement_keys{"vram", "vram_total", "gpus",   "gpu",
                                                "arch", "driver",     "cuda",   "memory",
                                                "disk", "os",         "labels", "share"};

/// "key=value" or "key:value", whichever sign comes first.
struct Pair {
  std::string key;
  std::string value;
};
std::optional<Pair> pair_of(std::string_view text, std::string_view signs) {
  const std::size_t sign = text.find_first_of(signs);
  if (sign == std::string_view::npos) return std::nullopt;
  Pair pair{std::string(trim(text.substr(0, sign))), std::string(trim(text.substr(sign + 1)))};
  if (pair.key.empty() || pair.value.empty()) return std::nullopt;
  return pair;
}

tl::unexpected<Error> unknown_key(const std::string& key, const std::vector<std::string>& known,
                                  const std::string& what) {
  auto nearest = nearest_word(key, known);
  return fail(ErrorCode::invalid, "\"" + key + "\" is no " + what,
              nearest ? "did you mean \"" + *nearest + "\"?" : "it takes " + join(known, ", "));
}

/// One clause in the form of the com.zed:requires property, each alternative escaped.
Result<std::string> clause_of(const std::string& text) {
  auto pair = pair_of(text, "=:");
  if (!pair)
    return fail(ErrorCode::invalid, "\"" + text + "\" is no requirement",
                "write KEY=VALUE, like vram=48");
  if (std::find(requirement_keys.begin(), requirement_keys.end(), pair->key) ==
      requirement_keys.end())
    return unknown_key(pair->key, requirement_keys, "requirement");
  std::vector<std::string> alternatives;
  for (const std::string& word : split(pair->value, '|'))
    alternatives.push_back(percent_encode(trim(word)));
  std::string clause = pair->key + ":" + join(alternatives, "|");
  if (!Requirement::parse(clause))
    return fail(ErrorCode::invalid, "\"" + pair->value + "\" is no value of " + pair->key,
                "sizes: 48, 48GB, 24GiB; counts: 2; alternatives: A100|H100; share=true");
  return clause;
}

}  // namespace

Result<Requirement> parse_requirement(const std::vector<std::string>& clauses) {
  std::vector<std::string> read;
  std::vector<std::string> keys;
  for (const std::string& argument : clauses)
    for (const std::string& text : split(argument, ',')) {
      ZED_TRY(std::string clause, clause_of(text));
      const std::string key = clause.substr(0, clause.find(':'));
      if (std::find(keys.begin(), keys.end(), key) != keys.end())
        return fail(ErrorCode::invalid, key + " is required twice", "say it once");
      keys.push_back(key);
      read.push_back(std::move(clause));
    }
  return *Requirement::parse(join(read, ","));
}

Result<Preference> parse_preference(const std::vector<std::string>& wishes) {
  Preference preference;
  for (const std::string& text : wishes) {
    auto pair = pair_of(text, "=:");
    if (!pair)
      return fail(ErrorCode::invalid, "\"" + text + "\" is no preference",
                  "write gpu=A100, node=server or label=fast");
    auto kind = enum_of<Wish::Kind>(pair->key);
    if (!kind) return unknown_key(pair->key, {"gpu", "node", "label"}, "preference");
    preference.push_back({*kind, pair->value});
  }
  return preference;
}

Result<JobAt> parse_job_at(std::string_view text) {
  const std::size_t at = text.find('@');
  JobAt parsed{std::string(text.substr(0, at)),
               at == std::string_view::npos ? "" : std::string(text.substr(at))};
  if (!parsed.job.empty() && parsed.checkpoint != "@") return parsed;
  return fail(ErrorCode::invalid, "\"" + std::string(text) + "\" names no job and checkpoint",
              "write JOB@CHECKPOINT, like finetune@epoch-20");
}

Result<FilesAt> parse_files_at(std::string_view text) {
  // A dataset's name may have a ':' (models/llama:8b), a snapshot's name has none that matters
  // here: the path begins at the first ':' after '@', or without '@' at the first one.
  const std::size_t at = text.find('@');
  const std::size_t colon = text.find(':', at == std::string_view::npos ? 0 : at);
  FilesAt parsed;
  if (colon != std::string_view::npos) parsed.path = std::string(text.substr(colon + 1));
  ZED_TRY(JobAt job, parse_job_at(text.substr(0, colon)));
  parsed.of = std::move(job.job);
  parsed.checkpoint = std::move(job.checkpoint);
  return parsed;
}

Result<Retention> parse_retention(const std::vector<std::string>& clauses) {
  Retention keep;
  for (const std::string& argument : clauses)
    for (const std::string& text : split(argument, ',')) {
      auto pair = pair_of(text, "=:");
      if (!pair)
        return fail(ErrorCode::invalid, "\"" + text + "\" does not say what to keep",
                    "write last=5, best=3, metric=loss, mode=min or every=10");
      const std::int64_t count = parse_number<std::int64_t>(pair->value).value_or(0);
      const bool is_count = count >= 1;
      const bool wants_count = pair->key == "last" || pair->key == "best" || pair->key == "every";
      if (wants_count && !is_count)
        return fail(ErrorCode::invalid, "\"" + pair->value + "\" is no count of checkpoints",
                    "write " + pair->key + "=5");
      if (pair->key == "last") {
        keep.last = count;
      } else if (pair->key == "best") {
        keep.best = count;
      } else if (pair->key == "every") {
        keep.every = count;
      } else if (pair->key == "metric") {
        keep.metric = pair->value;
      } else if (auto mode = enum_of<Retention::Mode>(pair->value); pair->key == "mode" && mode) {
        keep.mode = *mode;
      } else {
        return pair->key == "mode"
                   ? fail(ErrorCode::invalid, "\"" + pair->value + "\" is no mode", "min or max")
                   : unknown_key(pair->key, {"last", "best", "every", "metric", "mode"},
                                 "clause of --keep");
      }
    }
  return keep;
}

Result<std::pair<std::string, std::string>> parse_property(std::string_view text) {
  const std::size_t sign = text.find('=');
  if (sign == 0 || sign == std::string_view::npos)
    return fail(ErrorCode::invalid, "\"" + std::string(text) + "\" is no property",
                "write NAME=VALUE, like quantized=q4_k_m");
  return std::pair<std::string, std::string>(text.substr(0, sign), text.substr(sign + 1));
}

std::string checkpoint_word(std::string_view text) {
  if (text.empty() || text == "start" || text.front() == '@') return std::string(text);
  return "@" + std::string(text);
}

}  // namespace zed::cli
