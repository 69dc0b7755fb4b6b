#include "spec/read.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "base/text.hpp"
#include "spec/quantity.hpp"

namespace zed::spec {
namespace {

constexpr std::size_t longest_text = 4096;
constexpr std::size_t longest_word = 255;
constexpr std::size_t longest_list = 4096;

std::string list_of(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (const std::string& name : names)
    shown.push_back(ticked(name));
  return join(shown, ", ");
}

}  // namespace

std::string ticked(std::string_view name) {
  return "`" + std::string(name) + "`";
}
std::string keyed(const Argument& argument) {
  return "`" + *argument.key + ":`";
}

std::string describe(const Expression& value) {
  switch (value.kind) {
  case Expression::Kind::string: return "the string " + quote(value.raw);
  case Expression::Kind::heredoc: return "a heredoc";
  case Expression::Kind::integer:
  case Expression::Kind::real: return "the number " + quote(value.raw);
  case Expression::Kind::atom: return "the name " + quote(value.raw);
  case Expression::Kind::boolean:
  case Expression::Kind::nil: return quote(value.raw);
  case Expression::Kind::alias: return "the module " + quote(value.raw);
  case Expression::Kind::list:
    if (value.items.empty()) return "an empty list";
    return value.items.front().key ? "a keyword list" : "a list";
  }
  return {};
}

std::string Reader::nearest(std::string_view wrong, const std::vector<std::string>& known,
                            std::string fallback) {
  // Of one or two letters every other such word is near.
  constexpr std::size_t shortest = 3;
  if (wrong.size() < shortest || known.size() > comparisons_left_) return fallback;
  comparisons_left_ -= known.size();
  auto near = nearest_word(wrong, known);
  return near ? "did you mean " + ticked(*near) + "?" : std::move(fallback);
}

std::string Reader::example(const Met& met) const {
  return "write for example " + ticked(met.verb.example);
}

// --- verbs

void Reader::unknown_verb(const Call& call, Place place) {
  if (is_code_form(call.name)) return;  // reported by the parser
  auto places = places_of(call.name);
  if (call.name.front() == '@' && call.name != "@moduledoc")
    return error(call.offset, "attribute " + quote(call.name) + " is not allowed",
                 "only `@moduledoc` is, and it is ignored");
  if (!places.empty()) {
    std::vector<std::string> homes;
    for (Place home : places)
      homes.push_back(spec::describe(home));
    std::string where = place == Place::file ? " stands outside a `deploy` block"
                                             : " does not belong in " + spec::describe(place);
    return error(call.offset, quote(call.name) + where, "it belongs in " + join(homes, " or "));
  }
  auto known = verb_names(place);
  std::string hint = nearest(call.name, known);
  // A faulty statement that is near to no verb was not meant as one.
  if (call.broken && hint.empty()) return;
  error(call.offset, "unknown verb " + quote(call.name) + " in " + spec::describe(place),
        hint.empty() ? "known here: " + list_of(known) : hint);
}

bool Reader::block_is_legal(const Met& met) {
  if (met.call.broken) return true;
  if (met.verb.block == BlockRule::none && met.call.block) {
    error(met.call.block->offset, ticked(met.verb.name) + " takes no block", example(met));
    return false;
  }
  if (met.verb.block == BlockRule::required && !met.call.block) {
    error(met.call.offset, ticked(met.verb.name) + " needs a block: `do … end`", example(met));
    return false;
  }
  return true;
}

void Reader::each(const Block& block, Place place, const std::function<void(const Met&)>& handle) {
  std::map<std::string, std::size_t> seen;
  for (const Call& call : block.calls) {
    if (report_.full()) return;
    const Verb* verb = find_verb(call.name, place);
    if (verb == nullptr) {
      unknown_verb(call, place);
      continue;
    }
    if (is_not_built(call.name, place)) {
      error(call.offset, ticked(call.name) + " is not supported yet", "remove it");
      continue;
    }
    auto [first, fresh] = seen.try_emplace(call.name, call.offset);
    if (!fresh && !verb->repeatable) {
      error(call.offset,
            "a second " + ticked(call.name) + "; the first is on line " +
                std::to_string(line(first->second)),
            "keep one of them");
      continue;
    }
    Met met{*verb, call};
    if (block_is_legal(met)) handle(met);
  }
}

// --- shape of the arguments

bool Reader::positional(const Met& met) {
  if (met.call.broken) return false;
  std::size_t keyword = met.call.first_keyword();
  if (keyword < met.call.arguments.size()) {
    const Argument& argument = met.call.arguments[keyword];
    error(argument.offset(), ticked(met.verb.name) + " takes no " + keyed(argument), example(met));
    return false;
  }
  if (keyword > 0) return true;
  error(met.call.offset, ticked(met.verb.name) + " needs an argument", example(met));
  return false;
}

const Expression* Reader::only(const Met& met) {
  if (!positional(met)) return nullptr;
  if (met.call.arguments.size() == 1) return &met.call.arguments.front().value;
  error(met.call.arguments[1].offset(), ticked(met.verb.name) + " takes one argument",
        example(met));
  return nullptr;
}

const Expression* Reader::first(const Met& met) {
  if (met.call.broken) return nullptr;
  std::size_t count = met.call.first_keyword();
  if (count == 0) {
    error(met.call.offset, ticked(met.verb.name) + " needs a name", example(met));
    return nullptr;
  }
  if (count > 1)
    error(met.call.arguments[1].offset(),
          ticked(met.verb.name) + " takes one name, and then keywords", example(met));
  return &met.call.arguments.front().value;
}

bool Reader::only_keywords(const Met& met) {
  if (met.call.broken) return false;
  if (met.call.arguments.empty()) {
    error(met.call.offset, ticked(met.verb.name) + " needs an argument", example(met));
    return false;
  }
  if (met.call.first_keyword() == 0) return true;
  const Expression& value = met.call.arguments.front().value;
  error(value.offset,
        ticked(met.verb.name) + " takes keywords (`key: value`), got " + spec::describe(value),
        example(met));
  return false;
}

void Reader::keywords(const Met& met, const std::vector<std::string>& known, bool repeatable,
                      const std::function<void(const Argument&)>& handle) {
  if (met.call.broken) return;
  std::map<std::string, std::size_t> seen;
  const auto& arguments = met.call.arguments;
  if (!has_room(std::min(arguments.size(), longest_list), met.call.offset, ticked(met.verb.name)))
    return;
  for (std::size_t i = met.call.first_keyword(); i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    if (std::find(known.begin(), known.end(), *argument.key) == known.end()) {
      std::string fallback = known.empty() ? example(met) : "known here: " + list_of(known);
      if (find_verb(*argument.key, met.verb.opens) != nullptr && met.verb.block != BlockRule::none)
        fallback = ticked(*argument.key) + " stands on a line of its own inside the block";
      error(argument.offset(), ticked(met.verb.name) + " takes no " + quote(*argument.key + ":"),
            nearest(*argument.key, known, fallback));
      continue;
    }
    auto [first, fresh] = seen.try_emplace(*argument.key, i);
    if (!fresh && !repeatable) {
      error(argument.offset(), "a second " + keyed(argument), "keep one of them");
      continue;
    }
    handle(argument);
  }
}

// --- values

bool Reader::has_room(std::size_t size, std::size_t offset, std::string_view subject) {
  if (size == longest_list)
    error(offset,
          std::string(subject) + " takes at most " + std::to_string(longest_list) + " values");
  return size < longest_list;
}

std::nullopt_t Reader::wrong(const Expression& value, std::string_view subject,
                             std::string_view wanted, std::string hint) {
  error(value.offset,
        std::string(subject) + " takes " + std::string(wanted) + ", got " + spec::describe(value),
        std::move(hint));
  return std::nullopt;
}

std::optional<std::string> Reader::text(const Expression& value, std::string_view subject) {
  if (value.is_string() && !trim(value.text).empty()) {
    if (value.text.size() <= longest_text) return value.text;
    error(value.offset, std::string(subject) + " takes at most 4096 bytes of text");
    return std::nullopt;
  }
  std::string hint;
  if (value.is_number() || value.kind == Expression::Kind::atom ||
      value.kind == Expression::Kind::boolean)
    hint = "write \"" + value.text + "\"";
  if (value.is_string()) return wrong(value, subject, "text that is not empty");
  return wrong(value, subject, "a string", hint);
}

std::optional<std::string> Reader::word(const Expression& value, std::string_view subject) {
  auto read = text(value, subject);
  if (!read) return std::nullopt;
  bool printable = std::none_of(read->begin(), read->end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
  if (read->size() > longest_word || !printable) {
    error(value.offset, std::string(subject) + " takes one line of at most 255 bytes");
    return std::nullopt;
  }
  return read;
}

std::optional<std::string> Reader::atom(const Expression& value, std::string_view subject) {
  if (value.kind == Expression::Kind::atom) return value.text;
  std::string hint;
  if (value.is_string() && is_plain_atom(value.text)) hint = "write :" + value.text;
  if (value.is_string() && hint.empty()) hint = "write :\"" + value.text.substr(0, 60) + "\"";
  return wrong(value, subject, "a name (:name)", hint);
}

std::optional<std::int64_t> Reader::integer(const Expression& value, std::string_view subject,
                                            std::int64_t least, std::int64_t most) {
  bool whole = value.kind == Expression::Kind::integer;
  if (whole && value.integer >= least && value.integer <= most) return value.integer;
  return wrong(value, subject,
               "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
}

std::optional<bool> Reader::boolean(const Expression& value, std::string_view subject) {
  if (value.kind == Expression::Kind::boolean) return value.boolean;
  return wrong(value, subject, "`true`");
}

std::optional<MemorySize> Reader::size(const Expression& value, std::string_view subject) {
  const std::string example = "write 24 (GB), or \"24GiB\"";
  if (!value.is_number() && !value.is_string()) return wrong(value, subject, "a size", example);
  if (value.is_number() && value.real <= 0) return wrong(value, subject, "a size above 0", example);
  auto parsed = value.is_string() ? parse_memory_size(value.text) : memory_size_of(value.real);
  if (parsed) return *parsed;
  error(value.offset, std::string(subject) + ": " + parsed.error().message, parsed.error().hint);
  return std::nullopt;
}

std::optional<std::string> Reader::version(const Expression& value, std::string_view subject) {
  bool legal = (value.is_number() || value.is_string()) && !value.text.empty() &&
               value.text.size() <= 32 && is_digit(value.text.front()) &&
               is_digit(value.text.back()) && value.text.find("..") == std::string::npos &&
               value.text.find_first_not_of("0123456789.") == std::string::npos;
  if (legal) return value.text;
  return wrong(value, subject, "a version", "write for example \"12.4\"");
}

std::optional<NodeName> Reader::node(const Expression& value, std::string_view subject) {
  auto name = atom(value, subject);
  if (!name) return std::nullopt;
  auto parsed = NodeName::parse(*name);
  if (parsed) return *parsed;
  error(value.offset, parsed.error().message, parsed.error().hint);
  return std::nullopt;
}

std::optional<DatasetName> Reader::dataset(const Expression& value, std::string_view subject) {
  auto name = text(value, subject);
  if (!name) return std::nullopt;
  if (name->front() == '/') {
    error(value.offset, "dataset name \"" + *name + "\" starts with '/'",
          "a dataset is named relative to the pool, as in \"models/llama-70b\"");
    return std::nullopt;
  }
  auto parsed = DatasetName::parse(*name);
  if (!parsed) {
    error(value.offset, parsed.error().message, parsed.error().hint);
    return std::nullopt;
  }
  if (parsed->is_under("zed")) {
    error(value.offset, "dataset \"zed\" is where Zed keeps its own records",
          "choose another name, as in \"jobs/train-001\"");
    return std::nullopt;
  }
  return *parsed;
}

std::optional<std::string> Reader::pool(const Expression& value, std::string_view subject) {
  auto name = text(value, subject);
  if (!name || DatasetName::parse(*name)) return name;
  error(value.offset, quote(*name) + " is no pool's name",
        "write it as `zpool list` shows it: \"tank\"");
  return std::nullopt;
}

std::optional<Millis> Reader::duration(const Expression& value, std::string_view subject) {
  if (!value.is_string())
    return wrong(value, subject, "a duration",
                 value.is_number() ? "write it with a unit: \"" + value.text + " minutes\""
                                   : "write for example \"15 minutes\"");
  auto parsed = parse_duration(value.text);
  if (parsed) return *parsed;
  error(value.offset, std::string(subject) + ": " + parsed.error().message, parsed.error().hint);
  return std::nullopt;
}

namespace {

bool is_component(const std::string& name) {
  constexpr std::size_t longest = 80;
  return name.size() <= longest && name.find('/') == std::string::npos &&
         DatasetName::parse(name).has_value();
}

constexpr char component_hint[] =
    "use letters, digits, '_', '-', '.' and ':', at most 80, starting with a letter or digit";

}  // namespace

std::optional<std::string> Reader::component(const Expression& value, std::string_view subject) {
  auto name = atom(value, subject);
  if (!name || is_component(*name)) return name;
  const std::size_t at = name->find('@');
  const bool versioned = subject == "`model`" && at != std::string::npos;
  error(value.offset, quote(value.raw) + " is no name of a model or job",
        versioned ? "declare model " + quote(":" + name->substr(0, at)) +
                        " with `version` in its block; a job may ask for a version by '@'"
                  : component_hint);
  return std::nullopt;
}

std::optional<std::string> Reader::versioned_model(const Expression& value,
                                                   std::string_view subject) {
  auto name = atom(value, subject);
  if (!name) return std::nullopt;
  const std::size_t at = name->find('@');
  const bool legal = is_component(name->substr(0, at)) &&
                     (at == std::string::npos || is_component(name->substr(at + 1)));
  if (legal) return name;
  error(value.offset, quote(value.raw) + " is no name of a model", component_hint);
  return std::nullopt;
}

std::vector<const Expression*> Reader::one_or_list(const Expression& value,
                                                   std::string_view subject) {
  if (value.kind != Expression::Kind::list) return {&value};
  std::vector<const Expression*> items;
  if (value.items.empty())
    error(value.offset, std::string(subject) + " takes a list that is not empty");
  for (const Argument& item : value.items) {
    if (!has_room(items.size(), item.offset(), subject)) break;
    if (item.key)
      error(item.offset(), std::string(subject) + " takes a list of values, not of keywords");
    else
      items.push_back(&item.value);
  }
  return items;
}

}  // namespace zed::spec
