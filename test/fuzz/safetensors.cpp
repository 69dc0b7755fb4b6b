// Any bytes give a header or an error. The input is a configuration, an index and a shard, each but
// the last with its length in front (16 bits, least significant byte first).
#include "model/safetensors.hpp"

#include "model_files.hpp"
#include <algorithm>

namespace {

std::span<const std::byte> take(std::span<const std::byte>& rest) {
  if (rest.size() < 2) return {};
  const auto length =
      std::to_integer<std::size_t>(rest[0]) + 256 * std::to_integer<std::size_t>(rest[1]);
  const auto part = rest.subspan(2, std::min(length, rest.size() - 2));
  rest = rest.subspan(2 + part.size());
  return part;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace zed::model;
  auto rest = std::as_bytes(std::span(data, size));
  const auto config = take(rest);
  const auto index = take(rest);
  BytesInMemory source(rest);
  if (const auto file = read_safetensors(source)) {
    std::uint64_t sum = 0;
    for (const SafeTensor& tensor : file->tensors)
      sum += tensor.end - tensor.begin;
    if (sum != file->data_bytes || sum > rest.size()) std::abort();
  }
  FuzzFolder folder;
  folder.add("config.json", config);
  if (!index.empty()) folder.add("model.safetensors.index.json", index);
  folder.add("model.safetensors", rest);
  if (const auto facts = read_facts(folder); facts && *facts) hold(**facts);
  return 0;
}
