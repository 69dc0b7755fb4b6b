#include "cli/csv.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/text.hpp"

namespace zed::cli {
namespace {

constexpr int deepest = 4;
constexpr std::size_t most_columns = 500;

using Row = std::vector<std::pair<std::string, std::string>>;

std::string text_of(const Value& value) {
  if (value.is_null()) return "";
  if (const std::string* text = value.as_text()) return *text;
  // JSON's own form of 0.1 is 1E-1, which not every spreadsheet takes for a number.
  if (const double* number = value.as_double()) return fmt::format("{}", *number);
  return to_json(value);
}

std::string list_text(const Value::List& list) {
  std::vector<std::string> words;
  for (const Value& entry : list) {
    if (entry.as_map() != nullptr || entry.as_list() != nullptr) return std::to_string(list.size());
    words.push_back(text_of(entry));
  }
  return join(words, ";");
}

void flatten(const std::string& name, const Value& value, int depth, Row& row) {
  if (const auto* list = value.as_list()) {
    row.emplace_back(name, list_text(*list));
  } else if (const auto* map = value.as_map(); map != nullptr && depth < deepest) {
    for (const auto& member : *map)
      flatten(name.empty() ? member.key : name + "." + member.key, member.value, depth + 1, row);
  } else {
    row.emplace_back(name, text_of(value));
  }
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (char c : text)
    result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

const Value::List* rows_of(const Value& reply) {
  if (reply.as_map() == nullptr) return nullptr;
  for (const auto& member : *reply.as_map())
    if (const auto* list = member.value.as_list(); list != nullptr)
      if (list->empty() || list->front().as_map() != nullptr) return list;
  return nullptr;
}

std::string line_of(const std::vector<std::string>& cells) {
  std::vector<std::string> quoted_cells;
  for (const std::string& cell : cells)
    quoted_cells.push_back(quoted(cell));
  return join(quoted_cells, ",") + "\n";
}

std::string table_of(const std::vector<Row>& rows) {
  std::vector<std::string> columns;
  for (const Row& row : rows)
    for (const auto& cell : row)
      if (columns.size() < most_columns &&
          std::find(columns.begin(), columns.end(), cell.first) == columns.end())
        columns.push_back(cell.first);
  std::string text = line_of(columns);
  for (const Row& row : rows) {
    std::map<std::string, std::string> cells(row.begin(), row.end());
    std::vector<std::string> ordered;
    for (const std::string& column : columns)
      ordered.push_back(cells[column]);
    text += line_of(ordered);
  }
  return columns.empty() ? "" : text;
}

}  // namespace

std::string to_csv(const Value& reply) {
  const auto* list = rows_of(reply);
  if (list == nullptr) return to_csv_row(reply);
  std::vector<Row> rows;
  for (const Value& entry : *list)
    flatten("", entry, 0, rows.emplace_back());
  return table_of(rows);
}

std::string to_csv_row(const Value& reply) {
  std::vector<Row> rows(1);
  flatten("", reply, 0, rows.front());
  return table_of(rows);
}

}  // namespace zed::cli
