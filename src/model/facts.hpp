#pragma once
// What is known of a model by its files alone.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/byte_source.hpp"
#include "model/geometry.hpp"

namespace zed::model {

struct Facts {
  std::string format;            ///< "gguf" | "safetensors"
  std::string name;              ///< as its maker calls it; may be empty
  std::string architecture;      ///< "llama", "LlamaForCausalLM"; may be empty
  std::string licence;           ///< "apache-2.0"; may be empty
  std::uint64_t parameters = 0;  ///< weights of the model itself, packed ones unpacked
  Bytes tensor_bytes;            ///< all tensors of all parts, the projector's too
  /// "q4_k_m", "gptq-4bit", "fp8"; empty if every weight is f32, f16 or bf16.
  std::string quantised;
  /// What the file says of itself, if the tensors say otherwise; else empty.
  std::string claimed_label;
  std::string dtype;  ///< of most bytes: "q4_k", "bf16"
  double bits_per_weight = 0;
  std::int64_t files = 0;  ///< parts that hold tensors
  Geometry geometry;
  /// What is known to be missing from the figures, for people.
  std::vector<std::string> notes;
};

/// Reads every header of a model: a GGUF file with all its parts and its projector, or safetensors
/// shards with their index and configuration. Nothing for files that are no model of a known kind.
/// Errors: those of the readers (`unsupported`: newer than this version), `invalid` (several models
/// in one folder), `corrupt` or `not_found` (a part is missing), each naming the file.
Result<std::optional<Facts>> read_facts(ModelFiles& files);

}  // namespace zed::model
