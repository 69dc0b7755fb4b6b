// What `job` declares.

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "core/environment.hpp"
#include "spec/quantity.hpp"
#include "spec/validate.hpp"
#include "spec/words.hpp"

namespace zed::spec {
namespace {

constexpr std::int64_t lowest_priority = -100;
constexpr std::int64_t highest_priority = 100;
constexpr std::int64_t most_retries = 1000;
constexpr std::int64_t most_copies = 8;

/// Reads the verbs of one `job` block into a draft.
class JobReader {
public:
  JobReader(Reader& reader, JobDraft& draft) : reader_(reader), draft_(draft), job_(draft.job) {}

  void read(const Met& met) {
    struct Entry {
      std::string_view verb;
      void (JobReader::*read)(const Met&);
    };
    static constexpr std::array<Entry, 19> entries{{
        {"model", &JobReader::model},
        {"dataset", &JobReader::dataset},
        {"run", &JobReader::run},
        {"shell", &JobReader::shell},
        {"env", &JobReader::env},
        {"code", &JobReader::code},
        {"setup", &JobReader::setup},
        {"data", &JobReader::data},
        {"requires", &JobReader::requirement},
        {"prefer", &JobReader::prefer},
        {"fallback", &JobReader::fallback},
        {"checkpoint_every", &JobReader::checkpoint_every},
        {"after", &JobReader::after},
        {"priority", &JobReader::priority},
        {"retries", &JobReader::retries},
        {"timeout", &JobReader::timeout},
        {"keep", &JobReader::keep},
        {"copies", &JobReader::copies},
        {"exclusive", &JobReader::exclusive},
    }};
    for (const Entry& entry : entries)
      if (entry.verb == met.verb.name) return (this->*entry.read)(met);
  }

  void finish() {
    if (run_ == nullptr || shell_ == nullptr) return;
    const Call& second = run_->offset > shell_->offset ? *run_ : *shell_;
    reader_.error(second.offset, "`run` and `shell` in one job", "keep one of them");
  }

private:
  void model(const Met& met) {
    const Expression* value = reader_.only(met);
    auto name = value != nullptr ? reader_.versioned_model(*value, "`model`") : std::nullopt;
    if (!name) return;
    job_.model = ModelName(*name);
    draft_.model = Reference<ModelName>{*job_.model, value->offset};
  }

  void dataset(const Met& met) {
    const Expression* value = reader_.only(met);
    if (value == nullptr) return;
    draft_.dataset_offset = value->offset;
    job_.dataset = reader_.dataset(*value, "`dataset`").value_or(DatasetName());
  }

  void run(const Met& met) {
    run_ = &met.call;
    const Expression* value = reader_.only(met);
    if (value == nullptr) return;
    if (value->kind == Expression::Kind::list) return run_list(*value);
    auto line = reader_.text(*value, "`run`");
    if (line) run_line(*value, *line);
  }

  void run_list(const Expression& list) {
    for (const Expression* item : reader_.one_or_list(list, "`run`")) {
      // An empty argument is a legal one; only the program itself must have a name.
      if (item->is_string() && item->text.empty() && item != &list.items.front().value)
        job_.argv.emplace_back();
      else if (item->is_string() && !item->text.empty())
        job_.argv.push_back(item->text);
      else
        reader_.text(*item, "`run`");
    }
  }

  void run_line(const Expression& value, const std::string& line) {
    auto split = split_words(line);
    if (auto* fault = std::get_if<WordsFault>(&split)) {
      reader_.error(value.offset, "`run` has " + fault->message + ": " + quote(line),
                    "close it, or give the words as a list: run [\"python3\", \"train.py\"]");
      return;
    }
    Words& words = std::get<Words>(split);
    if (words.words.empty() || words.words.front().empty()) {
      reader_.error(value.offset, "`run` names no program");
      return;
    }
    job_.argv = std::move(words.words);
    if (words.shell_character != '\0')
      reader_.warning(value.offset,
                      "`run` starts no shell: `" + std::string(1, words.shell_character) +
                          "` is passed to the program as it stands",
                      "use `shell` for pipes, redirections, variables and wildcards, or quote it");
  }

  void shell(const Met& met) {
    shell_ = &met.call;
    const Expression* value = reader_.only(met);
    auto command = value != nullptr ? reader_.text(*value, "`shell`") : std::nullopt;
    if (command) job_.argv = {"/bin/sh", "-c", *command};
  }

  void env(const Met& met) {
    if (!reader_.only_keywords(met)) return;
    for (const Argument& argument : met.call.arguments) {
      const std::string& key = *argument.key;
      if (!is_variable(key))
        reader_.error(argument.offset(), quote(key) + " is no name of an environment variable",
                      "letters, digits and '_', not starting with a digit");
      else if (is_set_by_zed(key))
        reader_.error(argument.offset(), "Zed itself sets " + quote(key) + " for each attempt",
                      "choose another name");
      else if (job_.env.count(key) > 0)
        reader_.error(argument.offset(), "a second " + quote(key), "keep one of them");
      else
        env_value(argument);
    }
  }

  void env_value(const Argument& argument) {
    if (argument.value.is_string() && trim(argument.value.text).empty())
      job_.env[*argument.key] = argument.value.text;
    else if (auto text = reader_.text(argument.value, keyed(argument)))
      job_.env[*argument.key] = *text;
  }

  static bool is_variable(std::string_view key) {
    return !key.empty() && key.size() <= 255 && is_word_start(key.front()) &&
           std::all_of(key.begin(), key.end(), is_word_character);
  }

  void code(const Met& met) {
    if (const Expression* value = reader_.only(met)) job_.code = reader_.word(*value, "`code`");
  }

  void setup(const Met& met) {
    if (!met.call.broken && met.call.arguments.empty())
      return reader_.error(met.call.offset, "`setup` needs a command",
                           "write for example `" + std::string(met.verb.example) + "`");
    const Expression* value = reader_.first(met);
    if (value == nullptr) return;
    job_.setup = reader_.text(*value, "`setup`");
    reader_.keywords(met, {"timeout"}, false, [&](const Argument& argument) {
      job_.setup_timeout = reader_.duration(argument.value, keyed(argument));
    });
  }

  void data(const Met& met) {
    if (!reader_.positional(met)) return;
    for (const Argument& argument : met.call.arguments)
      for (const Expression* item : reader_.one_or_list(argument.value, "`data`"))
        if (auto name = reader_.dataset(*item, "`data`")) add_data(*name, item->offset);
  }

  void add_data(const DatasetName& name, std::size_t offset) {
    if (!reader_.has_room(job_.data.size(), offset, "`data`")) return;
    if (std::find(job_.data.begin(), job_.data.end(), name) != job_.data.end())
      return reader_.error(offset, "data set \"" + name.str() + "\" is given twice",
                           "keep one of them");
    job_.data.push_back(name);
    draft_.data.push_back({name, offset});
  }

  void requirement(const Met& met) { job_.requirement = reader_.requirement(met); }
  void prefer(const Met& met) { job_.prefer = wishes(met); }
  void fallback(const Met& met) { job_.fallback = wishes(met); }

  /// Keywords may repeat, and each may have a list: together a ranking, best first.
  Preference wishes(const Met& met) {
    Preference ranking;
    if (!reader_.only_keywords(met)) return ranking;
    reader_.keywords(met, {"gpu", "node", "label"}, true, [&](const Argument& argument) {
      for (const Expression* item : reader_.one_or_list(argument.value, keyed(argument)))
        if (auto wish = this->wish(argument, *item)) add_wish(ranking, *wish, item->offset);
    });
    return ranking;
  }

  std::optional<Wish> wish(const Argument& argument, const Expression& item) {
    if (*argument.key != "node") {
      auto word = reader_.word(item, keyed(argument));
      if (!word) return std::nullopt;
      return Wish{*argument.key == "gpu" ? Wish::Kind::gpu : Wish::Kind::label, *word};
    }
    auto node = reader_.node(item, keyed(argument));
    if (!node) return std::nullopt;
    draft_.wished_nodes.push_back({*node, item.offset});
    return Wish{Wish::Kind::node, node->str()};
  }

  void add_wish(Preference& ranking, const Wish& wish, std::size_t offset) {
    if (!reader_.has_room(ranking.size(), offset, "a ranking")) return;
    if (std::find(ranking.begin(), ranking.end(), wish) != ranking.end())
      reader_.error(offset, quote(wish.value) + " is ranked twice", "keep the first");
    else
      ranking.push_back(wish);
  }

  void checkpoint_every(const Met& met) {
    const Expression* value = reader_.only(met);
    if (value == nullptr) return;
    if (!value->is_string()) {
      std::string hint = "write for example \"1 epoch\", \"500 steps\" or \"10 minutes\"";
      if (value->is_number()) hint = "write it with a unit: \"" + value->text + " epochs\"";
      reader_.wrong(*value, "`checkpoint_every`", "a string", hint);
      return;
    }
    auto policy = parse_checkpoint_policy(value->text);
    if (policy)
      job_.checkpoint_policy = *policy;
    else
      reader_.error(value->offset, policy.error().message, policy.error().hint);
  }

  void after(const Met& met) {
    const Expression* value = reader_.only(met);
    if (value == nullptr) return;
    for (const Expression* item : reader_.one_or_list(*value, "`after`")) {
      auto name = reader_.component(*item, "`after`");
      if (!name) continue;
      JobName job(*name);
      if (std::find(job_.after.begin(), job_.after.end(), job) != job_.after.end())
        reader_.error(item->offset, "job " + quote(":" + *name) + " is named twice",
                      "keep one of them");
      else
        job_.after.push_back(job);
      draft_.after.push_back({job, item->offset});
    }
  }

  void number(const Met& met, std::int64_t& target, std::int64_t least, std::int64_t most) {
    if (const Expression* value = reader_.only(met))
      target = reader_.integer(*value, ticked(met.verb.name), least, most).value_or(target);
  }
  void priority(const Met& met) { number(met, job_.priority, lowest_priority, highest_priority); }
  void retries(const Met& met) { number(met, job_.retries, 0, most_retries); }
  void copies(const Met& met) { number(met, job_.copies, 0, most_copies); }

  void timeout(const Met& met) {
    if (const Expression* value = reader_.only(met))
      job_.timeout = reader_.duration(*value, "`timeout`");
  }
  void keep(const Met& met) { job_.retention = reader_.retention(met); }
  void exclusive(const Met& met) {
    if (const Expression* value = reader_.only(met))
      job_.exclusive = reader_.boolean(*value, "`exclusive`").value_or(false);
  }

  Reader& reader_;
  JobDraft& draft_;
  Job& job_;
  const Call* run_ = nullptr;
  const Call* shell_ = nullptr;
};

}  // namespace

std::optional<JobDraft> read_job(Reader& reader, const Met& met) {
  JobDraft draft;
  const Expression* value = reader.first(met);
  auto name = value != nullptr ? reader.component(*value, "`job`") : std::nullopt;
  draft.offset = draft.dataset_offset = value != nullptr ? value->offset : met.call.offset;
  reader.keywords(met, {}, false, [](const Argument&) {});
  JobReader job_reader(reader, draft);
  if (met.call.block)
    reader.each(*met.call.block, Place::job, [&](const Met& inner) { job_reader.read(inner); });
  job_reader.finish();
  if (!name) return std::nullopt;
  draft.job.name = JobName(*name);
  if (draft.job.dataset.empty()) {
    auto dataset = DatasetName::parse("jobs/" + *name);
    draft.job.dataset = *dataset;  // a component is at most 80 bytes and legal
  }
  return draft;
}

}  // namespace zed::spec
