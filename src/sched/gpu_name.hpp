#pragma once
// When a GPU's name, as a person wrote it, means the device whose driver prints another name.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/gpu.hpp"

namespace zed::sched {

/// A GPU's name taken apart. Two names mean one product when their model words are equal sets.
struct GpuName {
  std::vector<std::string> words;      ///< "4090", "ti", "a100"; sorted, unique
  std::vector<std::string> lines;      ///< "rtx", "gtx", "rx", "arc"; optional, never contradicting
  std::vector<std::string> packaging;  ///< "sxm4", "pcie", "80gb"; compared if the query has it
  bool relaxed = false;                ///< a trailing '*': the device may have more words

  static GpuName parse(std::string_view text);
  friend bool operator==(const GpuName&, const GpuName&) = default;
};

/// Whether `query` means `device`. `nominal_gb` answers a size in the query ("A100 80GB") where the
/// driver prints none. A query without any model word matches nothing.
bool matches(const GpuName& query, const GpuName& device,
             std::optional<std::int64_t> nominal_gb = std::nullopt);
bool name_matches(std::string_view query, std::string_view device);
bool name_matches(std::string_view query, const Gpu& gpu);

}  // namespace zed::sched
