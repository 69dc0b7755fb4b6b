#include "core/names.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace zed {
namespace {

constexpr std::size_t longest_dataset = 200;
constexpr std::size_t longest_snapshot = 80;
constexpr std::size_t longest_node = 63;
constexpr std::size_t deepest_dataset = 16;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_name_character(char c) {
  return is_alphanumeric(c) || c == '_' || c == '-' || c == '.' || c == ':';
}

/// What is wrong with one component, or nothing.
std::optional<std::string> fault_of(std::string_view component) {
  if (component.empty()) return "an empty component";
  if (component.front() == '.' || component.front() == '-')
    return "a component that starts with '" + std::string(1, component.front()) + "'";
  for (char c : component)
    if (!is_name_character(c)) return "the character '" + percent_encode({&c, 1}) + "'";
  return std::nullopt;
}

std::string quoted(std::string_view text) {
  constexpr std::size_t shown = 80;
  return "\"" + percent_encode(text.substr(0, shown)) + (text.size() > shown ? "…" : "") + "\"";
}

}  // namespace

Result<NodeName> NodeName::parse(std::string_view text) {
  std::string_view name = text.starts_with("zed@") ? text.substr(4) : text;
  bool legal = !name.empty() && name.size() <= longest_node && is_alphanumeric(name.front()) &&
               std::all_of(name.begin(), name.end(),
                           [](char c) { return is_name_character(c) && c != ':'; });
  if (!legal)
    return fail(ErrorCode::invalid, quoted(text) + " is no node name",
                "a node name is letters, digits, '-', '_' and '.', at most 63, and starts with a "
                "letter or a digit");
  return NodeName(std::string(name));
}

Result<DatasetName> DatasetName::parse(std::string_view text) {
  auto refuse = [&](const std::string& why) {
    return fail(ErrorCode::invalid, "dataset name " + quoted(text) + " has " + why,
                "a dataset name is components of letters, digits, '_', '-', '.' and ':', "
                "separated by '/'");
  };
  if (text.size() > longest_dataset) return refuse("more than 200 bytes");
  auto components = split(text, '/');
  if (components.size() > deepest_dataset) return refuse("more than 16 components");
  for (const std::string& component : components)
    if (auto fault = fault_of(component)) return refuse(*fault);
  return DatasetName(std::string(text));
}

std::string DatasetName::leaf() const {
  std::size_t slash = text_.rfind('/');
  return slash == std::string::npos ? text_ : text_.substr(slash + 1);
}

std::string DatasetName::parent() const {
  std::size_t slash = text_.rfind('/');
  return slash == std::string::npos ? std::string() : text_.substr(0, slash);
}

bool DatasetName::is_under(std::string_view root) const {
  return text_ == root ||
         (text_.size() > root.size() && text_.starts_with(root) && text_[root.size()] == '/');
}

bool is_snapshot_word(std::string_view word) {
  return !word.empty() && word.size() <= longest_snapshot && word.front() != '-' &&
         std::all_of(word.begin(), word.end(), is_name_character);
}

Result<SnapshotName> SnapshotName::of(DatasetName dataset, std::string_view snapshot) {
  if (!is_snapshot_word(snapshot))
    return fail(ErrorCode::invalid, quoted(snapshot) + " is no snapshot name",
                "a snapshot name is letters, digits, '_', '-', '.' and ':', at most 80");
  return SnapshotName{std::move(dataset), std::string(snapshot)};
}

Result<SnapshotName> SnapshotName::parse(std::string_view text) {
  std::size_t at = text.find('@');
  if (at == std::string_view::npos)
    return fail(ErrorCode::invalid, quoted(text) + " names no snapshot",
                "write DATASET@SNAPSHOT, for example jobs/train-001@epoch-15");
  ZED_TRY(auto dataset, DatasetName::parse(text.substr(0, at)));
  return of(std::move(dataset), text.substr(at + 1));
}

bool same_typed_name(std::string_view a, std::string_view b) {
  auto canonical = [](std::string_view text) {
    if (!text.empty() && (text.front() == ':' || text.front() == '@')) text.remove_prefix(1);
    std::string word(text);
    std::replace(word.begin(), word.end(), '_', '-');
    return word;
  };
  return canonical(a) == canonical(b);
}

}  // namespace zed
