#include <algorithm>

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "model/gguf.hpp"
#include "model/testing.hpp"

namespace zed::model {
namespace {

using testing::GgufWriter;
using testing::HeadSource;

Result<Gguf> read(const GgufWriter& writer) {
  HeadSource source(writer.head(), writer.size());
  return read_gguf(source);
}

std::string error_of(std::string head, std::uint64_t size = 0) {
  HeadSource source(head, std::max<std::uint64_t>(size, head.size()));
  auto file = read_gguf(source);
  return file ? "" : file.error().message;
}

GgufWriter small(std::uint32_t version = 3, bool big = false) {
  GgufWriter writer(version, big);
  writer.text("general.architecture", "llama")
      .u32("llama.block_count", 2)
      .flag("llama.attention.causal", true)
      .array("llama.attention.head_count_kv", {8, -1})
      .texts("tokenizer.ggml.tokens", 1000)
      .tensor("a", "q4_k", {256, 4})
      .tensor("b", "f32", {3});
  return writer;
}

TEST(Gguf, every_version_and_byte_order) {
  for (std::uint32_t version = 1; version <= 3; ++version)
    for (bool big : {false, true}) {
      auto file = read(small(version, big));
      ASSERT_TRUE(file) << version << big << file.error().describe();
      EXPECT_EQ(file->version, version);
      EXPECT_EQ(file->big_endian, big);
      EXPECT_EQ(file->text("general.architecture"), "llama");
      EXPECT_EQ(file->number("llama.block_count"), 2);
      EXPECT_EQ(file->array_length("tokenizer.ggml.tokens"), 1000u);
      const auto& heads = std::get<GgufArray>(file->metadata.at("llama.attention.head_count_kv"));
      EXPECT_EQ(heads.numbers, (std::vector<std::int64_t>{8, -1}));
      ASSERT_EQ(file->tensors.size(), 2u);
      EXPECT_EQ(file->tensors[0].bytes, 4 * 144u);
      EXPECT_EQ(file->tensor_bytes(), 4 * 144u + 12);
    }
}

TEST(Gguf, every_type_takes_its_blocks) {
  for (const GgmlType& type : ggml_types()) {
    GgufWriter writer;
    writer.tensor("t", type.name, {type.block * 2ULL, 3});
    auto file = read(writer);
    ASSERT_TRUE(file) << type.name;
    EXPECT_EQ(file->tensor_bytes(), 6ULL * type.bytes) << type.name;
    EXPECT_EQ(file->tensors[0].elements, 6ULL * type.block) << type.name;
  }
}

TEST(Gguf, cut_off_anywhere_is_an_error) {
  const GgufWriter writer = small();
  const std::string head = writer.head();
  for (std::size_t size = 0; size < head.size(); ++size)
    EXPECT_NE(error_of(head.substr(0, size)), "") << size;
  EXPECT_EQ(error_of(head, writer.size()), "");
  EXPECT_NE(error_of(head, writer.size() - 64).find("which has only"), std::string::npos);
}

TEST(Gguf, hostile_counts_and_lengths) {
  GgufWriter many = small();
  many.claimed_tensors = 1'000'000'000;
  EXPECT_EQ(error_of(many.head(), std::uint64_t{1} << 50),
            "it claims 1000000000 tensors; at most 131072 are read");
  many.claimed_tensors = 100'000;
  EXPECT_NE(error_of(many.head()).find("more than fit in"), std::string::npos);
  many.claimed_tensors = std::uint64_t{1} << 63;
  EXPECT_NE(error_of(many.head()), "");
  GgufWriter keys = small();
  keys.claimed_keys = std::uint64_t{1} << 63;
  EXPECT_NE(error_of(keys.head()).find("metadata keys; at most"), std::string::npos);
  // A text, and an array, of 2^63 bytes.
  const std::string start = GgufWriter().head().substr(0, 8) + std::string(8, '\0') + '\1' +
                            std::string(7, '\0') + '\1' + std::string(7, '\0') + "k";
  const std::string huge = std::string(7, '\0') + '\x80';
  const auto type = [](char t) { return std::string{t, 0, 0, 0}; };
  EXPECT_NE(error_of(start + type(8) + huge).find("beyond the end"), std::string::npos);
  for (char element : {0, 4, 8, 9, 10})
    EXPECT_NE(error_of(start + type(9) + type(element) + huge, 1 << 20), "") << int(element);
}

TEST(Gguf, long_arrays_cost_no_memory_and_no_reading) {
  // 16 GB of numbers, as a file with a hole.
  const std::string head = GgufWriter().head().substr(0, 8) + std::string(8, '\0') + '\1' +
                           std::string(7, '\0') + '\1' + std::string(7, '\0') + "k" +
                           std::string{9, 0, 0, 0, 10, 0, 0, 0};
  std::string length(8, '\0');
  length[3] = 0x77;  // 1,996,488,704 of 8 bytes
  HeadSource source(head + length, head.size() + 8 + std::uint64_t{0x77000000} * 8);
  auto file = read_gguf(source);
  ASSERT_TRUE(file) << file.error().describe();
  EXPECT_EQ(file->array_length("k"), 0x77000000u);
  EXPECT_LT(source.bytes_read, 200'000u);
}

TEST(Gguf, offsets_inside_apart_and_aligned) {
  const auto at = [](std::uint64_t first, std::uint64_t second) {
    GgufWriter writer;
    writer.tensor_at("one", 0, {64}, first).tensor_at("two", 0, {64}, second);
    return error_of(writer.head(), writer.head().size() + 1024);
  };
  EXPECT_EQ(at(0, 256), "");
  EXPECT_EQ(at(256, 0), "");
  EXPECT_EQ(at(0, 0), "the tensors \"one\" and \"two\" overlap");
  EXPECT_EQ(at(0, 224), "the tensors \"one\" and \"two\" overlap");
  EXPECT_NE(at(0, 260).find("not aligned"), std::string::npos);
  EXPECT_NE(at(0, 1 << 20).find("which has only"), std::string::npos);
  EXPECT_NE(at(0, ~std::uint64_t{31}).find("which has only"), std::string::npos);
}

TEST(Gguf, what_is_no_tensor) {
  const auto tensor = [](std::uint32_t type, const std::vector<std::uint64_t>& shape) {
    GgufWriter writer;
    writer.tensor_at("t", type, shape, 0);
    return error_of(writer.head(), 1 << 20);
  };
  EXPECT_EQ(tensor(999, {32}), "the tensor type 999 is not known");
  EXPECT_NE(tensor(12, {255}).find("no whole blocks of q4_k"), std::string::npos);
  EXPECT_NE(tensor(0, {std::uint64_t{1} << 40, std::uint64_t{1} << 40}).find("multiply"),
            std::string::npos);
  EXPECT_NE(tensor(0, {1, 1, 1, 1, 1}).find("dimensions"), std::string::npos);
  GgufWriter twice;
  twice.tensor("t", "f32", {1}).tensor("t", "f32", {1});
  EXPECT_EQ(error_of(twice.head(), twice.size()), "the tensor \"t\" is there twice");
}

TEST(Gguf, what_is_no_gguf) {
  EXPECT_NE(error_of("").find("only 0 bytes"), std::string::npos);
  EXPECT_NE(error_of("PK\3\4 a zip file").find("does not begin"), std::string::npos);
  EXPECT_NE(error_of(std::string("GGUF\x09\0\0\0", 8)).find("version 9"), std::string::npos);
  EXPECT_NE(error_of(std::string("GGUF\0\0\0\0", 8)).find("version 0"), std::string::npos);
}

TEST(Gguf, alignment_is_a_power_of_two) {
  for (std::uint32_t wrong : {0u, 3u, 48u, 1u << 30})
    EXPECT_NE(error_of(GgufWriter().u32("general.alignment", wrong).head()), "") << wrong;
  EXPECT_EQ(error_of(GgufWriter().u32("general.alignment", 64).head()), "");
}

}  // namespace
}  // namespace zed::model
