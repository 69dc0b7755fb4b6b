#pragma once
// Which files of a folder are the model. Inside the room only.

#include <optional>
#include <string>
#include <vector>

#include "model/facts.hpp"
#include "model/parts.hpp"

namespace zed::model {

struct FoundModel {
  enum class Kind { none, gguf, safetensors };
  Kind kind = Kind::none;
  std::string main;                    ///< first part, index, or the only file
  std::string folder;                  ///< of main, with its '/', or ""
  std::string projector;               ///< a GGUF file of a projector beside it; may be empty
  std::optional<std::string> several;  ///< another model beside it
};

/// By names alone. A folder's own safetensors come before GGUF files beside them only if there is
/// no GGUF; parts of one split file are one model; "mmproj" in a name makes it a projector.
FoundModel find_model(const std::vector<FileEntry>& files);

Result<Facts> read_gguf_facts(ModelFiles& files, const FoundModel& found);
Result<Facts> read_safetensors_facts(ModelFiles& files, const FoundModel& found);

}  // namespace zed::model
