#pragma once
// Units of size that a filter knows.

#include <array>
#include <optional>
#include <string_view>

namespace zed::spec {

struct SizeUnit {
  std::string_view name;
  double bytes;
};

inline constexpr std::array<SizeUnit, 9> units_of_size{{{"B", 1},
                                                        {"kB", 1e3},
                                                        {"MB", 1e6},
                                                        {"GB", 1e9},
                                                        {"TB", 1e12},
                                                        {"KiB", 1024.0},
                                                        {"MiB", 1048576.0},
                                                        {"GiB", 1073741824.0},
                                                        {"TiB", 1099511627776.0}}};

/// Letter case does not matter. Nothing for a word that is no unit.
std::optional<SizeUnit> size_unit(std::string_view word);

}  // namespace zed::spec
