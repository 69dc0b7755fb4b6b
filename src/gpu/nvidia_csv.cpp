#include "gpu/nvidia_csv.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "gpu/nvidia_names.hpp"
#include "gpu/words.hpp"

namespace zed::gpu {
namespace {

const std::string tool = "nvidia-smi --query-gpu";
constexpr std::size_t most_rows = 1024;
constexpr std::size_t longest_row = 4096;

/// Rows, with those that a pipe's reader tore apart joined again.
std::vector<std::string> rows_of(std::string_view text) {
  std::vector<std::string> rows;
  for (std::string_view line : lines_of(text)) {
    std::string_view trimmed = trim(line);
    if (trimmed.empty()) continue;
    if (trimmed.starts_with(',') && !rows.empty() && rows.back().size() < longest_row)
      rows.back() += trimmed;
    else if (rows.size() < most_rows)
      rows.emplace_back(trimmed.substr(0, longest_row));
  }
  return rows;
}

/// The first `count` - 1 fields between separators; the last takes the rest.
std::vector<std::string> fields_of(std::string_view row, std::size_t count,
                                   std::string_view separator) {
  std::vector<std::string> fields;
  while (fields.size() + 1 < count) {
    std::size_t at = row.find(separator);
    if (at == std::string_view::npos) break;
    fields.emplace_back(trim(row.substr(0, at)));
    row.remove_prefix(at + separator.size());
  }
  fields.emplace_back(trim(row));
  return fields;
}

/// nvidia-smi writes ", ": a comma without a space belongs to a value (a locale's decimal comma).
/// Only where that does not give the columns, the bare comma is tried.
std::vector<std::string> row_fields(std::string_view row, std::size_t count) {
  auto fields = fields_of(row, count, ", ");
  return fields.size() == count ? fields : fields_of(row, count, ",");
}

std::optional<std::string> version_text(std::string_view text) {
  bool dotted = text.find('.') != std::string_view::npos &&
                text.find_first_not_of("0123456789.") == std::string_view::npos;
  return dotted ? std::optional<std::string>(text) : std::nullopt;
}

/// Reads one row into a device.
class Row {
public:
  Row(Device& device, bool& doubtful) : device_(device), doubtful_(doubtful) {}

  void field(std::string_view column, const std::string& text) {
    Word word = word_of(text);
    // A lost GPU says so in every column; a name that holds the words is a name.
    if (word.health != GpuHealth::ok)
      device_.diagnose(word.health,
                       word.health == GpuHealth::lost ? "the driver says: GPU is lost"
                                                      : "the driver says: GPU requires reset",
                       tool);
    take(column, text);
  }

private:
  template <class T, class Read> void set(Known<T>& field, const std::string& text, Read&& read) {
    field = known<T>(text, tool, read);
    doubtful_ =
        doubtful_ || (field.state == FieldState::error && word_of(text).state == FieldState::value);
  }

  void take(std::string_view column, const std::string& text) {
    auto whole = [](std::string_view t) { return whole_number(t); };
    if (column == "index") {
      Known<std::int64_t> index;
      set(index, text, whole);
      device_.index = index.get();
    } else if (column == "uuid") {
      set(device_.uuid, text, [](std::string_view t) -> std::optional<std::string> {
        return is_uuid(t) ? std::optional<std::string>(t) : std::nullopt;
      });
    } else if (column == "pci.bus_id") {
      set(device_.bus_id, text, [](std::string_view t) -> std::optional<std::string> {
        std::string bus = normal_bus_id(t);
        return bus.empty() ? std::nullopt : std::optional(bus);
      });
    } else if (column == "utilization.gpu") {
      set(device_.utilization, text, whole);
    } else if (column == "temperature.gpu") {
      set(device_.temperature, text, whole);
    } else if (column == "power.draw") {
      set(device_.power, text, [](std::string_view t) { return decimal_number(t); });
    } else {
      take_memory_or_text(column, text);
    }
  }

  void take_memory_or_text(std::string_view column, const std::string& text) {
    auto memory = [](std::string_view t) { return known_mebibytes(t, tool).get(); };
    if (column == "memory.total") set(device_.total, text, memory);
    if (column == "memory.used") set(device_.used, text, memory);
    if (column == "memory.free") set(device_.free, text, memory);
    if (column == "memory.reserved") set(device_.reserved, text, memory);
    if (column == "driver_version") set(device_.driver, text, version_text);
    if (column == "compute_cap") set(device_.arch, text, version_text);
    if (column == "name") device_.model = known_text(strip_markers(text), tool);
    if (column == "addressing_mode") device_.coherent = lower(text) == "ats";
    if (column == "mig.mode.current") {
      const std::string mode = lower(text);
      device_.mig_enabled = mode == "enabled";
      doubtful_ = doubtful_ || (mode != "enabled" && mode != "disabled" &&
                                word_of(text).state == FieldState::value);
    }
  }

  /// A row shifted by a wrapper leaves "[N/A], " before the name.
  static std::string strip_markers(std::string text) {
    while (text.starts_with('[')) {
      std::size_t end = text.find("], ");
      if (end == std::string::npos) break;
      text.erase(0, end + 3);
    }
    return text;
  }

  Device& device_;
  bool& doubtful_;
};

/// Whether anything in the row can only come from a GPU's row.
bool is_row(const Device& device) {
  return device.total.state == FieldState::value || device.uuid || device.bus_id || device.index ||
         device.health != GpuHealth::ok || device.model;
}

}  // namespace

std::vector<std::string> gpu_columns() {
  return {"addressing_mode",  "index",       "uuid",           "pci.bus_id",
          "memory.total",     "memory.used", "memory.free",    "utilization.gpu",
          "temperature.gpu",  "power.draw",  "driver_version", "compute_cap",
          "mig.mode.current", "name"};
}

CsvAnswer read_gpu_csv(std::string_view text, const std::vector<std::string>& columns) {
  CsvAnswer answer;
  for (const std::string& row : rows_of(text)) {
    auto fields = row_fields(row, columns.size());
    if (fields.size() != columns.size()) {
      ++answer.rejected;
      continue;
    }
    Device device;
    device.vendor = GpuVendor::nvidia;
    Row reader(device, answer.doubtful);
    for (std::size_t i = 0; i < columns.size(); ++i)
      reader.field(columns[i], fields[i]);
    if (!is_row(device)) {
      ++answer.rejected;
      continue;
    }
    if (!device.index) device.index = std::ssize(answer.devices);
    device.driver_seen = true;
    settle_nvidia_memory(device, tool);
    answer.devices.push_back(std::move(device));
  }
  return answer;
}

std::vector<GpuOfProcess> read_apps_csv(std::string_view text) {
  std::vector<GpuOfProcess> processes;
  for (const std::string& row : rows_of(text)) {
    // Two from the left, one from the right; what is between is the name.
    auto left = fields_of(row, 3, ",");
    if (left.size() != 3) continue;
    std::size_t last = left[2].rfind(',');
    auto pid = whole_number(left[1]);
    if (last == std::string::npos || !pid || *pid < 0) continue;
    if (!is_uuid(left[0])) continue;
    GpuOfProcess found{left[0],
                       {*pid, known_text(left[2].substr(0, last), tool).value, std::nullopt}};
    found.process.used = known_mebibytes(left[2].substr(last + 1), tool).get();
    processes.push_back(std::move(found));
  }
  return processes;
}

std::string unknown_column(std::string_view text) {
  std::size_t begin = text.find("Field \"");
  if (begin == std::string_view::npos) return {};
  begin += 7;
  std::size_t end = text.find('"', begin);
  bool complains = text.find("is not a valid field", begin) != std::string_view::npos;
  if (end == std::string_view::npos || !complains) return {};
  return std::string(text.substr(begin, std::min<std::size_t>(end - begin, 64)));
}

}  // namespace zed::gpu
