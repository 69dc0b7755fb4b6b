#pragma once
// Model files made of headers alone: as large as real ones, of a few kilobytes.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/byte_source.hpp"
#include "model/facts.hpp"

namespace zed::model::testing {

/// The first bytes of a file of `size` bytes; the rest reads as zeros.
class HeadSource : public ByteSource {
public:
  explicit HeadSource(std::string head) : HeadSource(head, head.size()) {}
  HeadSource(std::string head, std::uint64_t size) : head_(std::move(head)), size_(size) {}
  std::uint64_t size() const override { return size_; }
  Status read_at(std::uint64_t offset, std::span<std::byte> into) override;
  std::uint64_t bytes_read = 0;

private:
  std::string head_;
  std::uint64_t size_;
};

/// A folder of such files.
class Folder : public ModelFiles {
public:
  Folder& add(const std::string& name, std::string head);
  Folder& add(const std::string& name, std::string head, std::uint64_t size);
  const std::vector<FileEntry>& list() const override { return list_; }
  Result<std::unique_ptr<ByteSource>> open(const std::string& name) override;

private:
  std::vector<FileEntry> list_;
  std::map<std::string, std::string> heads_;
};

/// Writes GGUF headers.
class GgufWriter {
public:
  explicit GgufWriter(std::uint32_t version = 3, bool big_endian = false)
      : version_(version), big_endian_(big_endian) {}
  GgufWriter& text(std::string_view key, std::string_view value);
  GgufWriter& u32(std::string_view key, std::uint32_t value);
  GgufWriter& flag(std::string_view key, bool value);
  GgufWriter& array(std::string_view key, const std::vector<std::int32_t>& values);
  GgufWriter& texts(std::string_view key, std::uint64_t count);
  /// The tensors follow one another, aligned to 32 bytes.
  GgufWriter& tensor(std::string_view name, std::string_view type,
                     const std::vector<std::uint64_t>& shape);
  /// One at a place of its own.
  GgufWriter& tensor_at(std::string_view name, std::uint32_t type,
                        const std::vector<std::uint64_t>& shape, std::uint64_t offset);
  std::string head() const;
  /// Of the whole file, weights included.
  std::uint64_t size() const;

  std::uint64_t claimed_tensors = 0;  ///< if not 0: said instead of how many there are
  std::uint64_t claimed_keys = 0;

private:
  void put(std::string& out, std::uint64_t value, std::size_t bytes) const;
  void put_length(std::string& out, std::uint64_t value) const;
  void put_text(std::string& out, std::string_view text) const;
  void key(std::string_view key, std::uint32_t type);

  std::uint32_t version_;
  bool big_endian_;
  std::string metadata_;
  std::string tensors_;
  std::uint64_t keys_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t end_ = 0;
};

/// A model of the usual kind, as llama.cpp's converter writes it.
struct Shape {
  std::string architecture = "llama";
  std::uint32_t layers = 0;
  std::uint32_t hidden = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 128;
  std::uint32_t wide = 0;  ///< of the feed-forward part
  std::uint32_t vocab = 0;
  std::uint32_t context = 131072;
  bool tied = false;
};

/// With the tensor types that llama.cpp's quantiser chooses for "f16", "q4_0", "q4_k_m", "iq4_xs".
void write_layers(GgufWriter& writer, const Shape& shape, std::string_view recipe);
GgufWriter write_model(const Shape& shape, std::string_view recipe);
/// The facts of one file of that name.
Facts facts_of(const GgufWriter& writer);

/// {"NAME": {"dtype": …}}, with its length in front.
std::string safetensors_head(std::string_view json);

}  // namespace zed::model::testing
