#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "model/folder.hpp"
#include "model/gguf.hpp"
#include "model/gguf_geometry.hpp"

namespace zed::model {
namespace {

constexpr std::uint64_t most_parts = 1024;

Result<Gguf> read_part(ModelFiles& files, const std::string& name) {
  auto source = files.open(name);
  if (!source) return fail(std::move(source).error().with("read model file " + name));
  auto file = read_gguf(**source);
  if (!file) return fail(std::move(file).error().with("read model file " + name));
  return std::move(*file);
}

bool is_there(const ModelFiles& files, const std::string& name) {
  const auto& list = files.list();
  return std::any_of(list.begin(), list.end(),
                     [&](const FileEntry& entry) { return entry.name == name; });
}

/// All parts of a split file, the one that was named first. Each says how many there are and which
/// it is; one that is missing or another model's is an error.
class Parts {
public:
  Parts(ModelFiles& files, std::string main) : files_(files), main_(std::move(main)) {}

  Result<std::vector<Gguf>> read() {
    ZED_TRY(auto named, read_part(files_, main_));
    const auto count = static_cast<std::uint64_t>(named.number("split.count").value_or(1));
    const auto tensors =
        static_cast<std::uint64_t>(named.number("split.tensors.count").value_or(0));
    if (count <= 1) return std::vector<Gguf>{std::move(named)};
    if (count > most_parts)
      return fail(ErrorCode::invalid, main_ + " says that it is one of " + std::to_string(count) +
                                          " parts; at most 1024 are read");
    std::vector<Gguf> parts;
    std::uint64_t found = 0;
    for (std::uint64_t number = 1; number <= count; ++number) {
      ZED_TRY(auto part, read_numbered(number, count));
      found += part.tensors.size();
      parts.push_back(std::move(part));
    }
    if (tensors != 0 && found != tensors)
      return fail(ErrorCode::corrupt,
                  "the parts of " + main_ + " have " + std::to_string(found) + " tensors; " +
                      std::to_string(tensors) + " belong to it",
                  "a part is another file's: fetch them all again");
    return parts;
  }

private:
  Result<Gguf> read_numbered(std::uint64_t number, std::uint64_t count) {
    const auto name = part_name(main_, number, count);
    if (!name)
      return fail(ErrorCode::invalid,
                  main_ + " is one of " + std::to_string(count) +
                      " parts, but its name does not say which",
                  "parts are called NAME-00001-of-0000N.gguf");
    if (!is_there(files_, *name))
      return fail(ErrorCode::not_found,
                  "part " + std::to_string(number) + " of " + std::to_string(count) +
                      " is missing: there is no " + *name,
                  "put all parts into one folder and name the folder");
    ZED_TRY(auto part, read_part(files_, *name));
    const auto own = static_cast<std::uint64_t>(part.number("split.no").value_or(0));
    const auto its_count = static_cast<std::uint64_t>(part.number("split.count").value_or(0));
    if (own + 1 != number || its_count != count)
      return fail(ErrorCode::corrupt,
                  *name + " says that it is part " + std::to_string(own + 1) + " of " +
                      std::to_string(its_count),
                  "it was renamed, or is another model's");
    return part;
  }

  ModelFiles& files_;
  std::string main_;
};

/// Of the tensor names that llama.cpp gives; layers are "blk.N.…".
enum class Role { embedding, output, other };
Role role_of(std::string_view name) {
  if (name == "token_embd.weight" || name == "position_embd.weight" ||
      name == "token_types.weight" || name == "per_layer_token_embd.weight")
    return Role::embedding;
  if (name == "output.weight" || name == "output.bias" || name == "output_norm.weight")
    return Role::output;
  return Role::other;
}

struct Sums {
  std::map<std::uint32_t, std::uint64_t> bytes_by_type;  ///< by the type's id
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;
  std::uint64_t embedding = 0;
  std::uint64_t token_embedding = 0;
  std::uint64_t output = 0;
  bool has_output = false;
  bool quantised = false;

  void add(const GgufTensor& tensor) {
    bytes_by_type[tensor.type->id] += tensor.bytes;
    bytes += tensor.bytes;
    elements += tensor.elements;
    quantised = quantised || tensor.type->quantised;
    const Role role = role_of(tensor.name);
    if (role == Role::embedding) embedding += tensor.bytes;
    if (tensor.name == "token_embd.weight") token_embedding += tensor.bytes;
    if (role == Role::output) output += tensor.bytes;
    has_output = has_output || tensor.name == "output.weight";
  }

  /// The type of most bytes; among those that are quantised if `only_quantised`.
  std::string dominant(bool only_quantised) const {
    const GgmlType* best = nullptr;
    std::uint64_t most = 0;
    for (const auto& [id, sum] : bytes_by_type) {
      const GgmlType* type = ggml_type(id);
      if ((only_quantised && !type->quantised) || (best != nullptr && sum <= most)) continue;
      best = type;
      most = sum;
    }
    return best != nullptr ? std::string(best->name) : "";
  }
};

/// "q4" of "q4_k_m" and of "q4_0": what a label and the tensors must have in common.
std::string_view family(std::string_view name) {
  return name.substr(0, name.find('_'));
}

/// A label that no tensor bears out is not repeated: a file that says Q4_K_M and holds f16 is f16.
void label(const Sums& sums, std::string_view claimed, Facts& facts) {
  facts.dtype = sums.dominant(false);
  if (!sums.quantised) {
    if (!claimed.empty() && claimed != "f32" && claimed != "f16" && claimed != "bf16")
      facts.claimed_label = claimed;
    return;
  }
  const bool borne_out =
      std::any_of(sums.bytes_by_type.begin(), sums.bytes_by_type.end(), [&](const auto& entry) {
        return family(ggml_type(entry.first)->name) == family(claimed);
      });
  const bool says_unquantised = claimed == "f32" || claimed == "f16" || claimed == "bf16";
  if (!claimed.empty() && borne_out && !says_unquantised) {
    facts.quantised = claimed;
    return;
  }
  facts.quantised = sums.dominant(true);
  facts.claimed_label = claimed;
}

/// The lookup table stays in host memory; where the same table also makes the logits there are two
/// copies, one of them on the GPU (llama.cpp's model loader).
void place_weights(const Sums& sums, Geometry& geometry) {
  const auto bytes = [](std::uint64_t n) { return Bytes{static_cast<std::int64_t>(n)}; };
  geometry.weights = bytes(sums.bytes);
  const bool tied = !sums.has_output && geometry.vocab != 0;
  geometry.embedding = bytes(tied ? sums.embedding - sums.token_embedding : sums.embedding);
  geometry.output = bytes(tied ? sums.output + sums.token_embedding : sums.output);
}

Status add_projector(ModelFiles& files, const std::string& name, Facts& facts) {
  ZED_TRY(auto projector, read_part(files, name));
  facts.geometry.projector = Bytes{static_cast<std::int64_t>(projector.tensor_bytes())};
  facts.geometry.projector_compute = projector_compute(projector);
  facts.tensor_bytes += facts.geometry.projector;
  facts.notes.push_back("with its projector " + name);
  return {};
}

}  // namespace

Result<Facts> read_gguf_facts(ModelFiles& files, const FoundModel& found) {
  ZED_TRY(auto parts, Parts(files, found.main).read());
  Sums sums;
  for (const Gguf& part : parts)
    for (const GgufTensor& tensor : part.tensors)
      sums.add(tensor);
  const Gguf& first = parts.front();
  Facts facts;
  facts.format = "gguf";
  facts.files = std::ssize(parts);
  facts.name = first.text("general.name");
  facts.architecture = first.text("general.architecture");
  facts.licence = first.text("general.license");
  facts.parameters = sums.elements;
  facts.tensor_bytes = Bytes{static_cast<std::int64_t>(sums.bytes)};
  if (sums.elements > 0)
    facts.bits_per_weight =
        8.0 * static_cast<double>(sums.bytes) / static_cast<double>(sums.elements);
  const auto file_type = first.number("general.file_type");
  label(sums, file_type ? file_type_name(static_cast<std::uint64_t>(*file_type)) : "", facts);
  facts.geometry = gguf_geometry(first);
  place_weights(sums, facts.geometry);
  if (facts.architecture == "clip") {
    facts.geometry.projector = facts.geometry.weights;
    facts.geometry.projector_compute = projector_compute(first);
    facts.geometry.weights = facts.geometry.embedding = facts.geometry.output = Bytes{};
  }
  if (sums.elements == 0) facts.notes.emplace_back("it has a vocabulary and no weights");
  if (!found.projector.empty()) ZED_CHECK(add_projector(files, found.projector, facts));
  return facts;
}

}  // namespace zed::model
