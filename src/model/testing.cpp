#include "model/testing.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "model/ggml_types.hpp"

namespace zed::model::testing {

Status HeadSource::read_at(std::uint64_t offset, std::span<std::byte> into) {
  bytes_read += into.size();
  std::fill(into.begin(), into.end(), std::byte{0});
  if (offset >= head_.size()) return {};
  const auto from = static_cast<std::size_t>(offset);
  std::memcpy(into.data(), head_.data() + from, std::min(into.size(), head_.size() - from));
  return {};
}

Folder& Folder::add(const std::string& name, std::string head) {
  const std::uint64_t size = head.size();
  return add(name, std::move(head), size);
}

Folder& Folder::add(const std::string& name, std::string head, std::uint64_t size) {
  list_.push_back({name, size});
  heads_[name] = std::move(head);
  std::sort(list_.begin(), list_.end(),
            [](const FileEntry& a, const FileEntry& b) { return a.name < b.name; });
  return *this;
}

Result<std::unique_ptr<ByteSource>> Folder::open(const std::string& name) {
  for (const FileEntry& entry : list_)
    if (entry.name == name)
      return std::unique_ptr<ByteSource>(std::make_unique<HeadSource>(heads_.at(name), entry.size));
  return fail(ErrorCode::not_found, "there is no " + name);
}

void GgufWriter::put(std::string& out, std::uint64_t value, std::size_t bytes) const {
  for (std::size_t i = 0; i < bytes; ++i) {
    const std::size_t shift = 8 * (big_endian_ ? bytes - 1 - i : i);
    out.push_back(static_cast<char>(value >> shift));
  }
}
void GgufWriter::put_length(std::string& out, std::uint64_t value) const {
  put(out, value, version_ == 1 ? 4 : 8);
}
void GgufWriter::put_text(std::string& out, std::string_view text) const {
  put_length(out, text.size());
  out += text;
}
void GgufWriter::key(std::string_view key, std::uint32_t type) {
  ++keys_;
  put_text(metadata_, key);
  put(metadata_, type, 4);
}

GgufWriter& GgufWriter::text(std::string_view name, std::string_view value) {
  key(name, 8);
  put_text(metadata_, value);
  return *this;
}
GgufWriter& GgufWriter::u32(std::string_view name, std::uint32_t value) {
  key(name, 4);
  put(metadata_, value, 4);
  return *this;
}
GgufWriter& GgufWriter::flag(std::string_view name, bool value) {
  key(name, 7);
  put(metadata_, value ? 1 : 0, 1);
  return *this;
}
GgufWriter& GgufWriter::array(std::string_view name, const std::vector<std::int32_t>& values) {
  key(name, 9);
  put(metadata_, 5, 4);
  put_length(metadata_, values.size());
  for (const std::int32_t value : values)
    put(metadata_, static_cast<std::uint32_t>(value), 4);
  return *this;
}
GgufWriter& GgufWriter::texts(std::string_view name, std::uint64_t count) {
  key(name, 9);
  put(metadata_, 8, 4);
  put_length(metadata_, count);
  for (std::uint64_t i = 0; i < count; ++i)
    put_text(metadata_, "w");
  return *this;
}

GgufWriter& GgufWriter::tensor_at(std::string_view name, std::uint32_t type,
                                  const std::vector<std::uint64_t>& shape, std::uint64_t offset) {
  ++count_;
  put_text(tensors_, name);
  put(tensors_, shape.size(), 4);
  for (const std::uint64_t extent : shape)
    put_length(tensors_, extent);
  put(tensors_, type, 4);
  put(tensors_, offset, 8);
  return *this;
}

GgufWriter& GgufWriter::tensor(std::string_view name, std::string_view type,
                               const std::vector<std::uint64_t>& shape) {
  const auto known = std::find_if(ggml_types().begin(), ggml_types().end(),
                                  [&](const GgmlType& t) { return t.name == type; });
  ZED_ASSERT(known != ggml_types().end());
  std::uint64_t elements = 1;
  for (const std::uint64_t extent : shape)
    elements *= extent;
  tensor_at(name, known->id, shape, end_);
  end_ += elements / known->block * known->bytes;
  end_ = (end_ + 31) / 32 * 32;
  return *this;
}

std::string GgufWriter::head() const {
  std::string out = "GGUF";
  put(out, version_, 4);
  put_length(out, claimed_tensors != 0 ? claimed_tensors : count_);
  put_length(out, claimed_keys != 0 ? claimed_keys : keys_);
  out += metadata_ + tensors_;
  return out;
}

std::uint64_t GgufWriter::size() const {
  if (end_ == 0) return head().size();
  return (head().size() + 31) / 32 * 32 + end_;
}

namespace {

/// llama.cpp's use_more_bits(): the first and last eighth, and every third between.
bool more_bits(std::uint32_t layer, std::uint32_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

}  // namespace

void write_layers(GgufWriter& writer, const Shape& s, std::string_view recipe) {
  const std::string base(recipe == "q4_k_m" ? "q4_k" : recipe);
  const std::string output(recipe == "f16" ? "f16" : "q6_k");
  const std::uint64_t hidden = s.hidden;
  const std::uint64_t q = std::uint64_t{s.heads} * s.head_dim;
  const std::uint64_t kv = std::uint64_t{s.kv_heads} * s.head_dim;
  writer.tensor("token_embd.weight", s.tied ? output : base, {hidden, s.vocab});
  if (!s.tied) writer.tensor("output.weight", output, {hidden, s.vocab});
  writer.tensor("output_norm.weight", "f32", {hidden});
  for (std::uint32_t layer = 0; layer < s.layers; ++layer) {
    const std::string name = "blk." + std::to_string(layer) + ".";
    const std::string better = recipe == "q4_k_m" && more_bits(layer, s.layers) ? "q6_k" : base;
    writer.tensor(name + "attn_norm.weight", "f32", {hidden});
    writer.tensor(name + "ffn_norm.weight", "f32", {hidden});
    writer.tensor(name + "attn_q.weight", base, {hidden, q});
    writer.tensor(name + "attn_k.weight", base, {hidden, kv});
    writer.tensor(name + "attn_v.weight", better, {hidden, kv});
    writer.tensor(name + "attn_output.weight", base, {q, hidden});
    writer.tensor(name + "ffn_gate.weight", base, {hidden, s.wide});
    writer.tensor(name + "ffn_up.weight", base, {hidden, s.wide});
    writer.tensor(name + "ffn_down.weight", better, {s.wide, hidden});
  }
}

GgufWriter write_model(const Shape& s, std::string_view recipe) {
  GgufWriter writer;
  const std::string a = s.architecture + ".";
  const std::uint32_t file_type = recipe == "f16"      ? 1
                                  : recipe == "q4_0"   ? 2
                                  : recipe == "q4_k_m" ? 15
                                                       : 30;
  writer.text("general.architecture", s.architecture)
      .u32("general.file_type", file_type)
      .u32(a + "block_count", s.layers)
      .u32(a + "embedding_length", s.hidden)
      .u32(a + "context_length", s.context)
      .u32(a + "attention.head_count", s.heads)
      .u32(a + "attention.head_count_kv", s.kv_heads)
      .u32(a + "attention.key_length", s.head_dim)
      .u32(a + "attention.value_length", s.head_dim)
      .texts("tokenizer.ggml.tokens", s.vocab);
  write_layers(writer, s, recipe);
  return writer;
}

Facts facts_of(const GgufWriter& writer) {
  Folder folder;
  folder.add("model.gguf", writer.head(), writer.size());
  auto facts = read_facts(folder);
  EXPECT_TRUE(facts.has_value()) << (facts ? "" : facts.error().describe());
  return facts && *facts ? **facts : Facts{};
}

std::string safetensors_head(std::string_view json) {
  std::string head;
  for (std::size_t i = 0; i < 8; ++i)
    head.push_back(static_cast<char>(json.size() >> (8 * i)));
  return head + std::string(json);
}

}  // namespace zed::model::testing
