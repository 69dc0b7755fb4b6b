#include "model/config.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.hpp"

namespace zed::model {
namespace {

constexpr std::int64_t widest = std::int64_t{1} << 16;
constexpr std::int64_t most_layers = 4096;

/// The part of a configuration that is about text; other keys are looked for outside too.
class Config {
public:
  explicit Config(const Value& outer) : outer_(outer), text_(&outer) {
    for (const char* key : {"text_config", "language_config", "llm_config", "thinker_config"})
      if (const Value* inner = text_->find(key); inner != nullptr && inner->as_map() != nullptr)
        text_ = inner;
    // Omni models nest once more.
    if (const Value* inner = text_->find("text_config");
        inner != nullptr && inner->as_map() != nullptr)
      text_ = inner;
  }

  const Value* find(std::string_view key) const {
    const Value* inner = text_->find(key);
    return inner != nullptr && !inner->is_null() ? inner : outer_.find(key);
  }
  /// The first of these keys that has a number from 0 to `most`; else 0.
  template <std::size_t N>
  std::int64_t number(const std::array<const char*, N>& keys, std::int64_t most = widest) const {
    for (const char* key : keys)
      if (const Value* value = find(key))
        if (const auto* n = value->as_int(); n != nullptr && *n >= 0 && *n <= most) return *n;
    return 0;
  }
  std::int64_t number(const char* key, std::int64_t most = widest) const {
    return number(std::array<const char*, 1>{key}, most);
  }
  std::string text(std::string_view key) const {
    const Value* value = find(key);
    const std::string* text = value != nullptr ? value->as_text() : nullptr;
    return text != nullptr ? *text : "";
  }
  std::optional<bool> flag(std::string_view key) const {
    const Value* value = find(key);
    const bool* flag = value != nullptr ? value->as_bool() : nullptr;
    return flag != nullptr ? std::optional<bool>(*flag) : std::nullopt;
  }
  const Value::List* list(std::string_view key) const {
    const Value* value = find(key);
    return value != nullptr ? value->as_list() : nullptr;
  }

private:
  const Value& outer_;
  const Value* text_;
};

std::string first_of(const Value::List* list) {
  if (list == nullptr || list->empty()) return "";
  const std::string* text = list->front().as_text();
  return text != nullptr ? *text : "";
}

std::string word_at(const Value::List* list, std::int64_t layer) {
  if (list == nullptr || static_cast<std::size_t>(layer) >= list->size()) return "";
  const std::string* text = (*list)[static_cast<std::size_t>(layer)].as_text();
  return text != nullptr ? *text : "";
}

/// What each layer does: "full_attention", "sliding_attention", "linear_attention", …; "" where the
/// configuration does not say it. Nemotron-H spells it, one letter a layer.
class Kinds {
public:
  explicit Kinds(const Config& config)
      : list_(config.list("layer_types")), letters_(config.text("hybrid_override_pattern")) {
    if (list_ == nullptr) list_ = config.list("layers_block_type");
  }

  std::int64_t count() const {
    return list_ != nullptr ? std::ssize(*list_) : std::ssize(letters_);
  }
  std::string at(std::int64_t layer) const {
    if (list_ != nullptr) return word_at(list_, layer);
    const auto index = static_cast<std::size_t>(layer);
    if (index >= letters_.size()) return "";
    switch (letters_[index]) {
    case 'M': return "mamba";
    case '*': return "full_attention";
    default: return "mlp";
    }
  }

private:
  const Value::List* list_;
  std::string letters_;
};

bool is_mamba(const Config& config) {
  const std::string type = config.text("model_type");
  return type.starts_with("mamba") || type == "falcon_mamba";
}

/// Architectures whose sliding layers have to be known by name: every n-th layer is full.
std::int64_t pattern_of(const Config& config) {
  if (const auto own = config.number("sliding_window_pattern"); own != 0) return own;
  const std::string type = config.text("model_type");
  if (type == "gemma2" || type == "gpt_oss") return 2;
  if (type == "gemma3" || type == "gemma3_text") return 6;
  if (type == "cohere2") return 4;
  return 0;
}

/// Mistral's and Qwen's configurations name a window that only some use.
std::int64_t window_of(const Config& config) {
  if (config.flag("use_sliding_window") == false) return 0;
  return config.number("sliding_window", std::int64_t{1} << 32);
}

/// Width of Mamba's state: as it is named, by its heads, or a multiple of the model's.
std::int64_t inner_of(const Config& config) {
  if (const auto named = config.number("mamba_d_ssm"); named != 0) return named;
  const std::int64_t heads =
      config.number(std::array<const char*, 2>{"mamba_num_heads", "mamba_n_heads"});
  const std::int64_t head =
      config.number(std::array<const char*, 2>{"mamba_head_dim", "mamba_d_head"});
  if (heads != 0 && head != 0) return heads * head;
  const std::int64_t own = config.number("intermediate_size");
  if (is_mamba(config) && own != 0) return own;
  const std::int64_t expand = std::max<std::int64_t>(
      config.number(std::array<const char*, 2>{"mamba_expand", "expand"}), 1);
  return config.number(std::array<const char*, 2>{"hidden_size", "d_model"}) * expand;
}

/// Recurrent state of a layer and a sequence, in 32-bit floats: gated delta rule, short
/// convolution, or Mamba.
std::int64_t state_of(const Config& config) {
  constexpr std::int64_t each = 4;
  const std::int64_t key = config.number("linear_key_head_dim");
  const std::int64_t value = config.number("linear_value_head_dim");
  const std::int64_t keys = config.number("linear_num_key_heads");
  const std::int64_t values = config.number("linear_num_value_heads");
  if (key != 0 && value != 0) {
    const std::int64_t kernel = std::max<std::int64_t>(config.number("linear_conv_kernel_dim"), 1);
    return each * (values * key * value + (kernel - 1) * (2 * keys * key + values * value));
  }
  if (const auto taps = config.number("conv_L_cache"); taps != 0)
    return each * config.number("hidden_size") * (taps - 1);
  const std::int64_t state = config.number(
      std::array<const char*, 4>{"mamba_d_state", "ssm_state_size", "state_size", "d_state"});
  if (state == 0) return 0;
  const std::int64_t inner = inner_of(config);
  const std::int64_t kernel = std::max<std::int64_t>(
      config.number(std::array<const char*, 2>{"mamba_d_conv", "conv_kernel"}), 1);
  const std::int64_t groups =
      config.number(std::array<const char*, 2>{"mamba_n_groups", "n_groups"});
  return each * (inner * state + (kernel - 1) * (inner + 2 * groups * state));
}

/// Which layers are recurrent where no list says it.
bool is_recurrent(const Config& config, std::int64_t layer, const std::string& kind) {
  if (!kind.empty())
    return kind.find("linear") != std::string::npos || kind.find("mamba") != std::string::npos ||
           kind.find("recurrent") != std::string::npos || kind == "conv";
  if (is_mamba(config)) return true;
  if (const auto every = config.number("full_attention_interval"); every != 0)
    return (layer + 1) % every != 0;
  if (const auto period = config.number("attn_layer_period"); period != 0)
    return layer % period != config.number("attn_layer_offset");
  return false;
}

/// Numbers of the key by which a layer's indexer finds the tokens that it attends to. A layer that
/// takes another's choice has none.
std::int64_t indexer_key(const Config& config, std::int64_t layer) {
  const bool shares = word_at(config.list("indexer_types"), layer) == "shared";
  return shares ? 0 : config.number("index_head_dim");
}

/// Keys and values of one layer that attends.
LayerGroup attention_of(const Config& config, const Geometry& geometry, std::int64_t layer,
                        bool full, std::int64_t window) {
  LayerGroup group;
  const std::int64_t natural = geometry.heads > 0 ? geometry.hidden / geometry.heads : 0;
  group.kv_heads =
      config.number(std::array<const char*, 3>{"num_key_value_heads", "num_kv_heads", "n_head_kv"});
  if (group.kv_heads == 0) group.kv_heads = config.flag("multi_query") == true ? 1 : geometry.heads;
  const std::int64_t head = config.number("head_dim");
  group.k_dim = group.v_dim = head != 0 ? head : natural;
  if (full && config.number("global_head_dim") != 0) {
    group.k_dim = group.v_dim = config.number("global_head_dim");
    // Of a configuration that names both, only where keys are values, too.
    const auto heads = config.number("num_global_key_value_heads");
    if (heads != 0 && config.flag("attention_k_eq_v") != false) group.kv_heads = heads;
  }
  if (const auto rank = config.number("kv_lora_rank"); rank != 0) {
    group.kv_heads = 1;
    group.k_dim =
        std::min(rank + config.number("qk_rope_head_dim") + indexer_key(config, layer), widest);
    group.v_dim = 0;
  }
  group.window = full ? 0 : window;
  return group;
}

std::int64_t number_in(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  const auto* n = value != nullptr ? value->as_int() : nullptr;
  return n != nullptr && *n > 0 && *n <= 64 ? *n : 0;
}

std::string text_in(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  const std::string* text = value != nullptr ? value->as_text() : nullptr;
  return text != nullptr ? lower(text->substr(0, 64)) : "";
}

bool is_true(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  return value != nullptr && value->as_bool() != nullptr && *value->as_bool();
}

/// compressed-tensors keeps its bits in the first group of layers.
std::int64_t group_bits(const Value& config) {
  const Value* groups = config.find("config_groups");
  if (groups == nullptr || groups->as_map() == nullptr || groups->as_map()->empty()) return 0;
  const Value* weights = groups->as_map()->front().value.find("weights");
  return weights != nullptr ? number_in(*weights, "num_bits") : 0;
}

Quantisation quantisation_of(const Value& config) {
  Quantisation found;
  found.method = text_in(config, "quant_method");
  found.format = text_in(config, "format");
  found.bits = number_in(config, "bits");
  if (found.bits == 0) found.bits = number_in(config, "w_bit");
  if (found.bits == 0) found.bits = group_bits(config);
  if (found.method == "modelopt" || found.method.empty()) {
    const std::string algorithm = text_in(config, "quant_algo");
    if (!algorithm.empty()) found.format = algorithm;
  }
  if (is_true(config, "load_in_4bit") || is_true(config, "_load_in_4bit")) {
    found.method = "bitsandbytes";
    found.bits = 4;
    found.format = text_in(config, "bnb_4bit_quant_type");
  } else if (is_true(config, "load_in_8bit") || is_true(config, "_load_in_8bit")) {
    found.method = "bitsandbytes";
    found.bits = 8;
  }
  if (found.method.empty() && !found.format.empty()) found.method = found.format;
  return found;
}

void add_layers(const Config& config, Geometry& geometry) {
  const Kinds kinds(config);
  const std::int64_t window = window_of(config);
  const std::int64_t pattern = pattern_of(config);
  const std::string type = config.text("model_type");
  const bool everywhere = type == "mistral" || type == "mixtral" || type == "starcoder2";
  const bool one_thing_a_layer = type.starts_with("nemotron_h");
  const std::int64_t state = state_of(config);
  const std::int64_t shared = config.number("num_kv_shared_layers");
  for (std::int64_t layer = 0; layer < geometry.layers; ++layer) {
    const std::string kind = kinds.at(layer);
    const bool feeds_forward = one_thing_a_layer && (kind == "mlp" || kind == "moe");
    LayerGroup group;
    if (geometry.encoder || feeds_forward || layer >= geometry.layers - shared) {
      // Keeps nothing of its own.
    } else if (is_recurrent(config, layer, kind)) {
      group.state = state;
    } else {
      const bool by_pattern = pattern != 0 ? layer % pattern != pattern - 1 : everywhere;
      const bool slides = kind.empty() ? window != 0 && by_pattern
                                       : kind == "sliding_attention" || kind == "chunked_attention";
      group = attention_of(config, geometry, layer, !slides || window == 0, window);
      if (type == "falcon_h1" || kind == "hybrid") group.state = state;
    }
    add_layer(geometry, group);
  }
}

constexpr std::array<std::string_view, 12> encoders{
    "bert",       "roberta", "xlm-roberta", "distilbert", "mpnet", "nomic_bert",
    "modernbert", "deberta", "deberta-v2",  "albert",     "new",   "camembert"};

}  // namespace

ModelConfig read_config(const Value& value) {
  ModelConfig found;
  if (value.as_map() == nullptr) return found;
  const Config config(value);
  const Value::List* architectures = value.find("architectures") != nullptr
                                         ? value.find("architectures")->as_list()
                                         : config.list("architectures");
  found.architecture = first_of(architectures).substr(0, 128);
  if (found.architecture.empty()) found.architecture = config.text("model_type").substr(0, 128);
  found.licence = config.text("license").substr(0, 128);
  found.tied = config.flag("tie_word_embeddings").value_or(false);
  if (const Value* quantisation = config.find("quantization_config"))
    found.quantisation = quantisation_of(*quantisation);
  Geometry& geometry = found.geometry;
  geometry.layers = config.number(
      std::array<const char*, 4>{"num_hidden_layers", "n_layer", "num_layers", "n_layers"},
      most_layers);
  if (geometry.layers == 0) geometry.layers = std::min(Kinds(config).count(), most_layers);
  geometry.hidden = config.number(
      std::array<const char*, 4>{"hidden_size", "n_embd", "d_model", "dim"}, std::int64_t{1} << 24);
  geometry.heads = config.number(
      std::array<const char*, 4>{"num_attention_heads", "n_head", "num_heads", "n_heads"});
  geometry.context =
      config.number(std::array<const char*, 4>{"max_position_embeddings", "n_positions",
                                               "max_seq_len", "max_sequence_length"},
                    std::int64_t{1} << 32);
  const std::string type = config.text("model_type");
  geometry.encoder = std::find(encoders.begin(), encoders.end(), type) != encoders.end();
  geometry.vocab = geometry.encoder ? 0 : config.number("vocab_size", std::int64_t{1} << 32);
  add_layers(config, geometry);
  return found;
}

}  // namespace zed::model
