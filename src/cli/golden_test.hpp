#pragma once
// Replies as people see them, against test/golden/cli/*.txt. ZED_UPDATE_GOLDEN=1 writes what is
// said now: read the difference before committing.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "cli/render.hpp"

namespace zed::cli {

namespace fs = std::filesystem;

constexpr std::int64_t noon = 1'713'009'600'000;  // 2024-04-13T12:00:00Z

inline WallTime before(Millis passed) {
  return {noon - passed.value};
}

inline View plain(std::size_t width = 0) {
  View view;
  view.width = width;
  view.now = {noon};
  return view;
}
inline View wide() {
  View view = plain();
  view.wide = true;
  return view;
}
inline View coloured() {
  View view = plain(100);
  view.colour = true;
  return view;
}

inline void expect_golden(const std::string& name, const std::string& said) {
  const fs::path path = fs::path(ZED_SOURCE_DIR) / "test/golden/cli" / (name + ".txt");
  if (std::getenv("ZED_UPDATE_GOLDEN") != nullptr) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << said;
    return;
  }
  ASSERT_TRUE(fs::exists(path)) << path << " is missing; run with ZED_UPDATE_GOLDEN=1";
  std::ifstream in(path, std::ios::binary);
  const std::string wanted{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(said, wanted) << path;
}

/// The longest line, as a terminal counts.
inline std::size_t widest(const std::string& text) {
  std::size_t widest = 0;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    widest = std::max(widest, display_width(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  return widest;
}

template <class Reply> void expect_all_forms(const std::string& name, const Reply& reply) {
  expect_golden(name, render(reply, plain()));
  expect_golden(name + "_80", render(reply, plain(80)));
  expect_golden(name + "_wide", render(reply, wide()));
  expect_golden(name + "_colour", render(reply, coloured()));
}

}  // namespace zed::cli
