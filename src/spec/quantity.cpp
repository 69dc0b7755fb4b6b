#include "spec/quantity.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "base/text.hpp"

namespace zed::spec {
namespace {

constexpr std::int64_t day_ms = 24 * 3600 * 1000;
constexpr std::int64_t longest_duration_ms = 3653 * day_ms;  // 10 years
constexpr std::int64_t most_epochs = 1'000'000'000'000;
constexpr double most_bytes = 1e18;

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

constexpr std::array<Unit, 14> durations{{{"second", 1000},
                                          {"seconds", 1000},
                                          {"sec", 1000},
                                          {"s", 1000},
                                          {"minute", 60'000},
                                          {"minutes", 60'000},
                                          {"min", 60'000},
                                          {"m", 60'000},
                                          {"hour", 3'600'000},
                                          {"hours", 3'600'000},
                                          {"h", 3'600'000},
                                          {"day", day_ms},
                                          {"days", day_ms},
                                          {"d", day_ms}}};

// Bits are given in eighths of a byte: every factor is in bits.
constexpr std::array<Unit, 13> rates{{{"b/s", 8},
                                      {"kb/s", 8'000},
                                      {"mb/s", 8'000'000},
                                      {"gb/s", 8'000'000'000},
                                      {"tb/s", 8'000'000'000'000},
                                      {"kib/s", 8LL << 10},
                                      {"mib/s", 8LL << 20},
                                      {"gib/s", 8LL << 30},
                                      {"tib/s", 8LL << 40},
                                      {"bit/s", 1},
                                      {"kbit/s", 1'000},
                                      {"mbit/s", 1'000'000},
                                      {"gbit/s", 1'000'000'000}}};

template <std::size_t N>
std::optional<std::int64_t> factor_of(const std::array<Unit, N>& units, std::string_view name) {
  for (const Unit& unit : units)
    if (unit.name == name) return unit.factor;
  return std::nullopt;
}

template <std::size_t N> std::vector<std::string> names_of(const std::array<Unit, N>& units) {
  std::vector<std::string> names;
  for (const Unit& unit : units)
    names.emplace_back(unit.name);
  return names;
}

/// "15 minutes" -> "15", "minutes".
struct Written {
  std::string_view number;
  std::string_view unit;
};

Written split_unit(std::string_view text) {
  text = trim(text);
  std::size_t digits = text.find_first_not_of("0123456789.");
  if (digits == std::string_view::npos) return {text, {}};
  return {text.substr(0, digits), trim(text.substr(digits))};
}

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Digits with at most one point between them.
std::optional<double> decimal(std::string_view text) {
  if (text.empty() || text.front() == '.' || text.back() == '.') return std::nullopt;
  double number = 0;
  const char* last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, number, std::chars_format::fixed);
  if (error != std::errc{} || end != last) return std::nullopt;
  return number;
}

std::string quoted(std::string_view text) {
  return "\"" + percent_encode(text.substr(0, 60)) + (text.size() > 60 ? "…" : "") + "\"";
}

std::string suggestion(std::string_view unit, const std::vector<std::string>& known,
                       std::string fallback) {
  // Very short units are near to everything.
  auto near = unit.size() > 2 ? nearest_word(unit, known) : std::nullopt;
  return near ? "did you mean `" + *near + "`?" : std::move(fallback);
}

}  // namespace

Result<Millis> parse_duration(std::string_view text) {
  const std::string example = "write for example \"90 seconds\", \"15 minutes\", \"12 hours\" or "
                              "\"2 days\"";
  Written written = split_unit(text);
  auto refuse = [&](std::string_view why, std::string hint) {
    return fail(ErrorCode::invalid, quoted(text) + " is no duration: " + std::string(why),
                std::move(hint));
  };
  if (written.number.empty()) return refuse("it starts with no number", example);
  if (written.unit.empty()) return refuse("the unit is missing", example);
  auto factor = factor_of(durations, lower(written.unit));
  if (!factor)
    return refuse("unknown unit " + quoted(written.unit),
                  suggestion(written.unit, names_of(durations), example));
  auto count = whole(written.number);
  if (!count) return refuse("the number is not whole", "use a smaller unit");
  if (*count == 0) return refuse("it is zero", example);
  if (*count > longest_duration_ms / *factor) return refuse("it is longer than 10 years", {});
  return Millis{*count * *factor};
}

Result<Bytes> parse_rate(std::string_view text) {
  const std::string example = "write for example \"200 MB/s\" (bytes) or \"50 Mbit/s\" (bits)";
  Written written = split_unit(text);
  auto refuse = [&](std::string_view why, std::string hint) {
    return fail(ErrorCode::invalid, quoted(text) + " is no rate: " + std::string(why),
                std::move(hint));
  };
  auto number = decimal(written.number);
  if (!number) return refuse("it starts with no number", example);
  if (written.unit.empty()) return refuse("the unit is missing", example);
  auto bits = factor_of(rates, lower(written.unit));
  if (!bits) return refuse("unknown unit " + quoted(written.unit), example);
  double bytes = *number * static_cast<double>(*bits) / 8;
  if (bytes < 1) return refuse("it is less than a byte a second", example);
  if (bytes > most_bytes) return refuse("it is too large", example);
  return Bytes{static_cast<std::int64_t>(std::llround(bytes))};
}

Result<CheckpointPolicy> parse_checkpoint_policy(std::string_view text) {
  const std::string example = "write for example \"1 epoch\", \"500 steps\" or \"10 minutes\"";
  Written written = split_unit(text);
  auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::invalid,
                quoted(text) + " does not say when to checkpoint: " + std::string(why), example);
  };
  std::string unit = lower(written.unit);
  bool epochs = unit == "epoch" || unit == "epochs";
  bool steps = unit == "step" || unit == "steps";
  if (epochs || steps) {
    auto count = whole(written.number);
    if (!count || *count == 0 || *count > most_epochs)
      return refuse("expected a whole number above 0");
    return CheckpointPolicy{
        epochs ? CheckpointPolicy::Unit::epochs : CheckpointPolicy::Unit::steps, *count, {}};
  }
  if (written.number.empty()) return refuse("it starts with no number");
  if (unit.empty()) return refuse("the unit is missing");
  if (!factor_of(durations, unit)) return refuse("unknown unit " + quoted(written.unit));
  ZED_TRY(auto every, parse_duration(text));
  return CheckpointPolicy{CheckpointPolicy::Unit::time, 0, every};
}

Result<MemorySize> parse_memory_size(std::string_view text) {
  const std::string example = "write for example 24 or \"24GB\" (nominal), \"24GiB\" or "
                              "\"24564MiB\" (exact)";
  auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::invalid, quoted(text) + " is no size: " + std::string(why), example);
  };
  if (auto size = MemorySize::parse(text)) {
    if (size->amount == 0) return refuse("it is zero");
    return *size;
  }
  Written written = split_unit(text);
  auto number = decimal(written.number);
  if (!number) return refuse("it starts with no number");
  std::string unit = lower(written.unit);
  int shift = unit == "mib"                                   ? 20
              : unit == "gib" || unit == "gb" || unit.empty() ? 30
              : unit == "tib"                                 ? 40
                                                              : 0;
  if (shift == 0) return refuse("unknown unit " + quoted(written.unit));
  bool nominal = shift == 30 && unit != "gib";
  if (nominal) return memory_size_of(*number);
  double bytes = std::ldexp(*number, shift);
  if (!(bytes >= 1 && bytes <= most_bytes)) return refuse("it is out of range");
  return MemorySize{MemorySize::Kind::exact, static_cast<std::int64_t>(std::llround(bytes))};
}

Result<MemorySize> memory_size_of(double gigabytes) {
  double bytes = std::ldexp(gigabytes, 30);
  if (!(bytes >= 1 && bytes <= most_bytes))
    return fail(ErrorCode::invalid, "the size is out of range", "write a number of GB above 0");
  if (gigabytes == std::floor(gigabytes))
    return MemorySize{MemorySize::Kind::nominal_gb, static_cast<std::int64_t>(gigabytes)};
  return MemorySize{MemorySize::Kind::exact, static_cast<std::int64_t>(std::llround(bytes))};
}

}  // namespace zed::spec
