#pragma once
// Inside the room: what the process tables of macOS and FreeBSD share.

#include <string>
#include <string_view>
#include <vector>

namespace zed::proc {

/// Words that NUL ends, one behind the other; empty ones and one that was cut off are left out.
inline std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t end; (end = text.find('\0')) != std::string_view::npos;) {
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return words;
}

}  // namespace zed::proc
