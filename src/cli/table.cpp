#include "cli/table.hpp"

#include <algorithm>

namespace zed::cli {
namespace {

constexpr std::size_t gap = 2;
/// A column is cut to this much before another is left out…
constexpr std::size_t comfortable = 16;
/// …and to this much when nothing is left to leave out.
constexpr std::size_t narrowest = 8;
/// The width of a column that is not shown.
constexpr std::size_t hidden = 0;

std::size_t total(const std::vector<std::size_t>& widths) {
  std::size_t sum = 0;
  for (std::size_t width : widths)
    if (width != hidden) sum += width + gap;
  return sum == 0 ? 0 : sum - gap;
}

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::size_t used = display_width(text);
  const std::string space(width > used ? width - used : 0, ' ');
  return align == Align::right ? space + text : text + space;
}

}  // namespace

void Table::add(std::vector<Cell> row) {
  row.resize(columns_.size());
  for (Cell& cell : row)
    cell.text = printable(cell.text);
  rows_.push_back(std::move(row));
}

void Table::keep(std::size_t count) {
  if (count >= columns_.size()) return;
  columns_.erase(columns_.begin() + static_cast<std::ptrdiff_t>(count), columns_.end());
  for (auto& row : rows_)
    row.resize(columns_.size());
}

std::vector<std::size_t> Table::natural_widths() const {
  std::vector<std::size_t> widths(columns_.size(), hidden);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    for (const auto& row : rows_)
      widths[i] = std::max(widths[i], display_width(row[i].text));
    if (widths[i] != hidden) widths[i] = std::max(widths[i], display_width(columns_[i].header));
  }
  return widths;
}

std::vector<std::size_t> Table::fitted_widths(const View& view) const {
  std::vector<std::size_t> widths = natural_widths();
  if (view.width == 0) return widths;
  while (total(widths) > view.width) {
    if (shrink_widest(widths, comfortable)) continue;
    if (hide_last_optional(widths)) continue;
    if (!shrink_widest(widths, narrowest)) return widths;
  }
  return widths;
}

std::size_t Table::left_out(const View& view) const {
  const std::vector<std::size_t> natural = natural_widths();
  const std::vector<std::size_t> fitted = fitted_widths(view);
  std::size_t count = 0;
  for (std::size_t i = 0; i < fitted.size(); ++i)
    count += fitted[i] == hidden && natural[i] != hidden ? 1 : 0;
  return count;
}

bool Table::shrink_widest(std::vector<std::size_t>& widths, std::size_t floor) const {
  std::size_t widest = widths.size();
  for (std::size_t i = 0; i < widths.size(); ++i)
    if (columns_[i].shrinks && widths[i] > floor &&
        (widest == widths.size() || widths[i] > widths[widest]))
      widest = i;
  if (widest == widths.size()) return false;
  --widths[widest];
  return true;
}

bool Table::hide_last_optional(std::vector<std::size_t>& widths) const {
  std::size_t last = widths.size();
  for (std::size_t i = 0; i < widths.size(); ++i)
    if (columns_[i].optional && widths[i] != hidden) last = i;
  if (last == widths.size()) return false;
  // With one column less the others have their room back.
  std::vector<std::size_t> roomy = natural_widths();
  for (std::size_t i = 0; i < widths.size(); ++i)
    if (widths[i] == hidden || i == last) roomy[i] = hidden;
  widths = std::move(roomy);
  return true;
}

std::string Table::render(const View& view) const {
  const std::vector<std::size_t> widths = fitted_widths(view);
  auto line_of = [&](const std::vector<Cell>& cells) {
    std::string line;
    std::size_t pending = 0;  // spaces that are due only if something follows
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (widths[i] == hidden) continue;
      const std::string text =
          padded(fitted(cells[i].text, widths[i]), widths[i], columns_[i].align);
      const std::size_t end = text.find_last_not_of(' ');
      const std::size_t kept = end == std::string::npos ? 0 : end + 1;
      if (kept > 0) {
        line += std::string(pending, ' ') + styled(text.substr(0, kept), cells[i].style, view);
        pending = 0;
      }
      pending += text.size() - kept + gap;
    }
    return line + "\n";
  };
  std::vector<Cell> header;
  for (const Column& column : columns_)
    header.emplace_back(column.header, Style::strong);
  std::string text = line_of(header);
  for (const auto& row : rows_)
    text += line_of(row);
  return text;
}

}  // namespace zed::cli
