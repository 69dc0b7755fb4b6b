#include "plan/hardware.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/enum.hpp"
#include "base/text.hpp"
#include "plan/words.hpp"

namespace zed::plan {
namespace {

std::string words_of(const std::vector<const Gpu*>& gpus) {
  if (gpus.empty()) return "none";
  std::map<std::string, int> counted;
  for (const Gpu* gpu : gpus) {
    std::string size = gpu->vram_nominal_gb ? std::to_string(*gpu->vram_nominal_gb) + " GB"
                                            : show(gpu->vram_reported);
    ++counted[gpu->model + " " + size];
  }
  std::vector<std::string> parts;
  for (const auto& [text, count] : counted)
    parts.push_back(count == 1 ? text : std::to_string(count) + "x " + text);
  return join(parts, ", ");
}

/// What a card of this size is sold as. Unified memory is declared as the machine's, of which a GPU
/// may use a part: any size that the machine's memory reaches agrees.
bool has_size(const DeclaredGpu& declared, const Gpu& gpu, Bytes machine_memory) {
  if (!declared.vram) return true;
  if (gpu.memory_kind == MemoryKind::unified)
    return machine_memory.value >= declared.vram->bytes().value / 10 * 9;
  if (declared.vram->kind == MemorySize::Kind::nominal_gb && gpu.vram_nominal_gb)
    return *gpu.vram_nominal_gb == declared.vram->amount;
  return gpu.vram_reported == declared.vram->bytes();
}

std::set<std::string> words_in(std::string_view name) {
  std::set<std::string> words;
  std::string word;
  for (char c : lower(name) + " ") {
    if (c != ' ' && c != '-') {
      word += c;
    } else if (!word.empty()) {
      words.insert(std::move(word));
      word.clear();
    }
  }
  return words;
}

bool has_every_word(std::string_view declared, const Gpu& detected) {
  auto wanted = words_in(declared);
  auto had = words_in(detected.model);
  return std::includes(had.begin(), had.end(), wanted.begin(), wanted.end());
}

bool agrees(const DeclaredGpu& declared, const Gpu& gpu, const Node& node,
            const SameGpu& same_gpu) {
  bool same = same_gpu ? same_gpu(declared.model, gpu) : has_every_word(declared.model, gpu);
  return same && has_size(declared, gpu, node.facts.memory) &&
         (!declared.unified || gpu.memory_kind == MemoryKind::unified);
}

}  // namespace

std::vector<Change> hardware_notes(const DeclaredNode& declared, const Node& detected,
                                   const SameGpu& same_gpu) {
  std::vector<Change> notes;
  auto note = [&](std::string detail) {
    notes.push_back({Change::Kind::note, "node " + declared.name.str(), std::move(detail), false});
  };
  const NodeFacts& facts = detected.facts;
  if (declared.pool && !facts.pool.empty() && *declared.pool != facts.pool)
    note("declares pool " + *declared.pool + "; its agent serves pool " + facts.pool);
  if (declared.store && *declared.store != facts.store)
    note("declares store " + std::string(to_string(*declared.store)) + "; its agent has store " +
         std::string(to_string(facts.store)));
  const std::size_t others = notes.size();
  if (declared.gpus.empty()) return notes;
  std::vector<const Gpu*> rest;
  for (const Gpu& gpu : detected.gpus)
    rest.push_back(&gpu);
  for (const DeclaredGpu& wanted : declared.gpus) {
    std::int64_t found = 0;
    for (auto at = rest.begin(); at != rest.end() && found < wanted.count;) {
      bool same = agrees(wanted, **at, detected, same_gpu);
      at = same ? rest.erase(at) : at + 1;
      found += same ? 1 : 0;
    }
    if (found == wanted.count) continue;
    std::vector<const Gpu*> all;
    for (const Gpu& gpu : detected.gpus)
      all.push_back(&gpu);
    note("declares " + words_of(wanted) + "; detected " + words_of(all));
  }
  if (notes.size() == others && !rest.empty()) note("detected and not declared: " + words_of(rest));
  return notes;
}

}  // namespace zed::plan
