// `requires` and `keep`: the two verbs that are all keywords, on models, jobs and policies alike.

#include <algorithm>
#include <array>

#include "spec/read.hpp"

namespace zed::spec {
namespace {

constexpr std::int64_t most_gpus = 64;
constexpr std::int64_t most_kept = 1'000'000;

/// Reads one clause of `requires`.
class ClauseReader {
public:
  ClauseReader(Reader& reader, Requirement& requirement)
      : reader_(reader), requirement_(requirement) {}

  void read(const Argument& argument) {
    const std::string& key = *argument.key;
    const Expression& value = argument.value;
    subject_ = keyed(argument);
    if (key == "vram") requirement_.vram = reader_.size(value, subject_);
    if (key == "vram_total") requirement_.vram_total = reader_.size(value, subject_);
    if (key == "memory") requirement_.memory = reader_.size(value, subject_);
    if (key == "disk") requirement_.disk = reader_.size(value, subject_);
    if (key == "gpus") requirement_.gpus = reader_.integer(value, subject_, 0, most_gpus);
    if (key == "driver") requirement_.driver = reader_.version(value, subject_);
    if (key == "cuda") requirement_.cuda = reader_.version(value, subject_);
    if (key == "gpu") words(value, requirement_.gpu);
    if (key == "labels") words(value, requirement_.labels);
    if (key == "arch") architectures(value);
    if (key == "os") systems(value);
    if (key == "share") share(value);
  }

private:
  void words(const Expression& value, std::vector<std::string>& target) {
    for (const Expression* item : reader_.one_or_list(value, subject_))
      if (auto word = reader_.word(*item, subject_)) add(*item, target, *word);
  }

  void add(const Expression& item, std::vector<std::string>& target, std::string word) {
    if (std::find(target.begin(), target.end(), word) != target.end())
      reader_.error(item.offset, quote(word) + " is given twice", "keep one of them");
    else
      target.push_back(std::move(word));
  }

  /// "8.0" and 8.0 are compute capabilities, "gfx1100" an AMD architecture.
  void architectures(const Expression& value) {
    for (const Expression* item : reader_.one_or_list(value, subject_)) {
      bool legal = (item->is_number() || item->is_string()) && !item->text.empty() &&
                   item->text.size() <= 32 && is_word_character(item->text.front()) &&
                   std::all_of(item->text.begin(), item->text.end(),
                               [](char c) { return is_word_character(c) || c == '.' || c == '-'; });
      if (legal)
        add(*item, requirement_.arch, item->text);
      else
        reader_.wrong(*item, subject_, "an architecture",
                      "write for example \"8.0\" or \"gfx1100\"");
    }
  }

  void systems(const Expression& value) {
    static constexpr std::array<std::string_view, 3> known{"linux", "macos", "freebsd"};
    for (const Expression* item : reader_.one_or_list(value, subject_)) {
      bool text = item->is_string() || item->kind == Expression::Kind::atom;
      if (text && std::find(known.begin(), known.end(), item->text) != known.end())
        add(*item, requirement_.os, item->text);
      else
        reader_.wrong(*item, subject_, "\"linux\", \"macos\" or \"freebsd\"");
    }
  }

  void share(const Expression& value) {
    requirement_.share = value.kind == Expression::Kind::boolean && value.boolean;
    if (!requirement_.share) reader_.wrong(value, subject_, "`true` (leave it out otherwise)");
  }

  Reader& reader_;
  Requirement& requirement_;
  std::string subject_;
};

}  // namespace

Requirement Reader::requirement(const Met& met) {
  Requirement requirement;
  if (!only_keywords(met)) return requirement;
  ClauseReader clauses(*this, requirement);
  std::vector<std::string> known{"vram", "vram_total", "gpus", "gpu", "arch",   "driver",
                                 "cuda", "memory",     "disk", "os",  "labels", "share"};
  for (const Argument& argument : met.call.arguments) {
    if (argument.key != "nodes") continue;
    error(argument.offset(), "one job on several nodes (a gang) is not supported yet",
          "a job runs on one node, and `gpus:` counts its GPUs there; `zedctl dispatch --array` "
          "makes many jobs of one");
    known.emplace_back("nodes");
    break;
  }
  keywords(met, known, false, [&](const Argument& argument) { clauses.read(argument); });
  return requirement;
}

Retention Reader::retention(const Met& met) {
  Retention retention;
  if (!only_keywords(met)) return retention;
  const Argument* ranking = nullptr;  // a key that only means something beside `best:`
  keywords(met, {"last", "best", "metric", "mode", "every"}, false, [&](const Argument& argument) {
    const std::string& key = *argument.key;
    if (key == "last") retention.last = integer(argument.value, "`last:`", 1, most_kept);
    if (key == "best") retention.best = integer(argument.value, "`best:`", 1, most_kept);
    if (key == "every") retention.every = integer(argument.value, "`every:`", 1, most_kept);
    if (key == "metric") retention.metric = word(argument.value, "`metric:`").value_or("loss");
    if (key == "mode") {
      auto mode = atom(argument.value, "`mode:`");
      auto known = mode ? enum_of<Retention::Mode>(*mode) : std::nullopt;
      if (mode && !known) wrong(argument.value, "`mode:`", "`:min` or `:max`");
      retention.mode = known.value_or(Retention::Mode::min);
    }
    if (key == "metric" || key == "mode") ranking = &argument;
  });
  bool has_best = std::any_of(met.call.arguments.begin(), met.call.arguments.end(),
                              [](const Argument& argument) { return argument.key == "best"; });
  if (ranking != nullptr && !has_best)
    error(ranking->offset(), keyed(*ranking) + " says which checkpoints are best, but not how many",
          "add `best:`, as in `keep best: 3, metric: \"loss\", mode: :min`");
  return retention;
}

}  // namespace zed::spec
