#pragma once
// The tensor types of GGUF files: how many bytes a block of weights takes. From ggml's ggml.h and
// ggml-common.h; the table is compared with the PyPI package gguf (tools/model_oracle.py).

#include <cstdint>
#include <span>
#include <string_view>

namespace zed::model {

struct GgmlType {
  std::uint32_t id = 0;
  std::string_view name;    ///< lower case: "q4_k"
  std::uint32_t block = 1;  ///< weights in a block; a row is a whole number of blocks
  std::uint32_t bytes = 1;  ///< bytes of a block
  bool quantised = false;   ///< anything but f32, f16, bf16 (and f64 and whole numbers)
};

std::span<const GgmlType> ggml_types();
/// nullptr for a type that this version does not know.
const GgmlType* ggml_type(std::uint32_t id);

/// The name of a value of `general.file_type`, lower case: "q4_k_m"; empty if unknown.
std::string_view file_type_name(std::uint64_t file_type);

}  // namespace zed::model
