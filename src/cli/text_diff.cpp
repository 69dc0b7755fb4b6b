#include "cli/text_diff.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/text.hpp"

namespace zed::cli {
namespace {

/// Myers' algorithm takes time and memory by the square of this.
constexpr int most_edits = 1000;
constexpr std::size_t context_lines = 3;

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

enum class Kind { both, removed, added };
struct Edit {
  Kind kind = Kind::both;
  std::string_view line;
};

/// The shortest edit script (Myers 1986, "An O(ND) Difference Algorithm and Its Variations"), or
/// nothing if it is longer than most_edits.
class Myers {
public:
  Myers(const Lines& a, const Lines& b) : a_(a), b_(b) {}

  bool run(std::vector<Edit>& script) {
    const int most = static_cast<int>(
        std::min<std::size_t>(a_.size() + b_.size(), static_cast<std::size_t>(most_edits)));
    std::vector<int> reach(2 * static_cast<std::size_t>(most) + 3, 0);
    for (int d = 0; d <= most; ++d) {
      trace_.push_back(reach);
      for (int k = -d; k <= d; k += 2) {
        if (advance(reach, d, k, most)) {
          walk_back(d, most, script);
          return true;
        }
      }
    }
    return false;
  }

private:
  static std::size_t slot(int k, int most) {
    return static_cast<std::size_t>(std::ptrdiff_t{k} + most + 1);
  }

  static bool goes_down(const std::vector<int>& reach, int d, int k, int most) {
    return k == -d || (k != d && reach[slot(k - 1, most)] < reach[slot(k + 1, most)]);
  }

  bool advance(std::vector<int>& reach, int d, int k, int most) const {
    int x = goes_down(reach, d, k, most) ? reach[slot(k + 1, most)] : reach[slot(k - 1, most)] + 1;
    int y = x - k;
    while (x < static_cast<int>(a_.size()) && y < static_cast<int>(b_.size()) && y >= 0 &&
           a_[static_cast<std::size_t>(x)] == b_[static_cast<std::size_t>(y)]) {
      ++x;
      ++y;
    }
    reach[slot(k, most)] = x;
    return x >= static_cast<int>(a_.size()) && y >= static_cast<int>(b_.size());
  }

  void walk_back(int d, int most, std::vector<Edit>& script) const {
    int x = static_cast<int>(a_.size());
    int y = static_cast<int>(b_.size());
    for (; d >= 0; --d) {
      const std::vector<int>& reach = trace_[static_cast<std::size_t>(d)];
      const int k = x - y;
      const int before = d == 0 ? 0 : goes_down(reach, d, k, most) ? k + 1 : k - 1;
      const int before_x = d == 0 ? 0 : reach[slot(before, most)];
      const int before_y = d == 0 ? 0 : before_x - before;
      while (x > before_x && y > before_y) {
        --x;
        --y;
        script.push_back({Kind::both, a_[static_cast<std::size_t>(x)]});
      }
      if (d == 0) break;
      if (x == before_x)
        script.push_back({Kind::added, b_[static_cast<std::size_t>(--y)]});
      else
        script.push_back({Kind::removed, a_[static_cast<std::size_t>(--x)]});
    }
    std::reverse(script.begin(), script.end());
  }

  const Lines& a_;
  const Lines& b_;
  std::vector<std::vector<int>> trace_;
};

std::string line_of(const Edit& edit, const View& view) {
  const std::string text = printable(edit.line);
  switch (edit.kind) {
  case Kind::both: return " " + text + "\n";
  case Kind::removed: return styled("-" + text, Style::bad, view) + "\n";
  case Kind::added: return styled("+" + text, Style::good, view) + "\n";
  }
  return "";
}

/// Lines [begin, end) of the script, with the numbers that they have in both texts.
std::string hunk(const std::vector<Edit>& script, std::size_t begin, std::size_t end,
                 const View& view) {
  std::size_t line_a = 1;
  std::size_t line_b = 1;
  for (std::size_t i = 0; i < begin; ++i) {
    line_a += script[i].kind != Kind::added ? 1 : 0;
    line_b += script[i].kind != Kind::removed ? 1 : 0;
  }
  std::size_t count_a = 0;
  std::size_t count_b = 0;
  std::string text;
  for (std::size_t i = begin; i < end; ++i) {
    count_a += script[i].kind != Kind::added ? 1 : 0;
    count_b += script[i].kind != Kind::removed ? 1 : 0;
    text += line_of(script[i], view);
  }
  // Of no lines at all the one before is named: patch takes "-1,0" for a file that is there.
  const auto range = [](std::size_t line, std::size_t count) {
    return std::to_string(count == 0 ? line - 1 : line) + "," + std::to_string(count);
  };
  const std::string head = "@@ -" + range(line_a, count_a) + " +" + range(line_b, count_b) + " @@";
  return styled(head, Style::faint, view) + "\n" + text;
}

}  // namespace

bool is_text(std::string_view bytes) {
  return bytes.find('\0') == std::string_view::npos && is_valid_utf8(bytes);
}

std::string unified_diff(std::string_view a, std::string_view b, const View& view) {
  if (a == b) return "";
  const Lines lines_a = lines_of(a);
  const Lines lines_b = lines_of(b);
  std::vector<Edit> script;
  if (!Myers(lines_a, lines_b).run(script)) return "(more than a thousand lines differ)\n";
  std::string text;
  for (std::size_t i = 0; i < script.size();) {
    if (script[i].kind == Kind::both) {
      ++i;
      continue;
    }
    const std::size_t begin = i - std::min(i, context_lines);
    std::size_t last = i;  // the last change of this hunk
    for (std::size_t j = i; j < script.size() && j <= last + 2 * context_lines; ++j)
      if (script[j].kind != Kind::both) last = j;
    const std::size_t end = std::min(script.size(), last + 1 + context_lines);
    text += hunk(script, begin, end, view);
    i = last + 1;
  }
  return text.empty() ? "(only the line break at the end differs)\n" : text;
}

}  // namespace zed::cli
