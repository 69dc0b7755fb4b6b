#pragma once
// One line an event on standard error: time, level, who, what. Pure rooms never log.

#include <string>
#include <string_view>

namespace zed {

enum class LogLevel { debug, info, warning, error };

/// Sets the lowest level written and the name of the program in each line. Not thread-safe: call it
/// once in main().
void configure_log(std::string program, LogLevel lowest);

void log(LogLevel level, std::string_view text);
inline void log_debug(std::string_view text) {
  log(LogLevel::debug, text);
}
inline void log_info(std::string_view text) {
  log(LogLevel::info, text);
}
inline void log_warning(std::string_view text) {
  log(LogLevel::warning, text);
}
inline void log_error(std::string_view text) {
  log(LogLevel::error, text);
}

}  // namespace zed
