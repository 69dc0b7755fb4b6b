#pragma once
// How output is to look, as a value: rendering is a pure function of what to show and a View.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.hpp"

namespace zed::cli {

struct View {
  std::size_t width = 0;  ///< columns of the terminal; 0: not one, nothing is cut
  bool colour = false;
  bool wide = false;              ///< -o wide: more columns
  WallTime now;                   ///< for "3 min ago"
  std::int64_t utc_offset_s = 0;  ///< of the local time zone
};

enum class Style { plain, strong, faint, good, warning, bad };

/// The text in that style; unchanged without colour.
std::string styled(std::string_view text, Style style, const View& view);

/// Fit for a terminal's cell: control characters (escape sequences above all: names and log lines
/// come from others) and bytes that are no UTF-8 become U+FFFD, line breaks and tabs a space.
std::string printable(std::string_view text);

/// A line of a job's log: as printable(), but tabs stay, and colours (SGR sequences) do if
/// `colour`.
std::string printable_log(std::string_view text, bool colour);

/// Columns that printable text takes: wide characters two, combining ones none.
std::size_t display_width(std::string_view text);

/// At most `width` columns, the end replaced by "…" if something is cut.
std::string fitted(std::string_view text, std::size_t width);

/// The largest unit only: "3 min", "1 h".
std::string brief(Millis duration);
/// "@v1" of "v1" and of "@v1".
std::string at(std::string_view snapshot);

/// A GPU's name without its maker's, which everybody knows: "RTX 4090" of "NVIDIA GeForce RTX
/// 4090". Whole with -o wide.
std::string gpu_name(std::string_view model, const View& view);

/// "3 min ago", "now"; "-" for a time that is not set.
std::string ago(WallTime time, const View& view);
/// "2024-04-13 10:00:00", local.
std::string clock_text(WallTime time, const View& view);

}  // namespace zed::cli
