#include <gtest/gtest.h>

#include "model/safetensors.hpp"
#include "model/testing.hpp"

namespace zed::model {
namespace {

using testing::HeadSource;
using testing::safetensors_head;

std::string error_of(const std::string& json, std::uint64_t data) {
  const std::string head = safetensors_head(json);
  HeadSource source(head, head.size() + data);
  auto file = read_safetensors(source);
  return file ? "" : file.error().message;
}

TEST(Safetensors, tensors_and_metadata) {
  const std::string head =
      safetensors_head(R"({"__metadata__":{"format":"pt","deep":{"n":[1,{}]}},)"
                       R"("b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},)"
                       R"("a\u0041":{"data_offsets":[0,8],"shape":[],"dtype":"F64"}}   )");
  HeadSource source(head, head.size() + 20);
  auto file = read_safetensors(source);
  ASSERT_TRUE(file) << file.error().describe();
  ASSERT_EQ(file->tensors.size(), 2u);
  EXPECT_EQ(file->tensors[0].name, "aA");
  EXPECT_EQ(file->tensors[0].elements, 1u);
  EXPECT_EQ(file->tensors[1].elements, 6u);
  EXPECT_EQ(file->data_bytes, 20u);
}

TEST(Safetensors, places) {
  const auto two = [](const char* first, const char* second, std::uint64_t data) {
    return error_of(std::string(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)") + first +
                        R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}",
                    data);
  };
  EXPECT_EQ(two("[0,4]", "[4,8]", 8), "");
  EXPECT_NE(two("[0,4]", "[2,6]", 8).find("overlaps"), std::string::npos);
  EXPECT_NE(two("[0,4]", "[0,4]", 4).find("overlaps"), std::string::npos);
  EXPECT_NE(two("[0,4]", "[6,10]", 10).find("hole"), std::string::npos);
  EXPECT_NE(two("[0,4]", "[4,8]", 9).find("the file has 9"), std::string::npos);
  EXPECT_NE(two("[0,4]", "[4,8]", 3).find("the file has 3"), std::string::npos);
  EXPECT_NE(two("[0,5]", "[5,9]", 9).find("which its shape and type do not take"),
            std::string::npos);
  EXPECT_NE(two("[4,0]", "[4,8]", 8).find("malformed"), std::string::npos);
  EXPECT_NE(two("[0,18446744073709551615]", "[4,8]", 8), "");
  EXPECT_NE(two("[0]", "[4,8]", 8).find("malformed"), std::string::npos);
  EXPECT_NE(two("[0,4,8]", "[4,8]", 8).find("malformed"), std::string::npos);
}

TEST(Safetensors, what_is_no_header) {
  for (const char* wrong :
       {"", "[]", "1", "{", "{\"a\":1}", "{\"a\":{}}", "{\"a\":{\"dtype\":\"F32\"}}",
        "{\"a\":{\"dtype\":[\"F32\"],\"shape\":[1],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[[1]],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":\"F99\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":{}}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}} x",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4294967296],"
        "\"data_offsets\":[0,4]}}"})
    EXPECT_NE(error_of(wrong, 4), "") << wrong;
  EXPECT_EQ(error_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                     "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
                     8),
            "the tensor \"a\" is there twice");
}

TEST(Safetensors, hostile_lengths) {
  for (std::uint64_t length :
       {std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{100'000'001}}) {
    std::string head;
    for (std::size_t i = 0; i < 8; ++i)
      head.push_back(static_cast<char>(length >> (8 * i)));
    HeadSource source(head, std::uint64_t{1} << 62);
    auto file = read_safetensors(source);
    ASSERT_FALSE(file);
    EXPECT_NE(file.error().message.find("at most 100000000"), std::string::npos);
  }
  HeadSource cut(safetensors_head("{}").substr(0, 9));
  EXPECT_FALSE(read_safetensors(cut));
  std::string deep(200'000, '[');
  EXPECT_NE(error_of(deep, 0), "");
}

TEST(SafeIndex, shards_and_paths) {
  const auto read = [](const std::string& json) {
    HeadSource source(json);
    return read_safe_index(source);
  };
  auto index = read(R"({"metadata":{"total_size":8,"weight_map":"no"},"weight_map":)"
                    R"({"a":"x.safetensors","b":"y.safetensors","c":"x.safetensors"}})");
  ASSERT_TRUE(index) << index.error().describe();
  EXPECT_EQ(index->shards,
            (std::map<std::string, std::uint64_t>{{"x.safetensors", 2}, {"y.safetensors", 1}}));
  for (const char* wrong :
       {"{}", "{\"weight_map\":{}}", "{\"weight_map\":{\"a\":\"../x\"}}",
        "{\"weight_map\":{\"a\":\"/etc/x\"}}", "{\"weight_map\":{\"a\":\"\"}}", "[", ""})
    EXPECT_FALSE(read(wrong)) << wrong;
}

}  // namespace
}  // namespace zed::model
