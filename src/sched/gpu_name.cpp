#include "sched/gpu_name.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "sched/nominal.hpp"

namespace zed::sched {
namespace {

using Word = std::string_view;

// Brands and words that every card of a maker carries: they tell no product from another.
constexpr std::array<Word, 16> noise{
    "nvidia", "geforce", "tesla", "quadro", "amd", "ati",      "radeon",      "instinct",
    "intel",  "apple",   "grid",  "gpu",    "tm",  "graphics", "corporation", "generation"};
constexpr std::array<Word, 4> line_words{"rtx", "gtx", "rx", "arc"};
// How a product is built or sold, not which one it is.
constexpr std::array<Word, 8> packaging_words{"pcie",   "oam",         "nvlink",  "hbm",
                                              "server", "workstation", "edition", "blackwell"};
// Longest first: "tisuper" is "ti" and "super", "xtx" is not "xt" and "x".
constexpr std::array<Word, 14> variants{"laptop", "mobile", "super", "ultra", "xtx", "nvl", "ada",
                                        "pro",    "max",    "ti",    "xt",    "d",   "s",   "g"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z');
}

template <std::size_t N> bool is_one_of(Word word, const std::array<Word, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// "80gb" and "24g" are sizes; "1g" of a MIG profile ("1g.10gb") is none, its words stay apart.
bool is_size(Word word) {
  return word.size() > 2 && word.ends_with("gb") &&
         std::all_of(word.begin(), word.end() - 2, is_digit);
}

/// "sxm", "sxm4", "hbm3", "hbm2e".
bool is_packaging(Word word) {
  return is_size(word) || is_one_of(word, packaging_words) || word.starts_with("sxm") ||
         word.starts_with("hbm");
}

std::vector<std::string> raw_words(std::string_view text) {
  std::string plain = lower(text);
  // "Max-Q" is one word; "(R)" and "(TM)" are none.
  for (Word mark : {Word("(r)"), Word("(tm)")})
    for (std::size_t at; (at = plain.find(mark)) != std::string::npos;)
      plain.replace(at, mark.size(), " ");
  if (std::size_t at = plain.find("max-q"); at != std::string::npos) plain.replace(at, 5, "maxq");
  std::vector<std::string> words;
  std::string word;
  for (char c : plain + " ") {
    if (is_word_char(c)) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

/// Takes "tisuper" apart into variants; nothing if something else remains.
std::optional<std::vector<std::string>> variants_of(Word suffix) {
  std::vector<std::string> found;
  while (!suffix.empty()) {
    if (suffix == "m") return found.push_back("laptop"), found;
    auto variant = std::find_if(variants.begin(), variants.end(),
                                [&](Word v) { return suffix.starts_with(v); });
    if (variant == variants.end()) return std::nullopt;
    found.emplace_back(*variant);
    suffix.remove_prefix(variant->size());
  }
  return found;
}

/// "rtx4090" -> rtx, 4090; "3060ti" -> 3060, ti; "a10g" -> a10, g; "gb200" stays.
std::vector<std::string> split_word(Word word) {
  std::vector<std::string> parts;
  for (Word line : line_words)
    if (word.size() > line.size() && word.starts_with(line) &&
        std::any_of(word.begin(), word.end(), is_digit)) {
      parts.emplace_back(line);
      word.remove_prefix(line.size());
      break;
    }
  auto last_digit = std::find_if(word.rbegin(), word.rend(), is_digit).base();
  auto stem = static_cast<std::size_t>(last_digit - word.begin());
  auto suffix = stem > 0 ? variants_of(word.substr(stem)) : std::nullopt;
  parts.emplace_back(suffix ? word.substr(0, stem) : word);
  if (suffix) parts.insert(parts.end(), suffix->begin(), suffix->end());
  return parts;
}

void sort_unique(std::vector<std::string>& words) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
}

void add_word(GpuName& name, const std::string& word) {
  if (is_one_of(word, noise)) return;
  if (is_packaging(word)) {
    name.packaging.push_back(word);
    return;
  }
  for (const std::string& part : split_word(word)) {
    if (is_one_of(part, line_words))
      name.lines.push_back(part);
    else if (!is_one_of(part, noise))
      name.words.push_back(part == "mobile" ? "laptop" : part);
  }
}

/// "sxm" asks for any of its kinds; "sxm4" for that one. "hbm2" is not "hbm2e".
bool has_packaging(const GpuName& device, Word wanted, std::optional<std::int64_t> nominal_gb) {
  bool any_kind = wanted == "sxm" || wanted == "hbm";
  bool device_has_size = false;
  for (const std::string& word : device.packaging) {
    if (word == wanted || (any_kind && word.starts_with(wanted))) return true;
    device_has_size = device_has_size || is_size(word);
  }
  return is_size(wanted) && !device_has_size && nominal_gb &&
         wanted == std::to_string(*nominal_gb) + "gb";
}

bool contradicts(const std::vector<std::string>& query, const std::vector<std::string>& device) {
  return !device.empty() &&
         !std::includes(device.begin(), device.end(), query.begin(), query.end());
}

}  // namespace

GpuName GpuName::parse(std::string_view text) {
  GpuName name;
  text = trim(text);
  if (text.ends_with('*')) {
    name.relaxed = true;
    text.remove_suffix(1);
  }
  for (const std::string& word : raw_words(text))
    add_word(name, word);
  sort_unique(name.words);
  sort_unique(name.lines);
  sort_unique(name.packaging);
  return name;
}

bool matches(const GpuName& query, const GpuName& device, std::optional<std::int64_t> nominal_gb) {
  if (query.words.empty() || contradicts(query.lines, device.lines)) return false;
  bool same = query.relaxed ? std::includes(device.words.begin(), device.words.end(),
                                            query.words.begin(), query.words.end())
                            : query.words == device.words;
  return same && std::all_of(query.packaging.begin(), query.packaging.end(),
                             [&](Word word) { return has_packaging(device, word, nominal_gb); });
}

bool name_matches(std::string_view query, std::string_view device) {
  return matches(GpuName::parse(query), GpuName::parse(device));
}

bool name_matches(std::string_view query, const Gpu& gpu) {
  return matches(GpuName::parse(query), GpuName::parse(gpu.model), nominal_size_gb(gpu));
}

}  // namespace zed::sched
