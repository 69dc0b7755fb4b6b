#include <algorithm>
#include <map>

#include "base/json.hpp"
#include "base/text.hpp"
#include "model/config.hpp"
#include "model/folder.hpp"
#include "model/safetensors.hpp"

namespace zed::model {
namespace {

constexpr std::uint64_t largest_config = 4 << 20;
constexpr std::uint64_t largest_card = 64 * 1024;

const FileEntry* entry_of(const ModelFiles& files, const std::string& name) {
  for (const FileEntry& entry : files.list())
    if (entry.name == name) return &entry;
  return nullptr;
}

/// The first `most` bytes of a small file; empty if it is not there or cannot be read.
std::string text_of(ModelFiles& files, const std::string& name, std::uint64_t most) {
  if (entry_of(files, name) == nullptr) return "";
  auto source = files.open(name);
  if (!source) return "";
  std::string text(static_cast<std::size_t>(std::min((*source)->size(), most)), '\0');
  if (!(*source)->read_at(0, std::as_writable_bytes(std::span(text)))) return "";
  return text;
}

/// A configuration that is not there is no error; one that does not read is noted.
Value config_of(ModelFiles& files, const std::string& name, Facts& facts) {
  const FileEntry* entry = entry_of(files, name);
  if (entry == nullptr) return {};
  if (entry->size <= largest_config)
    if (auto value = parse_json(text_of(files, name, largest_config))) return std::move(*value);
  facts.notes.push_back(name + " could not be read: it is no JSON, or larger than 4 MiB");
  return {};
}

/// "license: apache-2.0" of a model card's front matter.
std::string licence_of_card(const std::string& card) {
  if (!card.starts_with("---")) return "";
  for (const std::string& line : split(card.substr(0, card.find("\n---", 3)), '\n')) {
    constexpr std::string_view key = "license:";
    if (!line.starts_with(key)) continue;
    std::string word(trim(std::string_view(line).substr(key.size())));
    if (word.size() >= 2 && (word.front() == '"' || word.front() == '\''))
      word = word.substr(1, word.size() - 2);
    return word.substr(0, 128);
  }
  return "";
}

Result<Safetensors> read_shard(ModelFiles& files, const std::string& name) {
  auto source = files.open(name);
  if (!source) return fail(std::move(source).error().with("read model file " + name));
  auto file = read_safetensors(**source);
  if (!file) return fail(std::move(file).error().with("read model file " + name));
  return std::move(*file);
}

tl::unexpected<Error> missing(const std::string& name, std::size_t count) {
  return fail(ErrorCode::not_found,
              "a shard of " + std::to_string(count) + " is missing: there is no " + name,
              "put all shards into one folder and name the folder");
}

/// The shards by the index, or by the numbers in their names, or the one file.
Result<std::map<std::string, std::uint64_t>> shards_of(ModelFiles& files, const FoundModel& found) {
  std::map<std::string, std::uint64_t> shards;  // name -> tensors that the index puts there
  if (found.main.ends_with(".json")) {
    auto source = files.open(found.main);
    if (!source) return fail(std::move(source).error().with("read index " + found.main));
    auto index = read_safe_index(**source);
    if (!index) return fail(std::move(index).error().with("read index " + found.main));
    for (const auto& [name, tensors] : index->shards)
      shards.emplace(found.folder + name, tensors);
  } else {
    const std::uint64_t count = part_count(found.main);
    if (count == 0) shards.emplace(found.main, 0);
    for (std::uint64_t number = 1; number <= count; ++number)
      shards.emplace(*part_name(found.main, number, count), 0);
  }
  for (const auto& shard : shards)
    if (entry_of(files, shard.first) == nullptr) return missing(shard.first, shards.size());
  return shards;
}

/// Scales, zero points and the like: what belongs to quantised weights and is no weight.
bool is_auxiliary(std::string_view name) {
  constexpr std::array<std::string_view, 20> ends{".scales",
                                                  ".qzeros",
                                                  ".g_idx",
                                                  ".weight_scale",
                                                  ".weight_scale_inv",
                                                  ".weight_scale_2",
                                                  ".input_scale",
                                                  ".output_scale",
                                                  ".k_scale",
                                                  ".v_scale",
                                                  ".weight_zero_point",
                                                  ".weight_shape",
                                                  ".weight_g_idx",
                                                  ".absmax",
                                                  ".nested_absmax",
                                                  ".quant_map",
                                                  ".nested_quant_map",
                                                  "_scales",
                                                  ".SCB",
                                                  "_global_scale"};
  return name.find(".quant_state.") != std::string_view::npos ||
         std::any_of(ends.begin(), ends.end(),
                     [&](std::string_view end) { return name.ends_with(end); });
}

/// How many weights one element of a tensor holds, as a fraction; 0/1: it is none.
struct Packing {
  std::uint64_t weights = 0;
  std::uint64_t elements = 1;
};
Packing packing_of(const SafeTensor& tensor, std::int64_t bits) {
  const std::string_view type = tensor.type->name;
  if (tensor.type->plain_float || type.starts_with('F') || type == "I8") return {1, 1};
  if (type == "U8" && (tensor.name.ends_with(".weight") || tensor.name.ends_with("_blocks") ||
                       tensor.name.ends_with("_packed")))
    return bits == 8 ? Packing{1, 1} : Packing{2, 1};
  const bool packed = (type == "I32" || type == "U32") &&
                      (tensor.name.ends_with("weight") || tensor.name.ends_with("_packed"));
  if (packed && bits > 0 && bits <= 32) return {32, static_cast<std::uint64_t>(bits)};
  return {};
}

struct Sums {
  std::map<std::string_view, std::uint64_t> bytes_by_type;
  std::uint64_t bytes = 0;
  std::uint64_t weights = 0;
  std::uint64_t output = 0;
  std::uint64_t unknown = 0;  ///< bytes of packed weights whose bits nobody says
  bool has_packed = false;    ///< some weights are not plain floats

  void add(const SafeTensor& tensor, const Quantisation& quantisation) {
    const std::uint64_t size = tensor.end - tensor.begin;
    bytes += size;
    bytes_by_type[tensor.type->name] += size;
    if (tensor.name.ends_with("lm_head.weight")) output += size;
    if (is_auxiliary(tensor.name) && !(quantisation.method.empty() && tensor.type->plain_float))
      return;
    const Packing packing = packing_of(tensor, quantisation.bits);
    weights += tensor.elements * packing.weights / packing.elements;
    const bool is_weight = packing.weights != 0 || tensor.name.ends_with("qweight");
    if (is_weight && !tensor.type->plain_float) has_packed = true;
    if (is_weight && packing.weights == 0) unknown += size;
  }

  std::string dominant() const {
    auto most = std::max_element(bytes_by_type.begin(), bytes_by_type.end(),
                                 [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == bytes_by_type.end() ? "" : lower(most->first);
  }
};

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

/// "gptq-4bit", "nvfp4", "fp8": the words that people use.
std::string label_of(const Quantisation& q) {
  for (const char* plain : {"nvfp4", "mxfp4", "nf4"})
    if (contains(q.format, plain) || contains(q.method, plain)) return plain;
  if (contains(q.format, "float-quantized") || contains(q.format, "fp8") ||
      contains(q.method, "fp8"))
    return "fp8";
  const std::string bits = q.bits != 0 ? std::to_string(q.bits) : "";
  if (q.method == "compressed-tensors") return bits.empty() ? "compressed" : "int" + bits;
  if (q.method == "bitsandbytes") return bits.empty() ? "bnb" : "bnb-" + bits + "bit";
  return bits.empty() ? q.method : q.method + "-" + bits + "bit";
}

void label(const Sums& sums, const Quantisation& quantisation, Facts& facts) {
  facts.dtype = sums.dominant();
  if (!sums.has_packed) {
    // A configuration that asks for quantisation when the model is loaded: these files are not.
    if (!quantisation.method.empty()) facts.claimed_label = label_of(quantisation);
    return;
  }
  if (!quantisation.method.empty()) {
    facts.quantised = label_of(quantisation);
    return;
  }
  std::string_view packed;
  std::uint64_t most = 0;
  for (const auto& [name, size] : sums.bytes_by_type)
    if (!safe_type(name)->plain_float && size >= most) {
      packed = name;
      most = size;
    }
  facts.quantised = packed.starts_with("F8") ? "fp8" : packed == "I8" ? "int8" : lower(packed);
}

/// Also looks where older tools put it: quantize_config.json and hf_quant_config.json.
Quantisation quantisation_of(ModelFiles& files, const std::string& folder,
                             const ModelConfig& config, Facts& facts) {
  if (!config.quantisation.method.empty()) return config.quantisation;
  Value wrapped = Value::map();
  Value beside = config_of(files, folder + "quantize_config.json", facts);
  if (beside.as_map() != nullptr) {
    if (beside.find("quant_method") == nullptr) beside.set("quant_method", "gptq");
    wrapped.set("quantization_config", beside);
  } else if (const Value outer = config_of(files, folder + "hf_quant_config.json", facts);
             outer.find("quantization") != nullptr) {
    wrapped.set("quantization_config", *outer.find("quantization"));
  }
  return read_config(wrapped).quantisation;
}

}  // namespace

Result<Facts> read_safetensors_facts(ModelFiles& files, const FoundModel& found) {
  ZED_TRY(auto shards, shards_of(files, found));
  Facts facts;
  facts.format = "safetensors";
  facts.files = std::ssize(shards);
  const Value value = config_of(files, found.folder + "config.json", facts);
  ModelConfig config = read_config(value);
  if (value.is_null())
    facts.notes.emplace_back("without config.json its layers are not known: only weights count");
  config.quantisation = quantisation_of(files, found.folder, config, facts);
  Sums sums;
  for (const auto& [name, tensors] : shards) {
    ZED_TRY(auto shard, read_shard(files, name));
    if (shard.tensors.size() < tensors)
      return fail(ErrorCode::corrupt,
                  name + " has " + std::to_string(shard.tensors.size()) +
                      " tensors; its index puts " + std::to_string(tensors) + " there",
                  "it is another model's: fetch it again");
    for (const SafeTensor& tensor : shard.tensors)
      sums.add(tensor, config.quantisation);
  }
  facts.architecture = config.architecture;
  facts.licence = config.licence;
  if (facts.licence.empty())
    facts.licence = licence_of_card(text_of(files, found.folder + "README.md", largest_card));
  facts.parameters = sums.weights;
  facts.tensor_bytes = Bytes{static_cast<std::int64_t>(sums.bytes)};
  if (sums.weights > 0)
    facts.bits_per_weight =
        8.0 * static_cast<double>(sums.bytes) / static_cast<double>(sums.weights);
  if (sums.unknown > 0)
    facts.notes.push_back(show(Bytes{static_cast<std::int64_t>(sums.unknown)}) +
                          " of packed weights are not counted as parameters: nothing says how many "
                          "bits they have");
  label(sums, config.quantisation, facts);
  facts.geometry = config.geometry;
  facts.geometry.weights = facts.tensor_bytes;
  facts.geometry.output = Bytes{static_cast<std::int64_t>(sums.output)};
  return facts;
}

}  // namespace zed::model
