#include "controller/operations/array.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"

namespace zed::controller {
namespace {

constexpr std::size_t longest_value = 4096;

bool is_parameter(const std::string& name) {
  auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && name.size() <= 64 && !is_digit(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

Status check_axis(const api::ArrayAxis& axis, std::set<std::string>& names) {
  if (!is_parameter(axis.name))
    return fail(ErrorCode::invalid,
                "\"" + percent_encode(axis.name.substr(0, 80)) + "\" is no name of a parameter",
                "letters, digits and '_', as in --array lr=0.1,0.01");
  if (!names.insert(axis.name).second)
    return fail(ErrorCode::invalid, "parameter " + axis.name + " is given twice",
                "give all its values at once: --array " + axis.name + "=A,B");
  if (axis.values.empty())
    return fail(ErrorCode::invalid, "parameter " + axis.name + " has no values",
                "--array " + axis.name + "=A,B");
  std::set<std::string> values;
  for (const std::string& value : axis.values) {
    if (value.size() > longest_value || value.find('\0') != std::string::npos ||
        !is_valid_utf8(value))
      return fail(ErrorCode::invalid,
                  "a value of parameter " + axis.name + " is too long or no text");
    if (!values.insert(value).second)
      return fail(ErrorCode::invalid, "parameter " + axis.name + " has \"" + value + "\" twice");
  }
  return {};
}

/// Every "{name}" of one word; other braces stay.
std::string filled(const std::string& word, const ArrayElement& element) {
  std::string text;
  for (std::size_t at = 0; at < word.size();) {
    bool replaced = false;
    for (const auto& [name, value] : element) {
      const std::string hole = "{" + name + "}";
      if (word.compare(at, hole.size(), hole) != 0) continue;
      text += value;
      at += hole.size();
      replaced = true;
      break;
    }
    if (!replaced) text += word[at++];
  }
  return text;
}

/// Names in "{name}", but not in the shell's "${name}".
void find_holes(const std::string& word, std::set<std::string>& holes) {
  for (std::size_t open = word.find('{'); open != std::string::npos;
       open = word.find('{', open + 1)) {
    const std::size_t close = word.find('}', open);
    if (close == std::string::npos) return;
    const std::string name = word.substr(open + 1, close - open - 1);
    if (is_parameter(name) && (open == 0 || word[open - 1] != '$')) holes.insert(name);
  }
}

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

}  // namespace

Result<std::vector<ArrayElement>> elements_of(const std::vector<api::ArrayAxis>& axes) {
  std::set<std::string> names;
  std::size_t count = 1;
  for (const api::ArrayAxis& axis : axes) {
    ZED_CHECK(check_axis(axis, names));
    if (axis.values.size() > largest_array / count)
      return fail(ErrorCode::invalid,
                  fmt::format("the array has more than {} combinations", largest_array),
                  "dispatch it in parts");
    count *= axis.values.size();
  }
  std::vector<ArrayElement> elements(1);
  for (const api::ArrayAxis& axis : axes) {
    std::vector<ArrayElement> longer;
    for (const ArrayElement& element : elements)
      for (const std::string& value : axis.values) {
        longer.push_back(element);
        longer.back().emplace_back(axis.name, value);
      }
    elements = std::move(longer);
  }
  return elements;
}

namespace {

/// Whether one was likely meant as the other: near, or the same letters.
bool is_misspelling(std::string typed, std::string known) {
  if (nearest_word(typed, {known})) return true;
  std::sort(typed.begin(), typed.end());
  std::sort(known.begin(), known.end());
  return typed == known;
}

}  // namespace

Status check_parameters(const Job& base, const std::vector<api::ArrayAxis>& axes) {
  std::set<std::string> holes;
  for (const std::string& word : base.argv)
    find_holes(word, holes);
  for (const auto& entry : base.env)
    find_holes(entry.second, holes);
  std::vector<std::string> unused;
  for (const api::ArrayAxis& axis : axes)
    if (holes.erase(axis.name) == 0) unused.push_back(axis.name);
  // Braces may be the program's own, and a parameter may be read from the environment alone.
  for (const std::string& name : unused)
    for (const std::string& hole : holes)
      if (is_misspelling(name, hole))
        return fail(ErrorCode::invalid,
                    fmt::format("nothing in job {} uses {{{}}}, and {{{}}} would stay as it is",
                                base.name.str(), name, hole),
                    "--array " + hole +
                        "=A,B; a program that reads the environment has ZED_PARAM_" + upper(hole));
  return {};
}

JobId element_id(const JobId& first, std::size_t position) {
  JobId id = first;
  // The last four bytes count on; an identity is random, so nobody else's is hit.
  std::uint64_t carry = position;
  for (std::size_t i = id.bytes.size(); i-- > id.bytes.size() - 4;) {
    carry += id.bytes[i];
    id.bytes[i] = static_cast<std::uint8_t>(carry);
    carry >>= 8U;
  }
  return id;
}

Result<Job> element_of(const Job& base, const ArrayElement& element, std::size_t number,
                       const JobId& id) {
  Job job = base;
  job.id = id;
  const std::string suffix = "-" + std::to_string(number);
  ZED_TRY(job.dataset, DatasetName::parse(base.dataset.str() + suffix));
  ZED_CHECK(DatasetName::parse("jobs/" + base.name.str() + suffix));  // a legal name as well
  job.name = JobName(base.name.str() + suffix);
  for (std::string& word : job.argv)
    word = filled(word, element);
  for (auto& entry : job.env)
    entry.second = filled(entry.second, element);
  job.env["ZED_ARRAY_INDEX"] = std::to_string(number);
  for (const auto& [name, value] : element)
    job.env["ZED_PARAM_" + upper(name)] = value;
  return job;
}

}  // namespace zed::controller
