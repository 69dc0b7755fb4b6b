#pragma once
// Where bytes of a model file come from. The readers of this room touch nothing else.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace zed::model {

/// One file, read at any place.
class ByteSource {
public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  /// Fills `into` with the bytes from `offset` on; the range lies within size(). Errors: `io`;
  /// `corrupt` if the file has become shorter meanwhile.
  virtual Status read_at(std::uint64_t offset, std::span<std::byte> into) = 0;
};

/// Bytes that are in memory already. They must outlive this.
class BytesInMemory : public ByteSource {
public:
  explicit BytesInMemory(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Status read_at(std::uint64_t offset, std::span<std::byte> into) override {
    ZED_ASSERT(offset <= bytes_.size() && into.size() <= bytes_.size() - offset);
    if (!into.empty())
      std::memcpy(into.data(), bytes_.data() + static_cast<std::size_t>(offset), into.size());
    return {};
  }

private:
  std::span<const std::byte> bytes_;
};

struct FileEntry {
  std::string name;  ///< relative, with '/' between folders
  std::uint64_t size = 0;
};

/// A file or a folder that may hold a model.
class ModelFiles {
public:
  virtual ~ModelFiles() = default;
  /// All regular files, by name.
  virtual const std::vector<FileEntry>& list() const = 0;
  /// Errors: `not_found`, `io`.
  virtual Result<std::unique_ptr<ByteSource>> open(const std::string& name) = 0;
};

}  // namespace zed::model
