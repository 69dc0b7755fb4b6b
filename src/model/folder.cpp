#include "model/folder.hpp"

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/text.hpp"

namespace zed::model {
namespace {

std::string folder_of(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash + 1);
}

std::string leaf_of(const std::string& name) {
  return name.substr(folder_of(name).size());
}

constexpr std::size_t part_width = 5;
constexpr std::string_view of_word = "-of-";

/// Where "-00001-of-00005" begins in a name without its ending; npos if it has none.
std::size_t part_place(std::string_view stem) {
  constexpr std::size_t length = 1 + part_width + of_word.size() + part_width;
  if (stem.size() < length) return std::string_view::npos;
  const std::string_view tail = stem.substr(stem.size() - length);
  auto digits = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  const bool is_part = tail.front() == '-' && digits(tail.substr(1, part_width)) &&
                       tail.substr(1 + part_width, of_word.size()) == of_word &&
                       digits(tail.substr(length - part_width));
  return is_part ? stem.size() - length : std::string_view::npos;
}

std::string five_digits(std::uint64_t n) {
  std::string text = std::to_string(n);
  return std::string(part_width - std::min(part_width, text.size()), '0') + text;
}

/// The same for all parts of one model: its name without the part and the ending.
std::string whole_name(const std::string& name) {
  const std::string stem = name.substr(0, name.rfind('.'));
  const std::size_t place = part_place(stem);
  return place == std::string::npos ? stem : stem.substr(0, place);
}

}  // namespace

std::uint64_t part_count(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos ||
      part_place(std::string_view(name).substr(0, dot)) == std::string::npos)
    return 0;
  constexpr std::uint64_t most = 1024;
  return std::min<std::uint64_t>(std::stoul(name.substr(dot - part_width, part_width)), most);
}

std::optional<std::string> part_name(const std::string& name, std::uint64_t part,
                                     std::uint64_t parts) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return std::nullopt;
  const std::size_t place = part_place(std::string_view(name).substr(0, dot));
  if (place == std::string::npos) return std::nullopt;
  return name.substr(0, place) + "-" + five_digits(part) + std::string(of_word) +
         five_digits(parts) + name.substr(dot);
}

FoundModel find_model(const std::vector<FileEntry>& files) {
  FoundModel found;
  std::vector<std::string> ggufs;
  std::vector<std::string> tensors;
  std::vector<std::string> indexes;
  for (const FileEntry& file : files) {
    const std::string leaf = lower(leaf_of(file.name));
    if (leaf.ends_with(".gguf")) {
      if (leaf.find("mmproj") == std::string::npos)
        ggufs.push_back(file.name);
      else if (found.projector.empty())
        found.projector = file.name;
    } else if (leaf.ends_with(".safetensors.index.json")) {
      indexes.push_back(file.name);
    } else if (leaf.ends_with(".safetensors") && !leaf.starts_with("adapter_")) {
      tensors.push_back(file.name);
    }
  }
  // A projector alone is a model too.
  if (ggufs.empty() && tensors.empty() && !found.projector.empty())
    ggufs.push_back(std::exchange(found.projector, ""));
  const std::vector<std::string>& mains = !ggufs.empty()     ? ggufs
                                          : !indexes.empty() ? indexes
                                                             : tensors;
  if (mains.empty()) return found;
  found.kind = ggufs.empty() ? FoundModel::Kind::safetensors : FoundModel::Kind::gguf;
  // Folders of one repository (onnx/, original/, 1_Pooling/) lie below the model's own.
  found.main = *std::min_element(mains.begin(), mains.end(), [](const auto& a, const auto& b) {
    const auto depth_a = std::count(a.begin(), a.end(), '/');
    const auto depth_b = std::count(b.begin(), b.end(), '/');
    return std::tie(depth_a, a) < std::tie(depth_b, b);
  });
  found.folder = folder_of(found.main);
  for (const std::string& other : mains)
    if (folder_of(other) == found.folder && whole_name(other) != whole_name(found.main))
      found.several = other;
  return found;
}

}  // namespace zed::model
