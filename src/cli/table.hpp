#pragma once
// Tables that fit the terminal. Pure.

#include <string>
#include <vector>

#include "cli/view.hpp"

namespace zed::cli {

enum class Align { left, right };

struct Column {
  std::string header;
  Align align = Align::left;
  bool shrinks = false;   ///< may be cut with "…" down to 8 columns
  bool optional = false;  ///< left out if the rest still does not fit, the last one first
};

struct Cell {
  std::string text;  ///< any bytes: made printable here
  Style style = Style::plain;
  Cell() = default;
  Cell(std::string t, Style s = Style::plain) : text(std::move(t)), style(s) {}
  Cell(const char* t) : text(t) {}
};

class Table {
public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// As many cells as columns.
  void add(std::vector<Cell> row);
  /// Leaves out every column after the first `count`.
  void keep(std::size_t count);
  /// How many columns `render` leaves out for want of room, though they are not empty.
  std::size_t left_out(const View& view) const;
  bool empty() const { return rows_.empty(); }
  /// The header and all rows, no trailing spaces, each line ended. A column that is empty in all
  /// rows is left out.
  std::string render(const View& view) const;

private:
  std::vector<std::size_t> natural_widths() const;
  std::vector<std::size_t> fitted_widths(const View& view) const;
  bool shrink_widest(std::vector<std::size_t>& widths, std::size_t floor) const;
  bool hide_last_optional(std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace zed::cli
