#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/json.hpp"
#include "base/text.hpp"
#include "store/dir/disk.hpp"
#include "store/look/look.hpp"
#include "store/look/root.hpp"

namespace zed::store {
namespace {

constexpr std::int64_t most_bytes = 16 * 1024 * 1024;
constexpr std::size_t most_series = 64;
constexpr std::size_t most_other_names = 500;
constexpr std::size_t longest_name = 200;
/// Of all series together: two numbers of nine bytes each in a message of 256 KiB.
constexpr std::size_t most_points_in_all = 10'000;

struct Point {
  double step = 0;
  double value = 0;
};

struct Collected {
  std::vector<Point> points;
};

std::optional<double> number_of(const Value& value) {
  if (const auto* d = value.as_double()) return *d;
  if (const auto* n = value.as_int()) return static_cast<double>(*n);
  const std::string* text = value.as_text();
  if (text == nullptr) return std::nullopt;
  if (*text == "NaN") return std::nan("");
  if (*text == "Infinity") return HUGE_VAL;
  if (*text == "-Infinity") return -HUGE_VAL;
  return std::nullopt;
}

class Reader {
public:
  explicit Reader(const ReadMetrics& question)
      : wanted_(question.names.begin(), question.names.end()) {}

  void text(std::string_view text) {
    for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      line(text.substr(0, end));
      text.remove_prefix(end + 1);
    }
  }

  std::map<std::string, Collected>& series() { return series_; }
  std::set<std::string>& others() { return others_; }

private:
  void line(std::string_view line) {
    auto record = parse_json(line);
    if (!record || record->as_map() == nullptr) return;
    const Value* step = record->find("s");
    if (step == nullptr) step = record->find("epoch");
    const auto at = step != nullptr ? number_of(*step) : std::nullopt;
    for (const auto& member : *record->as_map()) {
      if (member.key == "s" || member.key == "t") continue;
      if (auto value = number_of(member.value)) add(member.key, at, *value);
    }
  }

  void add(const std::string& name, std::optional<double> step, double value) {
    const bool is_wanted = wanted_.empty() ? name != "epoch" : wanted_.contains(name);
    const bool has_room = series_.contains(name) || series_.size() < most_series;
    if (!is_wanted || !has_room || name.size() > longest_name) {
      if (others_.size() < most_other_names && name.size() <= longest_name) others_.insert(name);
      return;
    }
    auto& points = series_[name].points;
    points.push_back(
        {step && std::isfinite(*step) ? *step : static_cast<double>(points.size()), value});
  }

  std::set<std::string> wanted_;
  std::map<std::string, Collected> series_;
  std::set<std::string> others_;
};

/// By step; of one that comes twice the later line counts.
std::vector<Point> in_order(std::vector<Point> points) {
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return a.step < b.step; });
  std::vector<Point> unique;
  unique.reserve(points.size());
  for (const Point& point : points) {
    if (!unique.empty() && unique.back().step == point.step)
      unique.back() = point;
    else
      unique.push_back(point);
  }
  return unique;
}

MetricSeries series_of(const std::string& name, std::vector<Point> collected, std::size_t most) {
  MetricSeries series;
  series.name = name;
  std::vector<double> steps;
  std::vector<double> values;
  for (const Point& point : in_order(std::move(collected))) {
    ++series.count;
    if (std::isfinite(point.value)) {
      steps.push_back(point.step);
      values.push_back(point.value);
      continue;
    }
    if (++series.not_finite == 1) series.first_not_finite = point.step;
  }
  for (std::size_t index : thinned(values, most)) {
    series.steps.push_back(steps[index]);
    series.values.push_back(values[index]);
  }
  return series;
}

/// "000001.jsonl" and its like, newest first.
Result<std::vector<std::string>> metrics_files(int folder) {
  std::vector<std::string> names;
  ZED_CHECK(disk::for_each_name(folder, [&names](const std::string& name) -> Status {
    const std::size_t digits = name.find_first_not_of("0123456789");
    if (digits >= 6 && digits != std::string::npos && name.substr(digits) == ".jsonl" &&
        names.size() < 100'000)
      names.push_back(name);
    return {};
  }));
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a > b;
  });
  return names;
}

/// The last `limit` bytes of a file, from the beginning of a line on.
Result<std::string> tail_of(int file, std::int64_t size, std::int64_t limit) {
  const std::int64_t skipped = std::max<std::int64_t>(0, size - limit);
  std::string text(static_cast<std::size_t>(size - skipped), '\0');
  ZED_CHECK(disk::read_at(file, static_cast<std::uint64_t>(skipped),
                          std::as_writable_bytes(std::span(text.data(), text.size()))));
  if (skipped > 0) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
  return text;
}

/// Whether all was read.
Result<bool> read_files(int folder, Reader& reader) {
  ZED_TRY(auto names, metrics_files(folder));
  std::vector<std::string> texts;
  std::int64_t left = most_bytes;
  bool complete = true;
  for (const std::string& name : names) {
    if (left <= 0) {
      complete = false;
      break;
    }
    auto file = disk::open_file(folder, name);
    if (!file) continue;  // no regular file: no metrics
    ZED_TRY(struct stat status, disk::status_of(file->get()));
    ZED_TRY(std::string text, tail_of(file->get(), status.st_size, left));
    complete = complete && status.st_size <= left;
    left -= status.st_size;
    texts.push_back(std::move(text));
  }
  for (auto text = texts.rbegin(); text != texts.rend(); ++text)
    reader.text(*text);
  return complete;
}

}  // namespace

std::vector<std::size_t> thinned(const std::vector<double>& values, std::size_t most) {
  std::vector<std::size_t> kept;
  if (values.size() <= most) {
    for (std::size_t i = 0; i < values.size(); ++i)
      kept.push_back(i);
    return kept;
  }
  const std::size_t inner = values.size() - 2;
  const std::size_t buckets = (most - 2) / 2;
  kept.push_back(0);
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    const std::size_t begin = 1 + inner * bucket / buckets;
    const std::size_t end = 1 + inner * (bucket + 1) / buckets;
    if (begin == end) continue;
    std::size_t lowest = begin;
    std::size_t highest = begin;
    for (std::size_t i = begin; i < end; ++i) {
      if (values[i] < values[lowest]) lowest = i;
      if (values[i] > values[highest]) highest = i;
    }
    kept.push_back(std::min(lowest, highest));
    if (lowest != highest) kept.push_back(std::max(lowest, highest));
  }
  kept.push_back(values.size() - 1);
  return kept;
}

Result<MetricsPage> read_metrics(env::Store& store, const ReadMetrics& question) {
  if (question.most_points < 2 || question.most_points > 10'000)
    return fail(ErrorCode::invalid, "a series has from 2 to 10000 points");
  ZED_TRY(net::Fd root, open_root(store, question.dataset, question.snapshot));
  MetricsPage page;
  auto folder = disk::open_folder(root.get(), "metrics");
  if (!folder && folder.error().code == ErrorCode::not_found) return page;
  if (!folder) return fail(std::move(folder).error());
  Reader reader(question);
  ZED_TRY(page.complete, read_files(folder->get(), reader));
  const std::size_t each =
      std::clamp<std::size_t>(most_points_in_all / std::max<std::size_t>(1, reader.series().size()),
                              2, static_cast<std::size_t>(question.most_points));
  for (auto& [name, collected] : reader.series())
    page.series.push_back(series_of(name, std::move(collected.points), each));
  page.other_names.assign(reader.others().begin(), reader.others().end());
  return page;
}

}  // namespace zed::store
