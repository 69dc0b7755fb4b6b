#pragma once
// config.json of a model in safetensors: shape and quantisation. Inside the room only.

#include <cstdint>
#include <string>

#include "base/value.hpp"
#include "model/geometry.hpp"

namespace zed::model {

struct Quantisation {
  std::string method;     ///< "gptq", "awq", "fp8", "compressed-tensors", …; empty: none
  std::string format;     ///< "nvfp4-pack-quantized", "nf4", …; may be empty
  std::int64_t bits = 0;  ///< 0: not said
};

struct ModelConfig {
  std::string architecture;
  Quantisation quantisation;
  Geometry geometry;  ///< without sizes
  bool tied = false;  ///< one table for words and logits
  std::string licence;
};

/// Understands what Hugging Face's configurations share, nested text_config included. Never fails:
/// what is missing or absurd is left out.
ModelConfig read_config(const Value& config);

}  // namespace zed::model
