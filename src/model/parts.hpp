#pragma once
// Names of the parts of split model files: "model-00002-of-00005.gguf".

#include <cstdint>
#include <optional>
#include <string>

namespace zed::model {

/// How many parts a name says there are, at most 1,024; 0 if it is no part's name.
std::uint64_t part_count(const std::string& name);

/// The same name with these numbers; `part` counts from 1. Nothing if it is no part's name.
std::optional<std::string> part_name(const std::string& name, std::uint64_t part,
                                     std::uint64_t parts);

}  // namespace zed::model
