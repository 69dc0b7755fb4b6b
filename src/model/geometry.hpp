#pragma once
// What of a model decides how much memory it takes: its weights by where they go, and what each
// layer remembers of the context. Kept as a property of the dataset, so that any machine can tell
// whether the model would fit without having it.

#include <cstdint>
#include <string>
#include <vector>

#include "base/describe.hpp"

namespace zed::model {

/// Layers that remember alike.
struct LayerGroup {
  std::int64_t layers = 0;
  std::int64_t kv_heads = 0;  ///< 0: these layers keep no keys and values
  std::int64_t k_dim = 0;     ///< per head; with latent attention the width of the latent
  std::int64_t v_dim = 0;     ///< per head; 0 with latent attention, whose values are in the latent
  std::int64_t window = 0;    ///< tokens a sliding window sees; 0: the whole context
  std::int64_t state = 0;     ///< bytes of recurrent state for each sequence
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("n", self.layers);
    visit("kv", self.kv_heads);
    visit("k", self.k_dim);
    visit("v", self.v_dim);
    visit("win", self.window);
    visit("st", self.state);
  }
  friend bool operator==(const LayerGroup&, const LayerGroup&) = default;
};

/// Sizes in bytes, widths in numbers. All zero or more and below 2^56 (is_sane()).
struct Geometry {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;    ///< the most that a layer has
  std::int64_t vocab = 0;    ///< 0: no logits are made (an encoder)
  std::int64_t context = 0;  ///< tokens that it was trained for; 0: unknown
  bool encoder = false;      ///< reads everything at once and keeps nothing
  Bytes weights;             ///< all tensors
  Bytes embedding;  ///< of these, what stays in host memory: the table that words are looked up in
  Bytes output;     ///< of these, what makes logits
  Bytes projector;  ///< of images or sounds; on the first GPU
  Bytes projector_compute;
  std::vector<LayerGroup> groups;

  /// Nothing negative or absurd, as it may come from a property that somebody set.
  bool is_sane() const;

  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("layers", self.layers);
    visit("hidden", self.hidden);
    visit("heads", self.heads);
    visit("vocab", self.vocab);
    visit("context", self.context);
    visit("encoder", self.encoder);
    visit("weights", self.weights);
    visit("embedding", self.embedding);
    visit("output", self.output);
    visit("projector", self.projector);
    visit("projector_compute", self.projector_compute);
    visit("groups", self.groups);
  }
  friend bool operator==(const Geometry&, const Geometry&) = default;
};

/// Adds a layer to the group of its kind, or begins one.
void add_layer(Geometry& geometry, LayerGroup layer);

}  // namespace zed::model
