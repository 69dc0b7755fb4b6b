#pragma once
// A curve in a terminal: dots of braille, two by four in each cell. Pure.

#include <cstddef>
#include <string>
#include <vector>

#include "cli/view.hpp"
#include "core/question.hpp"

namespace zed::cli {

struct PlotMark {
  double at = 0;  ///< on the axis of the steps
  std::string name;
};

struct PlotSize {
  std::size_t columns = 72;  ///< in all, 20 to 400
  std::size_t rows = 12;     ///< of the curve, 3 to 100
};

/// The series with its scale left of it and its steps below; below those a '^' for each mark.
/// Empty for a series without finite values.
std::string plot(const MetricSeries& series, const std::vector<PlotMark>& marks, PlotSize size,
                 const View& view);

/// Four significant digits, without a trail of zeroes: "0.1022", "1.5e-07", "12000".
std::string brief_number(double number);

}  // namespace zed::cli
