#pragma once
// GGUF headers: versions 1 to 3, both byte orders. Follows ggml's docs/gguf.md and gguf.cpp.
//
// Bounded whatever the file says: at most 65,536 metadata keys and 131,072 tensors, values of at
// most 4 KiB kept, arrays counted and skipped (those of at most 4,096 numbers are kept: they hold
// what differs by layer), 16 MiB kept altogether, 2 GiB read. Weights are never read.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "model/byte_source.hpp"
#include "model/ggml_types.hpp"

namespace zed::model {

struct GgufArray {
  std::uint64_t length = 0;
  std::vector<std::int64_t> numbers;  ///< of a short array of whole numbers or truth values
};

/// Floats that are no whole numbers stay double; unsigned numbers beyond 63 bits become double too.
using GgufValue = std::variant<bool, std::int64_t, double, std::string, GgufArray>;

struct GgufTensor {
  std::string name;
  const GgmlType* type = nullptr;  ///< never null
  std::uint64_t elements = 0;
  std::uint64_t offset = 0;  ///< from the start of the file's data
  std::uint64_t bytes = 0;
};

struct Gguf {
  std::uint32_t version = 3;
  bool big_endian = false;
  std::uint64_t alignment = 32;
  std::uint64_t data_offset = 0;  ///< where the tensors begin
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::vector<GgufTensor> tensors;  ///< in the order of the header

  std::uint64_t tensor_bytes() const;
  /// The text of a key, or "".
  std::string text(std::string_view key) const;
  /// A whole number; nothing if the key is missing or something else. Never negative.
  std::optional<std::int64_t> number(std::string_view key) const;
  /// How long the array of that key is; 0 if there is none.
  std::uint64_t array_length(std::string_view key) const;
};

/// Errors: `invalid` (no GGUF file, more than the bounds), `unsupported` (a version or a tensor
/// type that is not known), `corrupt` (cut off, offsets that overlap, leave the file or are not
/// aligned, a name twice), `io`.
Result<Gguf> read_gguf(ByteSource& source);

}  // namespace zed::model
