#include "cli/plot.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace zed::cli {
namespace {

constexpr std::size_t dots_across = 2;
constexpr std::size_t dots_down = 4;

/// The bit of a dot in a braille cell, by column and row.
constexpr unsigned bits[dots_across][dots_down] = {{0x01, 0x02, 0x04, 0x40},
                                                   {0x08, 0x10, 0x20, 0x80}};

std::string braille(unsigned dots) {
  // U+2800 to U+28FF: three bytes of UTF-8.
  const unsigned code = 0x2800 + dots;
  return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

struct Scale {
  double low = 0;
  double high = 1;
  /// Position of a value among `dots` dots.
  std::size_t dot(double value, std::size_t dots) const {
    const double share = (value - low) / (high - low);
    const auto last = static_cast<double>(dots - 1);
    return static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * last));
  }
};

Scale scale_of(const std::vector<double>& values) {
  auto [low, high] = std::minmax_element(values.begin(), values.end());
  Scale scale{*low, *high};
  // Differences that overflow, or none at all: one line in the middle is all there is to show.
  if (!std::isfinite(scale.high - scale.low) || scale.low == scale.high) {
    const double room = scale.low == 0 ? 1 : std::abs(scale.low) / 10;
    scale = {scale.low - room, scale.low + room};
  }
  return scale;
}

class Canvas {
public:
  Canvas(std::size_t columns, std::size_t rows)
      : columns_(columns), rows_(rows), cells_(columns * rows, 0) {}

  std::size_t width() const { return columns_ * dots_across; }
  std::size_t height() const { return rows_ * dots_down; }

  /// From one dot to the next, y upwards.
  void line(std::size_t x0, std::size_t y0, std::size_t x1, std::size_t y1) {
    const auto dx = static_cast<double>(x1) - static_cast<double>(x0);
    const auto dy = static_cast<double>(y1) - static_cast<double>(y0);
    const auto turns = static_cast<std::size_t>(std::max({std::abs(dx), std::abs(dy), 1.0}));
    for (std::size_t i = 0; i <= turns; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(turns);
      set(static_cast<std::size_t>(std::lround(static_cast<double>(x0) + dx * share)),
          static_cast<std::size_t>(std::lround(static_cast<double>(y0) + dy * share)));
    }
  }

  std::string row(std::size_t row) const {
    std::string text;
    for (std::size_t column = 0; column < columns_; ++column) {
      const unsigned dots = cells_[row * columns_ + column];
      text += dots == 0 ? " " : braille(dots);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

private:
  void set(std::size_t x, std::size_t y) {
    const std::size_t from_top = height() - 1 - y;
    cells_[from_top / dots_down * columns_ + x / dots_across] |=
        bits[x % dots_across][from_top % dots_down];
  }

  std::size_t columns_;
  std::size_t rows_;
  std::vector<unsigned> cells_;
};

std::string padded_left(const std::string& text, std::size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

std::string steps_line(const std::string& first, const std::string& last, std::size_t columns) {
  const std::size_t used = first.size() + last.size();
  return first + std::string(columns > used ? columns - used : 1, ' ') + last;
}

std::string marks_line(const std::vector<PlotMark>& marks, const Scale& across,
                       std::size_t columns) {
  std::string line(columns, ' ');
  for (const PlotMark& mark : marks)
    if (mark.at >= across.low && mark.at <= across.high) line[across.dot(mark.at, columns)] = '^';
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string brief_number(double number) {
  return fmt::format("{:.4g}", number);
}

std::string plot(const MetricSeries& series, const std::vector<PlotMark>& marks, PlotSize size,
                 const View& view) {
  if (series.values.empty() || series.values.size() != series.steps.size()) return "";
  size.columns = std::clamp<std::size_t>(size.columns, 20, 400);
  size.rows = std::clamp<std::size_t>(size.rows, 3, 100);
  const Scale up = scale_of(series.values);
  const Scale across = scale_of(series.steps);
  const std::string top = brief_number(up.high);
  const std::string bottom = brief_number(up.low);
  const std::size_t margin = std::max(top.size(), bottom.size());
  Canvas canvas(size.columns - std::min(size.columns - 10, margin + 2), size.rows);
  std::size_t x = across.dot(series.steps[0], canvas.width());
  std::size_t y = up.dot(series.values[0], canvas.height());
  for (std::size_t i = 0; i < series.values.size(); ++i) {
    const std::size_t next_x = across.dot(series.steps[i], canvas.width());
    const std::size_t next_y = up.dot(series.values[i], canvas.height());
    canvas.line(x, y, next_x, next_y);
    x = next_x;
    y = next_y;
  }
  std::string text;
  for (std::size_t row = 0; row < size.rows; ++row) {
    const std::string label = row == 0 ? top : row + 1 == size.rows ? bottom : "";
    text += styled(padded_left(label, margin) + " |", Style::faint, view) +
            styled(canvas.row(row), Style::good, view) + "\n";
  }
  const std::size_t columns = canvas.width() / dots_across;
  const std::string indent(margin + 2, ' ');
  text += indent +
          styled(steps_line(brief_number(series.steps.front()), brief_number(series.steps.back()),
                            columns),
                 Style::faint, view) +
          "\n";
  if (const std::string line = marks_line(marks, across, columns); !line.empty())
    text += indent + styled(line, Style::strong, view) + "\n";
  return text;
}

}  // namespace zed::cli
