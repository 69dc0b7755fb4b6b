#include "model/facts.hpp"

#include <algorithm>

#include "model/folder.hpp"

namespace zed::model {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 56;
constexpr std::size_t most_groups = 256;

bool within(std::int64_t value, std::int64_t bound) {
  return value >= 0 && value <= bound;
}

/// Widths are bounded so that a product of three and a context stays below 2^63.
bool is_sane(const LayerGroup& group) {
  return within(group.layers, 1 << 16) && within(group.kv_heads, 1 << 16) &&
         within(group.k_dim, 1 << 16) && within(group.v_dim, 1 << 16) &&
         within(group.window, std::int64_t{1} << 32) && within(group.state, std::int64_t{1} << 40);
}

}  // namespace

bool Geometry::is_sane() const {
  const bool sizes = within(weights.value, most) && within(embedding.value, weights.value) &&
                     within(output.value, weights.value - embedding.value) &&
                     within(projector.value, most) && within(projector_compute.value, most);
  return sizes && within(layers, 1 << 16) && within(hidden, 1 << 24) && within(heads, 1 << 16) &&
         within(vocab, std::int64_t{1} << 32) && within(context, std::int64_t{1} << 32) &&
         groups.size() <= most_groups &&
         std::all_of(groups.begin(), groups.end(),
                     [](const LayerGroup& group) { return model::is_sane(group); });
}

void add_layer(Geometry& geometry, LayerGroup layer) {
  layer.layers = 0;
  for (LayerGroup& group : geometry.groups) {
    LayerGroup alike = group;
    alike.layers = 0;
    if (alike == layer) {
      ++group.layers;
      return;
    }
  }
  layer.layers = 1;
  geometry.groups.push_back(layer);
}

Result<std::optional<Facts>> read_facts(ModelFiles& files) {
  const FoundModel found = find_model(files.list());
  if (found.several)
    return fail(ErrorCode::invalid,
                "there are several models in one folder: " + found.main + " and " + *found.several,
                "name one file, or a folder that holds one model");
  switch (found.kind) {
  case FoundModel::Kind::none: return std::optional<Facts>();
  case FoundModel::Kind::gguf: {
    ZED_TRY(auto facts, read_gguf_facts(files, found));
    return std::optional<Facts>(std::move(facts));
  }
  case FoundModel::Kind::safetensors: {
    ZED_TRY(auto facts, read_safetensors_facts(files, found));
    return std::optional<Facts>(std::move(facts));
  }
  }
  return std::optional<Facts>();
}

}  // namespace zed::model
