#include "gpu/device.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace zed::gpu {
namespace {

constexpr std::size_t most_problems = 64;
constexpr std::size_t longest_why = 600;

bool is_hex(std::string_view text, std::size_t least, std::size_t most) {
  return text.size() >= least && text.size() <= most &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// A tool's words may hold anything; ours are text.
std::string clean(std::string_view text) {
  std::string cleaned(text);
  bool is_text = is_valid_utf8(text);
  for (char& c : cleaned) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (!is_text && byte >= 0x80)) c = '?';
  }
  return cleaned;
}

}  // namespace

int severity(GpuHealth health) {
  switch (health) {
  case GpuHealth::ok: return 0;
  case GpuHealth::degraded: return 1;
  case GpuHealth::stale: return 2;
  case GpuHealth::reserved: return 3;
  case GpuHealth::no_driver: return 4;
  case GpuHealth::reset_required: return 5;
  case GpuHealth::lost: return 6;
  }
  return 0;
}

void Device::diagnose(GpuHealth worse, std::string_view reason, std::string_view source) {
  if (severity(worse) > severity(health)) {
    health = worse;
    health_source = source;
  }
  std::string words = clean(reason);
  if (words.empty() || why.find(words) != std::string::npos) return;
  if (why.size() + words.size() > longest_why) return;
  if (!why.empty()) why += "; ";
  why += words;
}

void Report::problem(std::string what, std::string act) {
  Problem found{clean(what), clean(act)};
  if (problems.size() >= most_problems) return;
  if (std::find(problems.begin(), problems.end(), found) == problems.end())
    problems.push_back(std::move(found));
}

std::string normal_bus_id(std::string_view text) {
  std::string bus = lower(trim(text));
  std::string function = "0";
  if (std::size_t dot = bus.find('.'); dot != std::string::npos) {
    function = bus.substr(dot + 1);
    bus.resize(dot);
  }
  std::vector<std::string> parts = split(bus, ':');
  if (parts.size() == 2) parts.insert(parts.begin(), "0000");
  if (parts.size() != 3 || !is_hex(parts[0], 1, 8) || !is_hex(parts[1], 2, 2) ||
      !is_hex(parts[2], 2, 2) || !is_hex(function, 1, 1))
    return {};
  std::string& domain = parts[0];
  std::size_t zeros = std::min(domain.find_first_not_of('0'), domain.size());
  std::size_t keep = std::max<std::size_t>(4, domain.size() - zeros);
  domain = domain.size() >= keep ? domain.substr(domain.size() - keep)
                                 : std::string(keep - domain.size(), '0') + domain;
  return domain + ":" + parts[1] + ":" + parts[2] + "." + function;
}

}  // namespace zed::gpu
