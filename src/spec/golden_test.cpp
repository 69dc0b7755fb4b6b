// Every file of test/golden/cluster_file against what is written beside it. ZED_UPDATE_GOLDEN=1
// writes what is said now: read the difference before committing it, the messages are the product.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/describe.hpp"
#include "base/json.hpp"
#include "spec/cluster_file.hpp"

namespace zed::spec {
namespace {

namespace fs = std::filesystem;

const fs::path root = fs::path(ZED_SOURCE_DIR) / "test/golden/cluster_file";

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<std::string> files_of(const char* folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(root / folder))
    if (entry.path().extension() == ".exs") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

void expect_golden(const fs::path& path, const std::string& said) {
  if (std::getenv("ZED_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << said;
    return;
  }
  ASSERT_TRUE(fs::exists(path)) << path << " is missing; run with ZED_UPDATE_GOLDEN=1";
  EXPECT_EQ(said, read(path)) << path;
}

class Broken : public testing::TestWithParam<std::string> {};

TEST_P(Broken, SaysWhy) {
  std::string text = read(root / "broken" / (GetParam() + ".exs"));
  Checked checked = check(text);
  EXPECT_FALSE(checked.cluster);
  EXPECT_TRUE(has_errors(checked.diagnostics));
  expect_golden(root / "broken" / (GetParam() + ".expected"),
                render(checked.diagnostics, GetParam() + ".exs", text));
}

TEST_P(Broken, StaysBrokenWhenFormatted) {
  Formatted formatted = format(read(root / "broken" / (GetParam() + ".exs")));
  if (!formatted.text) {
    EXPECT_TRUE(has_errors(formatted.diagnostics));
    return;
  }
  EXPECT_FALSE(check(*formatted.text).cluster);
  EXPECT_EQ(format(*formatted.text).text, formatted.text);
}

class Valid : public testing::TestWithParam<std::string> {};

TEST_P(Valid, MeansWhatIsExpected) {
  std::string text = read(root / "valid" / (GetParam() + ".exs"));
  Checked checked = check(text);
  ASSERT_TRUE(checked.cluster) << render(checked.diagnostics, GetParam() + ".exs", text);
  Value expected = Value::map();
  expected.set("cluster", to_value(*checked.cluster));
  expected.set("diagnostics", to_value(checked.diagnostics));
  expect_golden(root / "valid" / (GetParam() + ".expected"), to_json_pretty(expected));
}

TEST_P(Valid, FormatsToTheSameCluster) {
  std::string text = read(root / "valid" / (GetParam() + ".exs"));
  Formatted formatted = format(text);
  ASSERT_TRUE(formatted.text) << render(formatted.diagnostics, GetParam() + ".exs", text);
  expect_golden(root / "valid" / (GetParam() + ".formatted"), *formatted.text);
  EXPECT_EQ(check(*formatted.text).cluster, check(text).cluster);
  EXPECT_EQ(format(*formatted.text).text, formatted.text) << "formatting twice changes it";
}

/// What stands behind '#', outside strings as far as these files go.
std::size_t comments_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '#'));
}

TEST_P(Valid, KeepsItsComments) {
  std::string text = read(root / "valid" / (GetParam() + ".exs"));
  EXPECT_EQ(comments_of(*format(text).text), comments_of(text));
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  return info.param;
}
INSTANTIATE_TEST_SUITE_P(Golden, Broken, testing::ValuesIn(files_of("broken")), name_of);
INSTANTIATE_TEST_SUITE_P(Golden, Valid, testing::ValuesIn(files_of("valid")), name_of);

TEST(Golden, ThereAreEnough) {
  EXPECT_GE(files_of("broken").size(), 60U);
  EXPECT_GE(files_of("valid").size(), 20U);
}

}  // namespace
}  // namespace zed::spec
