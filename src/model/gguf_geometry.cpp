#include "model/gguf_geometry.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace zed::model {
namespace {

/// How an architecture's sliding windows lie where the file does not say it: of `period` layers all
/// but one see a window. The full one is the last of them, or the first.
struct WindowPattern {
  std::string_view architecture;
  std::int64_t period;
  bool full_first;
  std::int64_t window;  ///< used if the file names none; 0: then there is none
};
// models/*.cpp of llama.cpp, load_swa_pattern(). Architectures that are not here and bring no
// pattern of their own use their whole context, whatever window their metadata has (llama, phi3).
constexpr std::array window_patterns{
    WindowPattern{"afmoe", 4, false, 0},           WindowPattern{"cohere2", 4, false, 0},
    WindowPattern{"cohere2moe", 4, true, 0},       WindowPattern{"exaone4", 4, false, 0},
    WindowPattern{"exaone-moe", 4, false, 128},    WindowPattern{"gemma2", 2, false, 4096},
    WindowPattern{"gemma3", 6, false, 0},          WindowPattern{"gemma3n", 5, false, 0},
    WindowPattern{"gemma-embedding", 6, false, 0}, WindowPattern{"gpt-oss", 2, false, 0},
    WindowPattern{"laguna", 4, true, 0},           WindowPattern{"llama4", 4, false, 8192},
    WindowPattern{"mellum", 4, false, 0},          WindowPattern{"modern-bert", 3, true, 0},
    WindowPattern{"muse-glimmer", 4, false, 0},    WindowPattern{"olmo2", 4, false, 0},
    WindowPattern{"plamo3", 8, false, 0},          WindowPattern{"smallthinker", 4, true, 0},
};

/// Read everything at once and keep no cache (llama-model.cpp, create_memory()).
constexpr std::array<std::string_view, 14> encoders{"bert",
                                                    "jina-bert-v2",
                                                    "jina-bert-v3",
                                                    "nomic-bert",
                                                    "nomic-bert-moe",
                                                    "neo-bert",
                                                    "eurobert",
                                                    "modern-bert",
                                                    "gemma-embedding",
                                                    "wavtokenizer-dec",
                                                    "dream",
                                                    "llada",
                                                    "llada-moe",
                                                    "rnd1"};

/// Make no logits: what comes out is an embedding or a rank.
constexpr std::array<std::string_view, 9> without_logits{
    "bert",     "jina-bert-v2", "jina-bert-v3", "nomic-bert",     "nomic-bert-moe",
    "neo-bert", "eurobert",     "modern-bert",  "gemma-embedding"};

constexpr std::array<std::string_view, 6> recurrent_everywhere{"mamba",      "mamba2", "rwkv6",
                                                               "rwkv6qwen2", "rwkv7",  "arwkv7"};

/// Whose layers attend, or are recurrent, or feed forward, and do nothing else (nemotron-h.cpp).
constexpr std::array<std::string_view, 2> one_thing_a_layer{"nemotron_h", "nemotron_h_moe"};

/// Every n-th layer attends, the others are recurrent.
struct Interval {
  std::string_view architecture;
  std::int64_t every;
};
constexpr std::array intervals{Interval{"qwen3next", 4}, Interval{"qwen35", 4},
                               Interval{"qwen35moe", 4}, Interval{"minimax-01", 8}};

template <class List> bool has(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

constexpr std::int64_t most_layers = 4096;
constexpr std::int64_t widest = std::int64_t{1} << 16;

/// The metadata of one architecture: a key is read with the architecture in front of it.
class Hyper {
public:
  explicit Hyper(const Gguf& file)
      : file_(file), architecture_(file.text("general.architecture")) {}

  const std::string& architecture() const { return architecture_; }

  std::int64_t number(std::string_view key, std::int64_t most = widest) const {
    const auto value = file_.number(architecture_ + "." + std::string(key));
    return value && *value <= most ? *value : 0;
  }
  /// A figure that may differ by layer: one number, or an array of them.
  std::int64_t at(std::string_view key, std::int64_t layer, std::int64_t otherwise) const {
    auto found = file_.metadata.find(architecture_ + "." + std::string(key));
    if (found == file_.metadata.end()) return otherwise;
    const auto* array = std::get_if<GgufArray>(&found->second);
    std::int64_t value = otherwise;
    if (array == nullptr)
      value = number(key);
    else if (static_cast<std::size_t>(layer) < array->numbers.size())
      value = array->numbers[static_cast<std::size_t>(layer)];
    return std::clamp<std::int64_t>(value, 0, widest);
  }
  const GgufArray* array(std::string_view key) const {
    auto found = file_.metadata.find(architecture_ + "." + std::string(key));
    return found == file_.metadata.end() ? nullptr : std::get_if<GgufArray>(&found->second);
  }
  bool flag(std::string_view key, bool otherwise) const {
    auto found = file_.metadata.find(architecture_ + "." + std::string(key));
    const auto* value = found == file_.metadata.end() ? nullptr : std::get_if<bool>(&found->second);
    return value != nullptr ? *value : otherwise;
  }

private:
  const Gguf& file_;
  std::string architecture_;
};

/// Which layers see only a window.
class Windows {
public:
  explicit Windows(const Hyper& hyper)
      : window_(hyper.number("attention.sliding_window", std::int64_t{1} << 32)),
        flags_(hyper.array("attention.sliding_window_pattern")) {
    const auto* known =
        std::find_if(window_patterns.begin(), window_patterns.end(), [&](const WindowPattern& p) {
          return p.architecture == hyper.architecture();
        });
    const bool is_known = known != window_patterns.end();
    period_ = hyper.number("attention.sliding_window_pattern");
    if (period_ == 0 && is_known) period_ = known->period;
    full_first_ = is_known && known->full_first;
    if (window_ == 0 && is_known) window_ = known->window;
  }

  std::int64_t at(std::int64_t layer) const {
    if (window_ == 0) return 0;
    if (flags_ != nullptr) {
      const auto index = static_cast<std::size_t>(layer);
      return index < flags_->numbers.size() && flags_->numbers[index] != 0 ? window_ : 0;
    }
    if (period_ == 0) return 0;
    const bool full = full_first_ ? layer % period_ == 0 : layer % period_ == period_ - 1;
    return full ? 0 : window_;
  }

private:
  std::int64_t window_;
  const GgufArray* flags_;
  std::int64_t period_ = 0;
  bool full_first_ = false;
};

/// Bytes of recurrent state of a layer and a sequence, 32-bit floats (llama-hparams.cpp,
/// n_embd_r() + n_embd_s()).
std::int64_t state_of(const Hyper& hyper, std::int64_t hidden, std::int64_t heads) {
  constexpr std::int64_t each = 4;
  if (const auto head = hyper.number("wkv.head_size"); head != 0) {
    const std::int64_t shifts = hyper.number("token_shift_count");
    return each * hidden * ((shifts != 0 ? shifts : 2) + head);
  }
  if (const auto kernel = hyper.number("shortconv.l_cache"); kernel != 0)
    return each * hidden * (kernel - 1);
  const std::int64_t kernel = hyper.number("ssm.conv_kernel");
  if (const auto head = hyper.number("kda.head_dim"); head != 0)
    return each * heads * head * (3 * (kernel > 0 ? kernel - 1 : 3) + head);
  const std::int64_t inner = hyper.number("ssm.inner_size", std::int64_t{1} << 20);
  const std::int64_t state = hyper.number("ssm.state_size");
  const std::int64_t groups = hyper.number("ssm.group_count");
  const std::int64_t conv = (kernel > 0 ? kernel - 1 : 0) * (inner + 2 * groups * state);
  return each * (conv + state * inner);
}

/// Numbers of the key by which a layer's indexer finds the tokens that the layer attends to
/// (llama-kv-cache-dsa.cpp; pooled ones keep two more, llama-memory-hybrid-idx.cpp). A layer that
/// takes another's choice keeps none.
std::int64_t indexer_key(const Hyper& hyper, std::int64_t layer) {
  if (hyper.at("attention.indexer.types", layer, 1) == 0) return 0;
  const std::int64_t kept = hyper.number("attention.indexer.kpool") != 0 ? 3 : 1;
  return kept * hyper.number("attention.indexer.key_length");
}

/// How one layer attends, without its window.
LayerGroup attention_of(const Hyper& hyper, std::int64_t layer, bool windowed,
                        std::int64_t hidden) {
  LayerGroup group;
  const std::int64_t heads = hyper.at("attention.head_count", layer, 0);
  group.kv_heads = hyper.at("attention.head_count_kv", layer, heads);
  const std::int64_t natural = heads > 0 ? hidden / heads : 0;
  group.k_dim = hyper.at("attention.key_length", layer, natural);
  group.v_dim = hyper.at("attention.value_length", layer, natural);
  if (windowed) {
    group.k_dim = hyper.at("attention.key_length_swa", layer, group.k_dim);
    group.v_dim = hyper.at("attention.value_length_swa", layer, group.v_dim);
  }
  // Latent attention keeps one latent of key_length (rank and rotary part) for all heads; its
  // values are a view of it. Files without the *_mla keys keep full keys and values. An indexer's
  // key is one more that all heads share.
  if (hyper.number("attention.key_length_mla") != 0) {
    group.v_dim = 0;
    if (group.kv_heads == 1)
      group.k_dim = std::min(group.k_dim + indexer_key(hyper, layer), widest);
  }
  return group;
}

void forget(LayerGroup& group) {
  group.kv_heads = group.k_dim = group.v_dim = group.window = 0;
}

/// Layers that have no cache of their own use an earlier layer's.
std::int64_t layers_with_own_cache(const Hyper& hyper, std::int64_t layers) {
  if (const auto shared = hyper.number("attention.shared_kv_layers"); shared != 0)
    return std::max<std::int64_t>(layers - shared, 0);
  constexpr std::int64_t gemma3n_own = 20;
  return hyper.architecture() == "gemma3n" ? std::min(layers, gemma3n_own) : layers;
}

/// Layers of a model that mixes attention with recurrence.
class Recurrence {
public:
  explicit Recurrence(const Hyper& hyper) : flags_(hyper.array("attention.recurrent_layers")) {
    if (has(one_thing_a_layer, hyper.architecture())) forward_ = hyper.array("feed_forward_length");
    everywhere_ = has(recurrent_everywhere, hyper.architecture());
    beside_ = hyper.architecture() == "falcon-h1";
    for (const Interval& interval : intervals)
      if (interval.architecture == hyper.architecture()) {
        const std::int64_t own = hyper.number("full_attention_interval");
        every_ = own != 0 ? own : interval.every;
      }
  }

  /// Recurrent instead of attending.
  bool replaces(std::int64_t layer, const LayerGroup& attention) const {
    if (everywhere_) return true;
    if (flags_ != nullptr && static_cast<std::size_t>(layer) < flags_->numbers.size())
      return flags_->numbers[static_cast<std::size_t>(layer)] != 0;
    if (every_ != 0) return (layer + 1) % every_ != 0;
    return attention.kv_heads == 0 && !only_feeds_forward(layer);
  }
  /// Recurrent besides attending.
  bool joins() const { return beside_; }

private:
  bool only_feeds_forward(std::int64_t layer) const {
    const auto index = static_cast<std::size_t>(layer);
    return forward_ != nullptr && index < forward_->numbers.size() && forward_->numbers[index] != 0;
  }

  const GgufArray* flags_;
  const GgufArray* forward_ = nullptr;
  bool everywhere_ = false;
  bool beside_ = false;
  std::int64_t every_ = 0;
};

}  // namespace

Geometry gguf_geometry(const Gguf& file) {
  const Hyper hyper(file);
  Geometry geometry;
  geometry.layers = hyper.number("block_count", most_layers);
  geometry.hidden = hyper.number("embedding_length", std::int64_t{1} << 24);
  geometry.context = hyper.number("context_length", std::int64_t{1} << 32);
  geometry.encoder = has(encoders, hyper.architecture()) || !hyper.flag("attention.causal", true);
  geometry.vocab = hyper.number("vocab_size", std::int64_t{1} << 32);
  if (geometry.vocab == 0)
    geometry.vocab = static_cast<std::int64_t>(std::min<std::uint64_t>(
        file.array_length("tokenizer.ggml.tokens"), std::uint64_t{1} << 32U));
  if (has(without_logits, hyper.architecture())) geometry.vocab = 0;
  const Windows windows(hyper);
  const Recurrence recurrence(hyper);
  // Layers that guess the next tokens come last and have a context of their own, if any.
  const std::int64_t attending =
      std::max<std::int64_t>(geometry.layers - hyper.number("nextn_predict_layers"), 0);
  const std::int64_t caching = std::min(attending, layers_with_own_cache(hyper, geometry.layers));
  for (std::int64_t layer = 0; layer < geometry.layers; ++layer) {
    const std::int64_t heads = hyper.at("attention.head_count", layer, 0);
    geometry.heads = std::max(geometry.heads, heads);
    const std::int64_t window = windows.at(layer);
    LayerGroup group = attention_of(hyper, layer, window != 0, geometry.hidden);
    group.window = window;
    const std::int64_t state = state_of(hyper, geometry.hidden, heads);
    if (state != 0 && (recurrence.joins() || recurrence.replaces(layer, group))) {
      group.state = state;
      if (!recurrence.joins()) forget(group);
    }
    if (layer >= caching || geometry.encoder) forget(group);
    add_layer(geometry, group);
  }
  return geometry;
}

Bytes projector_compute(const Gguf& file) {
  // Scores of all patches against all patches, and what the widest layer makes of them. Images
  // larger than the trained size are cut by the programs that read them.
  constexpr std::int64_t most_patches = 1 << 14;
  const auto image = file.number("clip.vision.image_size").value_or(0);
  const auto patch = file.number("clip.vision.patch_size").value_or(0);
  const auto heads = file.number("clip.vision.attention.head_count").value_or(0);
  const auto hidden = file.number("clip.vision.embedding_length").value_or(0);
  const auto wide = file.number("clip.vision.feed_forward_length").value_or(0);
  if (patch <= 0 || image <= 0 || image > widest || heads > widest || hidden > widest ||
      wide > (1 << 20))
    return {};
  const std::int64_t side = image / patch;
  const std::int64_t patches = std::min(side * side, most_patches);
  return Bytes{patches * patches * heads * 4 + patches * (wide + 4 * hidden) * 4};
}

}  // namespace zed::model
