#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "model/facts.hpp"
#include "model/testing.hpp"

namespace zed::model {
namespace {

using testing::facts_of;
using testing::Folder;
using testing::GgufWriter;
using testing::safetensors_head;
using testing::Shape;
using testing::write_model;

std::string error_of(Folder& folder) {
  auto facts = read_facts(folder);
  return facts ? "" : facts.error().describe();
}

Facts must_read(Folder& folder) {
  auto facts = read_facts(folder);
  EXPECT_TRUE(facts.has_value()) << (facts ? "" : facts.error().describe());
  return facts && *facts ? **facts : Facts{};
}

std::string show(const Geometry& g) {
  std::vector<std::string> groups;
  for (const LayerGroup& group : g.groups) {
    std::string text = std::to_string(group.layers) + "x" + std::to_string(group.kv_heads) + "*" +
                       std::to_string(group.k_dim) + "+" + std::to_string(group.v_dim);
    if (group.window != 0) text += " window " + std::to_string(group.window);
    if (group.state != 0) text += " state " + std::to_string(group.state);
    groups.push_back(std::move(text));
  }
  return join(groups, ", ");
}

GgufWriter metadata(const std::string& architecture, std::uint32_t layers, std::uint32_t hidden,
                    std::uint32_t heads) {
  GgufWriter writer;
  writer.text("general.architecture", architecture)
      .u32(architecture + ".block_count", layers)
      .u32(architecture + ".embedding_length", hidden)
      .u32(architecture + ".attention.head_count", heads);
  return writer;
}

TEST(GgufFacts, layers_of_architectures) {
  const auto geometry = [](const GgufWriter& writer) { return show(facts_of(writer).geometry); };
  EXPECT_EQ(geometry(metadata("llama", 2, 512, 4)), "2x4*128+128");
  EXPECT_EQ(geometry(metadata("llama", 2, 512, 4).u32("llama.attention.head_count_kv", 1)),
            "2x1*128+128");
  EXPECT_EQ(geometry(metadata("gemma3", 12, 512, 4).u32("gemma3.attention.sliding_window", 512)),
            "10x4*128+128 window 512, 2x4*128+128");
  EXPECT_EQ(geometry(metadata("gemma2", 4, 512, 4)), "2x4*128+128 window 4096, 2x4*128+128");
  // A window that no pattern says to use is not used.
  EXPECT_EQ(geometry(metadata("llama", 2, 512, 4).u32("llama.attention.sliding_window", 512)),
            "2x4*128+128");
  EXPECT_EQ(geometry(metadata("gpt-oss", 3, 512, 4).u32("gpt-oss.attention.sliding_window", 128)),
            "2x4*128+128 window 128, 1x4*128+128");
  EXPECT_EQ(geometry(metadata("gemma4", 4, 512, 4)
                         .u32("gemma4.attention.sliding_window", 1024)
                         .array("gemma4.attention.sliding_window_pattern", {1, 1, 0, 1})
                         .array("gemma4.attention.head_count_kv", {8, 8, 1, 8})
                         .u32("gemma4.attention.key_length", 512)
                         .u32("gemma4.attention.value_length", 512)
                         .u32("gemma4.attention.key_length_swa", 256)
                         .u32("gemma4.attention.value_length_swa", 256)
                         .u32("gemma4.attention.shared_kv_layers", 1)),
            "2x8*256+256 window 1024, 1x1*512+512, 1x0*0+0");
}

TEST(GgufFacts, latent_attention_and_recurrence) {
  const auto geometry = [](const GgufWriter& writer) { return show(facts_of(writer).geometry); };
  EXPECT_EQ(geometry(metadata("deepseek2", 61, 7168, 128)
                         .u32("deepseek2.attention.head_count_kv", 1)
                         .u32("deepseek2.attention.key_length", 576)
                         .u32("deepseek2.attention.value_length", 512)
                         .u32("deepseek2.attention.key_length_mla", 192)
                         .u32("deepseek2.attention.value_length_mla", 128)),
            "61x1*576+0");
  // Sparse attention over latents: an indexer has a key of its own, in the layers that have one.
  const auto indexed = [](const std::string& name) {
    return metadata(name, 4, 7168, 128)
        .u32(name + ".attention.head_count_kv", 1)
        .u32(name + ".attention.key_length", 576)
        .u32(name + ".attention.key_length_mla", 256)
        .u32(name + ".attention.indexer.key_length", 128);
  };
  EXPECT_EQ(geometry(indexed("deepseek32")), "4x1*704+0");
  EXPECT_EQ(geometry(indexed("glm-dsa").array("glm-dsa.attention.indexer.types", {1, 0, 0, 1})),
            "2x1*704+0, 2x1*576+0");
  EXPECT_EQ(geometry(indexed("glm5-next").u32("glm5-next.attention.indexer.kpool", 4)),
            "4x1*960+0");
  EXPECT_EQ(geometry(metadata("mamba", 2, 768, 0)
                         .u32("mamba.ssm.conv_kernel", 4)
                         .u32("mamba.ssm.inner_size", 1536)
                         .u32("mamba.ssm.state_size", 16)),
            "2x0*0+0 state " + std::to_string((3 * 1536 + 16 * 1536) * 4));
  EXPECT_EQ(geometry(metadata("jamba", 2, 512, 4)
                         .array("jamba.attention.head_count_kv", {0, 2})
                         .u32("jamba.ssm.conv_kernel", 4)
                         .u32("jamba.ssm.inner_size", 1024)
                         .u32("jamba.ssm.state_size", 16)),
            "1x0*0+0 state " + std::to_string((3 * 1024 + 16 * 1024) * 4) + ", 1x2*128+128");
  // Layers that only feed forward have no state.
  EXPECT_EQ(geometry(metadata("nemotron_h", 4, 512, 4)
                         .array("nemotron_h.attention.head_count_kv", {0, 0, 2, 0})
                         .array("nemotron_h.feed_forward_length", {0, 2048, 0, 0})
                         .u32("nemotron_h.ssm.conv_kernel", 4)
                         .u32("nemotron_h.ssm.inner_size", 1024)
                         .u32("nemotron_h.ssm.state_size", 16)),
            "2x0*0+0 state " + std::to_string((3 * 1024 + 16 * 1024) * 4) +
                ", 1x0*128+128, 1x2*128+128");
  EXPECT_EQ(geometry(metadata("qwen35", 8, 512, 4)
                         .u32("qwen35.ssm.conv_kernel", 4)
                         .u32("qwen35.ssm.inner_size", 512)
                         .u32("qwen35.ssm.state_size", 128)
                         .u32("qwen35.ssm.group_count", 2)
                         .u32("qwen35.nextn_predict_layers", 1)),
            "6x0*0+0 state " + std::to_string((3 * (512 + 512) + 128 * 512) * 4) +
                ", 1x4*128+128, 1x0*0+0");
  EXPECT_EQ(geometry(metadata("rwkv7", 2, 768, 0).u32("rwkv7.wkv.head_size", 64)),
            "2x0*0+0 state " + std::to_string(768 * (2 + 64) * 4));
  const Facts bert = facts_of(metadata("bert", 2, 768, 12).texts("tokenizer.ggml.tokens", 100));
  EXPECT_TRUE(bert.geometry.encoder);
  EXPECT_EQ(bert.geometry.vocab, 0);
  EXPECT_EQ(show(bert.geometry), "2x0*0+0");
}

TEST(GgufFacts, absurd_figures_give_a_sane_geometry) {
  for (std::uint32_t absurd : {0u, 0xFFFFFFFFu}) {
    const Facts facts = facts_of(metadata("llama", absurd, absurd, absurd)
                                     .u32("llama.attention.head_count_kv", absurd)
                                     .u32("llama.ssm.inner_size", absurd)
                                     .u32("llama.context_length", absurd));
    EXPECT_TRUE(facts.geometry.is_sane());
  }
}

TEST(GgufFacts, labels_lie) {
  const auto labels = [](std::uint32_t file_type, const char* type) {
    GgufWriter writer;
    writer.u32("general.file_type", file_type)
        .tensor("blk.0.w", type, {256, 64})
        .tensor("n", "f32", {8});
    const Facts facts = facts_of(writer);
    return facts.quantised + "/" + facts.claimed_label;
  };
  EXPECT_EQ(labels(15, "q4_k"), "q4_k_m/");
  EXPECT_EQ(labels(15, "f16"), "/q4_k_m");
  EXPECT_EQ(labels(1, "q8_0"), "q8_0/f16");
  EXPECT_EQ(labels(7, "q4_k"), "q4_k/q8_0");
  EXPECT_EQ(labels(1, "f16"), "/");
  EXPECT_EQ(labels(1, "bf16"), "/");
  EXPECT_EQ(labels(12345, "iq2_xxs"), "iq2_xxs/");
}

TEST(GgufFacts, real_bits_per_weight) {
  const Facts facts =
      facts_of(write_model({"llama", 32, 4096, 32, 8, 128, 14336, 128256}, "q4_k_m"));
  EXPECT_NEAR(facts.bits_per_weight, 4.8944, 0.001);  // llama.cpp says so of the real file
  EXPECT_EQ(facts.quantised, "q4_k_m");
  EXPECT_EQ(facts.dtype, "q4_k");
  EXPECT_EQ(facts.parameters, 8'030'261'248u);
}

GgufWriter part(std::uint32_t number, std::uint32_t count, std::uint32_t tensors = 3) {
  GgufWriter writer;
  writer.u32("split.no", number - 1).u32("split.count", count).u32("split.tensors.count", tensors);
  if (number == 1) writer.text("general.architecture", "llama");
  writer.tensor("t" + std::to_string(number), "f32", {number});
  return writer;
}

Folder& add(Folder& folder, const std::string& name, const GgufWriter& writer) {
  return folder.add(name, writer.head(), writer.size());
}

TEST(GgufFacts, split_files) {
  Folder folder;
  add(folder, "m-00001-of-00003.gguf", part(1, 3));
  add(folder, "m-00003-of-00003.gguf", part(3, 3));
  EXPECT_NE(error_of(folder).find("part 2 of 3 is missing: there is no m-00002-of-00003.gguf"),
            std::string::npos);
  Folder whole = folder;
  add(whole, "m-00002-of-00003.gguf", part(2, 3));
  const Facts facts = must_read(whole);
  EXPECT_EQ(facts.files, 3);
  EXPECT_EQ(facts.tensor_bytes, Bytes{4 * (1 + 2 + 3)});
  EXPECT_EQ(facts.architecture, "llama");
  Folder renamed = folder;
  add(renamed, "m-00002-of-00003.gguf", part(3, 3));
  EXPECT_NE(error_of(renamed).find("says that it is part 3 of 3"), std::string::npos);
  Folder fewer = folder;
  add(fewer, "m-00002-of-00003.gguf", part(2, 3, 4));
  EXPECT_EQ(error_of(fewer), "");  // the first part's word counts
  Folder wrong;
  add(wrong, "m-00001-of-00002.gguf", part(1, 2));
  add(wrong, "m-00002-of-00002.gguf", part(2, 2));
  EXPECT_NE(error_of(wrong).find("have 2 tensors; 3 belong to it"), std::string::npos);
  Folder alone;
  add(alone, "m.gguf", part(1, 2));
  EXPECT_NE(error_of(alone).find("its name does not say which"), std::string::npos);
  Folder million;
  add(million, "m-00001-of-00002.gguf", part(1, 1'000'000'000));
  EXPECT_NE(error_of(million).find("at most 1024"), std::string::npos);
}

TEST(GgufFacts, folders) {
  Folder empty;
  EXPECT_FALSE(*read_facts(empty));
  Folder two;
  add(two, "a-q4.gguf", part(1, 1, 0));
  add(two, "a-q8.gguf", part(1, 1, 0));
  EXPECT_NE(error_of(two).find("several models in one folder: a-q4.gguf and a-q8.gguf"),
            std::string::npos);
  Folder seeing;
  add(seeing, "m.gguf", write_model({"llama", 1, 64, 1, 1, 64, 64, 100}, "f16"));
  GgufWriter projector;
  projector.text("general.architecture", "clip")
      .u32("clip.vision.image_size", 896)
      .u32("clip.vision.patch_size", 14)
      .u32("clip.vision.attention.head_count", 16)
      .u32("clip.vision.embedding_length", 1152)
      .u32("clip.vision.feed_forward_length", 4304)
      .tensor("v.w", "f16", {1152, 1000});
  add(seeing, "mmproj-m-f16.gguf", projector);
  const Facts facts = must_read(seeing);
  EXPECT_EQ(facts.geometry.projector, Bytes{1152 * 1000 * 2});
  EXPECT_GE(facts.geometry.projector_compute, gibibytes(1));
  EXPECT_EQ(facts.tensor_bytes, facts.geometry.weights + facts.geometry.projector);
}

TEST(GgufFacts, where_weights_go) {
  const Shape untied{"llama", 1, 256, 2, 2, 128, 256, 1000};
  const Facts apart = facts_of(write_model(untied, "f16"));
  EXPECT_EQ(apart.geometry.embedding, Bytes{256 * 1000 * 2});
  EXPECT_EQ(apart.geometry.output, Bytes{256 * 1000 * 2 + 256 * 4});
  Shape shape = untied;
  shape.tied = true;
  const Facts tied = facts_of(write_model(shape, "f16"));
  EXPECT_EQ(tied.geometry.embedding, Bytes{});
  EXPECT_EQ(tied.geometry.output, Bytes{256 * 1000 * 2 + 256 * 4});
}

std::string tensor(const std::string& name, const std::string& type,
                   const std::vector<std::uint64_t>& shape, std::uint64_t& place, unsigned bits) {
  std::string text = "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":[";
  std::uint64_t bytes = bits;
  std::vector<std::string> extents;
  for (const std::uint64_t extent : shape) {
    extents.push_back(std::to_string(extent));
    bytes *= extent;
  }
  text += join(extents, ",") + "],\"data_offsets\":[" + std::to_string(place) + ",";
  place += bytes / 8;
  return text + std::to_string(place) + "]}";
}

/// A folder of one shard with these tensors and that configuration.
class SafeFolder {
public:
  SafeFolder& tensor(const std::string& name, const std::string& type,
                     const std::vector<std::uint64_t>& shape, unsigned bits) {
    entries_.push_back(model::tensor(name, type, shape, place_, bits));
    return *this;
  }
  SafeFolder& file(const std::string& name, std::string text) {
    folder_.add(name, std::move(text));
    return *this;
  }
  Facts facts() {
    const std::string head = safetensors_head("{" + join(entries_, ",") + "}");
    folder_.add("model.safetensors", head, head.size() + place_);
    return must_read(folder_);
  }

private:
  Folder folder_;
  std::vector<std::string> entries_;
  std::uint64_t place_ = 0;
};

TEST(SafetensorsFacts, plain) {
  const Facts facts =
      SafeFolder()
          .tensor("lm_head.weight", "BF16", {1000, 64}, 16)
          .tensor("model.layers.0.w", "BF16", {64, 64}, 16)
          .tensor("model.position_ids", "I64", {512}, 64)
          .file("config.json",
                R"({"architectures":["LlamaForCausalLM"],"num_hidden_layers":2,)"
                R"("hidden_size":512,"num_attention_heads":8,"num_key_value_heads":2,)"
                R"("max_position_embeddings":4096,"vocab_size":1000})")
          .file("README.md", "---\nlanguage: en\nlicense: apache-2.0\n---\n# A model\n")
          .facts();
  EXPECT_EQ(facts.format, "safetensors");
  EXPECT_EQ(facts.architecture, "LlamaForCausalLM");
  EXPECT_EQ(facts.licence, "apache-2.0");
  EXPECT_EQ(facts.parameters, 1000u * 64 + 64 * 64);
  EXPECT_EQ(facts.tensor_bytes, Bytes{2 * (1000 * 64 + 64 * 64) + 8 * 512});
  EXPECT_EQ(facts.quantised, "");
  EXPECT_EQ(facts.dtype, "bf16");
  EXPECT_EQ(show(facts.geometry), "2x2*64+64");
  EXPECT_EQ(facts.geometry.context, 4096);
}

TEST(SafetensorsFacts, packed_numbers_are_not_parameters) {
  const auto gptq = [](const char* config) {
    return SafeFolder()
        .tensor("l.qweight", "I32", {512, 4096}, 32)
        .tensor("l.qzeros", "I32", {32, 512}, 32)
        .tensor("l.g_idx", "I32", {4096}, 32)
        .tensor("l.scales", "F16", {32, 4096}, 16)
        .tensor("norm.weight", "F16", {4096}, 16)
        .file("config.json", config)
        .facts();
  };
  const Facts four = gptq(R"({"quantization_config":{"quant_method":"gptq","bits":4}})");
  EXPECT_EQ(four.parameters, 4096u * 4096 + 4096);
  EXPECT_EQ(four.quantised, "gptq-4bit");
  EXPECT_LT(four.bits_per_weight, 4.6);
  const Facts unknown = gptq("{}");
  EXPECT_EQ(unknown.parameters, 32u * 4096 + 4096);  // nobody says how many bits
  EXPECT_EQ(unknown.quantised, "i32");
  EXPECT_EQ(unknown.notes.size(), 1u);
}

TEST(SafetensorsFacts, ways_to_quantise) {
  const Facts fp8 = SafeFolder()
                        .tensor("l.weight", "F8_E4M3", {256, 256}, 8)
                        .tensor("l.weight_scale_inv", "F32", {2, 2}, 32)
                        .file("config.json", R"({"quantization_config":{"quant_method":"fp8"}})")
                        .facts();
  EXPECT_EQ(fp8.quantised, "fp8");
  EXPECT_EQ(fp8.parameters, 256u * 256);
  const Facts nvfp4 =
      SafeFolder()
          .tensor("l.weight", "U8", {256, 128}, 8)
          .tensor("l.weight_scale", "F8_E4M3", {256, 16}, 8)
          .tensor("l.weight_scale_2", "F32", {}, 32)
          .file("hf_quant_config.json", R"({"quantization":{"quant_algo":"NVFP4"}})")
          .facts();
  EXPECT_EQ(nvfp4.quantised, "nvfp4");
  EXPECT_EQ(nvfp4.parameters, 256u * 256);
  const Facts bnb =
      SafeFolder()
          .tensor("l.weight", "U8", {32768, 1}, 8)
          .tensor("l.weight.absmax", "U8", {1024}, 8)
          .tensor("l.weight.quant_state.bitsandbytes__nf4", "U8", {88}, 8)
          .file("config.json", R"({"quantization_config":{"load_in_4bit":true,)"
                               R"("bnb_4bit_quant_type":"nf4","quant_method":"bitsandbytes"}})")
          .facts();
  EXPECT_EQ(bnb.quantised, "nf4");
  EXPECT_EQ(bnb.parameters, 65536u);
  const Facts packed =
      SafeFolder()
          .tensor("l.weight_packed", "I32", {256, 32}, 32)
          .tensor("l.weight_scale", "BF16", {256, 2}, 16)
          .tensor("l.weight_shape", "I64", {2}, 64)
          .file("config.json", R"({"quantization_config":{"quant_method":"compressed-tensors",)"
                               R"("format":"pack-quantized",)"
                               R"("config_groups":{"g":{"weights":{"num_bits":4}}}}})")
          .facts();
  EXPECT_EQ(packed.quantised, "int4");
  EXPECT_EQ(packed.parameters, 256u * 256);
  const Facts mxfp4 =
      SafeFolder()
          .tensor("mlp.experts.up_blocks", "U8", {4, 64, 2, 16}, 8)
          .tensor("mlp.experts.up_scales", "U8", {4, 64, 2}, 8)
          .file("config.json", R"({"quantization_config":{"quant_method":"mxfp4"}})")
          .facts();
  EXPECT_EQ(mxfp4.quantised, "mxfp4");
  EXPECT_EQ(mxfp4.parameters, 4u * 64 * 64);
  // Quantised when it is loaded: the files are not.
  const Facts later = SafeFolder()
                          .tensor("l.weight", "BF16", {64, 64}, 16)
                          .file("config.json", R"({"quantization_config":{"load_in_4bit":true}})")
                          .facts();
  EXPECT_EQ(later.quantised, "");
  EXPECT_EQ(later.claimed_label, "bnb-4bit");
}

TEST(SafetensorsFacts, layers_of_configurations) {
  const auto geometry = [](const std::string& config) {
    return show(
        SafeFolder().tensor("w", "F16", {1}, 16).file("config.json", config).facts().geometry);
  };
  EXPECT_EQ(geometry(R"({"n_layer":2,"n_embd":768,"n_head":12})"), "2x12*64+64");
  EXPECT_EQ(geometry(R"({"model_type":"gemma3","text_config":{"num_hidden_layers":12,)"
                     R"("hidden_size":512,"num_attention_heads":4,"head_dim":256,)"
                     R"("num_key_value_heads":2,"sliding_window":1024}})"),
            "10x2*256+256 window 1024, 2x2*256+256");
  EXPECT_EQ(
      geometry(R"({"num_hidden_layers":2,"hidden_size":512,"num_attention_heads":4,)"
               R"("sliding_window":128,"layer_types":["sliding_attention","full_attention"]})"),
      "1x4*128+128 window 128, 1x4*128+128");
  EXPECT_EQ(geometry(R"({"model_type":"qwen2","num_hidden_layers":2,"hidden_size":512,)"
                     R"("num_attention_heads":4,"sliding_window":128,"use_sliding_window":false})"),
            "2x4*128+128");
  EXPECT_EQ(geometry(R"({"num_hidden_layers":61,"hidden_size":7168,"num_attention_heads":128,)"
                     R"("kv_lora_rank":512,"qk_rope_head_dim":64})"),
            "61x1*576+0");
  EXPECT_EQ(geometry(R"({"model_type":"bert","num_hidden_layers":6,"hidden_size":384,)"
                     R"("num_attention_heads":12})"),
            "6x0*0+0");
  EXPECT_EQ(geometry(R"({"num_hidden_layers":4,"hidden_size":512,"num_attention_heads":4,)"
                     R"("full_attention_interval":4,"linear_key_head_dim":128,)"
                     R"("linear_value_head_dim":128,"linear_num_key_heads":2,)"
                     R"("linear_num_value_heads":4,"linear_conv_kernel_dim":4})"),
            "3x0*0+0 state " + std::to_string(4 * (4 * 128 * 128 + 3 * (2 * 2 * 128 + 4 * 128))) +
                ", 1x4*128+128");
  EXPECT_EQ(geometry(R"({"num_hidden_layers":3,"hidden_size":7168,"num_attention_heads":128,)"
                     R"("kv_lora_rank":512,"qk_rope_head_dim":64,"index_head_dim":128,)"
                     R"("indexer_types":["full","shared","full"]})"),
            "2x1*704+0, 1x1*576+0");
  const std::string mamba = R"("hidden_size":512,"num_attention_heads":4,"ssm_state_size":64,)"
                            R"("mamba_num_heads":8,"mamba_head_dim":32,"n_groups":2,)"
                            R"("conv_kernel":4,"expand":2)";
  const std::string nemotron = "2x0*0+0 state " +
                               std::to_string(4 * (256 * 64 + 3 * (256 + 2 * 2 * 64))) +
                               ", 1x0*0+0, 1x4*128+128";
  EXPECT_EQ(
      geometry(R"({"model_type":"nemotron_h","hybrid_override_pattern":"M-*M",)" + mamba + "}"),
      nemotron);
  EXPECT_EQ(geometry(R"({"model_type":"nemotron_h","layers_block_type":["linear_attention","moe",)"
                     R"("full_attention","linear_attention"],)" +
                     mamba + "}"),
            nemotron);
  const auto gemma = [&](const std::string& keys_are_values) {
    return geometry(R"({"num_hidden_layers":2,"hidden_size":512,"num_attention_heads":4,)"
                    R"("num_key_value_heads":2,"head_dim":128,"sliding_window":512,)"
                    R"("global_head_dim":256,"num_global_key_value_heads":1,)"
                    R"("layer_types":["sliding_attention","full_attention"],)"
                    R"("attention_k_eq_v":)" +
                    keys_are_values + "}");
  };
  EXPECT_EQ(gemma("true"), "1x2*128+128 window 512, 1x1*256+256");
  EXPECT_EQ(gemma("false"), "1x2*128+128 window 512, 1x2*256+256");
  // Attention and recurrence side by side; recurrence alone.
  EXPECT_EQ(geometry(R"({"model_type":"falcon_h1","num_hidden_layers":2,"hidden_size":512,)"
                     R"("num_attention_heads":4,"mamba_d_ssm":768,"mamba_d_state":64,)"
                     R"("mamba_n_groups":1,"mamba_d_conv":4})"),
            "2x4*128+128 state " + std::to_string(4 * (768 * 64 + 3 * (768 + 2 * 64))));
  EXPECT_EQ(geometry(R"({"model_type":"falcon_mamba","num_hidden_layers":2,"hidden_size":256,)"
                     R"("intermediate_size":512,"state_size":16,"conv_kernel":4})"),
            "2x0*0+0 state " + std::to_string(4 * (512 * 16 + 3 * 512)));
  EXPECT_EQ(geometry(R"({"model_type":"lfm2","num_hidden_layers":2,"hidden_size":256,)"
                     R"("num_attention_heads":4,"conv_L_cache":3,)"
                     R"("layer_types":["conv","full_attention"]})"),
            "1x0*0+0 state " + std::to_string(4 * 256 * 2) + ", 1x4*64+64");
  EXPECT_EQ(geometry(R"([1, 2])"), "");
  EXPECT_EQ(geometry(R"({"num_hidden_layers":-5,"hidden_size":"x","num_attention_heads":1e99})"),
            "");
}

TEST(SafetensorsFacts, shards) {
  const auto shard = [](const std::string& name) {
    std::uint64_t place = 0;
    return safetensors_head("{" + tensor(name, "F32", {4}, place, 32) + "}");
  };
  const auto add_shard = [&](Folder& folder, const std::string& file, const std::string& name) {
    const std::string head = shard(name);
    folder.add(file, head, head.size() + 16);
  };
  Folder folder;
  folder.add("model.safetensors.index.json",
             R"({"weight_map":{"a":"model-00001-of-00002.safetensors",)"
             R"("b":"model-00002-of-00002.safetensors"}})");
  add_shard(folder, "model-00001-of-00002.safetensors", "a");
  EXPECT_NE(error_of(folder).find("there is no model-00002-of-00002.safetensors"),
            std::string::npos);
  Folder whole = folder;
  add_shard(whole, "model-00002-of-00002.safetensors", "b");
  EXPECT_EQ(must_read(whole).tensor_bytes, Bytes{32});
  Folder nameless;
  add_shard(nameless, "model-00001-of-00002.safetensors", "a");
  EXPECT_NE(error_of(nameless).find("there is no model-00002-of-00002.safetensors"),
            std::string::npos);
  Folder swapped;
  swapped.add("model.safetensors.index.json",
              R"({"weight_map":{"a":"m.safetensors","b":"m.safetensors"}})");
  add_shard(swapped, "m.safetensors", "a");
  EXPECT_NE(error_of(swapped).find("has 1 tensors; its index puts 2 there"), std::string::npos);
}

/// Headers of real files, and what the formats' own packages say of them (tools/model_oracle.py).
TEST(RealFiles, agree_with_the_formats_own_packages) {
  const std::string folder = std::string(ZED_SOURCE_DIR) + "/test/fixtures/model/";
  const auto text_of = [&](const std::string& name) {
    std::ifstream file(folder + name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  std::istringstream table(text_of("expected.tsv"));
  std::string line;
  std::getline(table, line);
  int rows = 0;
  while (std::getline(table, line)) {
    const std::vector<std::string> cells = split(line, '\t');
    ASSERT_EQ(cells.size(), 8u) << line;
    Folder files;
    files.add(cells[0], text_of(cells[0] + ".head"), std::stoull(cells[1]));
    if (cells[0].ends_with(".safetensors"))
      files.add("config.json", text_of("config.json")).add("README.md", text_of("README.md"));
    const Facts facts = must_read(files);
    EXPECT_EQ(facts.tensor_bytes, Bytes{std::stoll(cells[2])}) << line;
    EXPECT_EQ(facts.parameters, std::stoull(cells[3])) << line;
    EXPECT_EQ(facts.architecture, cells[4]) << line;
    EXPECT_EQ(!facts.quantised.empty(), cells[5] == "1") << line;
    EXPECT_EQ(facts.geometry.context, std::stoll(cells[6])) << line;
    EXPECT_EQ(facts.licence, cells[7]) << line;
    EXPECT_TRUE(facts.geometry.encoder) << line;
    EXPECT_EQ(facts.geometry.layers, 6) << line;
    ++rows;
  }
  EXPECT_GE(rows, 7);
}

}  // namespace
}  // namespace zed::model
