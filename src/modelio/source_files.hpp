#pragma once
// What of a machine's disk an import takes: one file, a split file with its parts, or a folder.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/byte_source.hpp"

namespace zed::modelio {

struct SourceEntry {
  enum class Kind { file, folder, link };
  Kind kind = Kind::file;
  std::filesystem::path path;  ///< on this machine
  std::string name;            ///< relative to what is imported
  std::uint64_t size = 0;      ///< of files
};

struct SourceRules {
  bool code = false;          ///< `.git` and the patterns of `.zedignore` stay out
  bool follow_links = false;  ///< links to files count as files, as in the caches of model hubs
};

/// Everything that would be imported, folders before what is in them; files by name. A part of a
/// split GGUF or safetensors file brings its other parts. Errors: `not_found` (the path), `invalid`
/// (neither file nor folder, more than 1,000,000 entries), `io`.
Result<std::vector<SourceEntry>> list_source(const std::filesystem::path& path, SourceRules rules);

/// The files of such a list, for the readers of models.
class DiskFiles : public model::ModelFiles {
public:
  explicit DiskFiles(const std::vector<SourceEntry>& entries);
  const std::vector<model::FileEntry>& list() const override { return list_; }
  Result<std::unique_ptr<model::ByteSource>> open(const std::string& name) override;

private:
  std::vector<model::FileEntry> list_;
  std::vector<std::filesystem::path> paths_;  ///< of the entry of the same index
};

}  // namespace zed::modelio
