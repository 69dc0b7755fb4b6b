#pragma once
// The sending half of a `files` stream, over any source of contents.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "env/store.hpp"
#include "store/files/wire.hpp"

namespace zed::store {

/// The contents of a snapshot's files.
class ContentSource {
public:
  virtual ~ContentSource() = default;
  /// Exactly buffer.size() bytes of that file from `offset` on. Errors: `io`, `not_found` (the
  /// snapshot is gone), `corrupt` (the file is shorter than its entry says).
  virtual Status read(const Entry& file, std::uint64_t offset, std::span<std::byte> buffer) = 0;
};

struct SendPlan {
  CheckpointId snapshot;
  std::optional<CheckpointId> base;
  Manifest base_manifest;  ///< empty for a full stream
  Manifest manifest;
  std::string resume_token;  ///< may be empty
};

/// Errors: `invalid` (no token of ours), `stale` (the token is for another snapshot, another base
/// or other contents: abort the receive).
Result<std::unique_ptr<env::SendStream>> make_sender(SendPlan plan,
                                                     std::unique_ptr<ContentSource> source);

}  // namespace zed::store
