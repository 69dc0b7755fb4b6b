#include "base/log.hpp"

#include <unistd.h>

#include <array>

#include "base/clock.hpp"
#include "base/text.hpp"

namespace zed {
namespace {

std::string program_name = "zed";
LogLevel lowest_level = LogLevel::info;

constexpr std::array<std::string_view, 4> level_names{"debug", "info", "warning", "error"};

}  // namespace

void configure_log(std::string program, LogLevel lowest) {
  program_name = std::move(program);
  lowest_level = lowest;
}

void log(LogLevel level, std::string_view text) {
  if (level < lowest_level) return;
  std::string line = to_iso8601(wall_now());
  line += ' ';
  line += level_names[static_cast<std::size_t>(level)];
  line += ' ' + program_name + ": ";
  // A line break in a message would forge the next line.
  for (char c : text)
    line += (c == '\n' || c == '\r') ? ' ' : c;
  line += '\n';
  // One write keeps lines of several processes whole; a full pipe loses the line, not the program.
  [[maybe_unused]] auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace zed
