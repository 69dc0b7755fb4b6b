// Any bytes are a files stream or an error; what reaches the staging area has passed every check,
// and a list of changes that is accepted leads to a legal tree.
#include <algorithm>
#include <cstdlib>

#include "store/dir/index.hpp"
#include "store/dir/metadata.hpp"
#include "store/files/receiver.hpp"

namespace {

using namespace zed;
using namespace zed::store;

class NoStaging final : public Staging {
public:
  Result<std::optional<Found>> find() override { return std::optional<Found>(); }
  Status clear() override { return {}; }
  Status keep_plan(std::span<const std::byte> plan) override {
    if (plan.size() < preamble_size) std::abort();
    return {};
  }
  Status append(std::size_t, std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (bytes.empty() || bytes.size() > frame_limit || offset % frame_limit != 0) std::abort();
    return {};
  }
  Status read(std::size_t, std::uint64_t, std::span<std::byte>) override { std::abort(); }
  Status keep_offset(std::uint64_t) override { return {}; }
};

/// A hash is not guessed by chance, so the list itself is tried behind it.
void try_delta(std::span<const std::byte> bytes) {
  auto delta = decode_delta(bytes);
  if (!delta) return;
  ByteVector again = encode(*delta);
  if (again.size() != bytes.size() || !std::equal(again.begin(), again.end(), bytes.begin()))
    std::abort();
  auto manifest = apply({}, *delta);
  if (!manifest) return;
  for (const Entry& entry : manifest->entries())
    if (!check_path(entry.path) || entry.path.front() == '/') std::abort();
  Preamble preamble{CheckpointId{}, std::nullopt, manifest->digest(), bytes.size(), 0};
  NoStaging staging;
  Receiver receiver({CheckpointId{}, std::nullopt, {}}, staging);
  ByteVector stream = encode(preamble);
  auto header = frame_header(FrameKind::delta, bytes.size());
  stream.insert(stream.end(), header.begin(), header.end());
  stream.insert(stream.end(), bytes.begin(), bytes.end());
  stream.insert(stream.end(), bytes.begin(), bytes.end());
  (void)receiver.write(stream);
  (void)receiver.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto bytes = std::as_bytes(std::span(data, size));
  NoStaging staging;
  Receiver receiver({CheckpointId{}, std::nullopt, {}}, staging);
  (void)receiver.write(bytes);
  (void)receiver.finish();
  if (size <= frame_limit) try_delta(bytes);
  std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)ResumeToken::parse(text);
  (void)decode_index(text);
  (void)parse_metadata(text);
  return 0;
}
