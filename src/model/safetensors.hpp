#pragma once
// safetensors headers and the indexes of sharded models. Follows the format's README and its own
// reader (huggingface/safetensors, tensor.rs): the tensors cover the data without holes or
// overlaps.
//
// Bounded: a header of at most 100,000,000 bytes (the format's own limit) read in pieces, at most
// 262,144 tensors of at most 8 dimensions, names of at most 1,024 bytes.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/byte_source.hpp"

namespace zed::model {

struct SafeType {
  std::string_view name;  ///< as in the file: "BF16"
  std::uint32_t bits = 8;
  bool plain_float = false;  ///< F32, F16, BF16, F64: what counts as not quantised
};
/// nullptr for a type that this version does not know.
const SafeType* safe_type(std::string_view name);

struct SafeTensor {
  std::string name;
  const SafeType* type = nullptr;  ///< never null
  std::vector<std::uint64_t> shape;
  std::uint64_t elements = 0;
  std::uint64_t begin = 0;  ///< in the data behind the header
  std::uint64_t end = 0;
};

struct Safetensors {
  std::vector<SafeTensor> tensors;  ///< by their place
  std::uint64_t data_bytes = 0;
};

/// Errors: `invalid` (no safetensors file, more than the bounds), `unsupported` (a type that is not
/// known), `corrupt` (cut off, offsets that overlap, leave holes or leave the file, sizes that do
/// not fit shape and type), `io`.
Result<Safetensors> read_safetensors(ByteSource& source);

/// model.safetensors.index.json.
struct SafeIndex {
  /// How many tensors each shard holds, by its file's name: one word, never a path.
  std::map<std::string, std::uint64_t> shards;
};
/// Errors: `invalid`, `io`.
Result<SafeIndex> read_safe_index(ByteSource& source);

}  // namespace zed::model
