#include "core/requirement.hpp"

#include <set>

#include "base/number.hpp"
#include "base/text.hpp"

namespace zed {
namespace {

std::optional<std::int64_t> number_of(std::string_view text) {
  const auto number = parse_number<std::int64_t>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

// Within a property clauses are separated by ',' and alternatives by '|'; both are escaped inside
// a word, so that a label may hold them.
std::string escaped(std::string_view word) {
  std::string text;
  for (char c : percent_encode(word)) {
    if (c == ',')
      text += "%2C";
    else if (c == '|')
      text += "%7C";
    else
      text += c;
  }
  return text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : "|") + escaped(word);
  return text;
}

std::optional<std::vector<std::string>> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string& part : split(text, '|')) {
    auto word = percent_decode(part);
    if (!word || word->empty()) return std::nullopt;
    words.push_back(*word);
  }
  return words;
}

template <class T> bool assign(std::optional<T>& target, std::optional<T> parsed) {
  target = std::move(parsed);
  return target.has_value();
}

bool assign(std::vector<std::string>& target, std::string_view text) {
  auto words = words_of(text);
  if (words) target = std::move(*words);
  return words.has_value();
}

bool assign(std::optional<std::string>& target, std::string_view text) {
  auto word = percent_decode(text);
  if (!word || word->empty()) return false;
  target = std::move(*word);
  return true;
}

bool parse_clause(std::string_view key, std::string_view value, Requirement& r) {
  if (key == "vram") return assign(r.vram, MemorySize::parse(value));
  if (key == "vram_total") return assign(r.vram_total, MemorySize::parse(value));
  if (key == "gpus") return assign(r.gpus, number_of(value));
  if (key == "gpu") return assign(r.gpu, value);
  if (key == "arch") return assign(r.arch, value);
  if (key == "driver") return assign(r.driver, value);
  if (key == "cuda") return assign(r.cuda, value);
  if (key == "memory") return assign(r.memory, MemorySize::parse(value));
  if (key == "disk") return assign(r.disk, MemorySize::parse(value));
  if (key == "os") return assign(r.os, value);
  if (key == "labels") return assign(r.labels, value);
  if (key == "share" && value == "true") return r.share = true;
  return false;
}

}  // namespace

std::string MemorySize::str() const {
  if (kind == Kind::nominal_gb) return std::to_string(amount);
  constexpr std::int64_t mib = std::int64_t{1} << 20;
  constexpr std::int64_t gib = std::int64_t{1} << 30;
  if (amount % gib == 0) return std::to_string(amount / gib) + "GiB";
  if (amount % mib == 0) return std::to_string(amount / mib) + "MiB";
  return std::to_string(amount) + "B";
}

std::optional<MemorySize> MemorySize::parse(std::string_view text) {
  std::string_view written = trim(text);
  std::size_t digits = written.find_first_not_of("0123456789");
  auto amount = number_of(written.substr(0, digits));
  if (!amount) return std::nullopt;
  std::string unit = digits == std::string_view::npos ? "" : lower(trim(written.substr(digits)));
  constexpr std::int64_t most = std::int64_t{1} << 30;  // GiB, 1 EiB: as bytes it fits 63 bits
  int shift = unit == "gib" ? 30 : unit == "mib" ? 20 : unit == "tib" ? 40 : 0;
  if (unit == "" || unit == "gb") {
    if (*amount > most) return std::nullopt;
    return MemorySize{Kind::nominal_gb, *amount};
  }
  if (unit == "tb" && *amount <= most / 1000) return MemorySize{Kind::nominal_gb, *amount * 1000};
  bool exact = shift > 0 || unit == "b";
  if (!exact || *amount > (INT64_MAX >> shift)) return std::nullopt;
  return MemorySize{Kind::exact, *amount << shift};
}

Bytes MemorySize::bytes() const {
  return kind == Kind::exact ? Bytes{amount} : gibibytes(amount);
}

Requirement Requirement::overridden_by(const Requirement& own) const {
  Requirement merged = *this;
  if (own.vram) merged.vram = own.vram;
  if (own.vram_total) merged.vram_total = own.vram_total;
  if (own.gpus) merged.gpus = own.gpus;
  if (!own.gpu.empty()) merged.gpu = own.gpu;
  if (!own.arch.empty()) merged.arch = own.arch;
  if (own.driver) merged.driver = own.driver;
  if (own.cuda) merged.cuda = own.cuda;
  if (own.memory) merged.memory = own.memory;
  if (own.disk) merged.disk = own.disk;
  if (!own.os.empty()) merged.os = own.os;
  if (!own.labels.empty()) merged.labels = own.labels;
  merged.share = share || own.share;
  return merged;
}

std::string Requirement::str() const {
  std::vector<std::string> clauses;
  auto add = [&clauses](std::string_view key, const std::string& value) {
    clauses.push_back(std::string(key) + ":" + value);
  };
  if (vram) add("vram", vram->str());
  if (vram_total) add("vram_total", vram_total->str());
  if (gpus) add("gpus", std::to_string(*gpus));
  if (!gpu.empty()) add("gpu", joined(gpu));
  if (!arch.empty()) add("arch", joined(arch));
  if (driver) add("driver", escaped(*driver));
  if (cuda) add("cuda", escaped(*cuda));
  if (memory) add("memory", memory->str());
  if (disk) add("disk", disk->str());
  if (!os.empty()) add("os", joined(os));
  if (!labels.empty()) add("labels", joined(labels));
  if (share) add("share", "true");
  return join(clauses, ",");
}

std::optional<Requirement> Requirement::parse(std::string_view text) {
  Requirement requirement;
  if (trim(text).empty()) return requirement;
  std::set<std::string> seen;
  for (const std::string& clause : split(text, ',')) {
    std::size_t colon = clause.find(':');
    if (colon == std::string::npos) return std::nullopt;
    std::string key(trim(std::string_view(clause).substr(0, colon)));
    std::string_view value = trim(std::string_view(clause).substr(colon + 1));
    if (!seen.insert(key).second || !parse_clause(key, value, requirement)) return std::nullopt;
  }
  return requirement;
}

}  // namespace zed
