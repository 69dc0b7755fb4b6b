#pragma once
// Names that are legal by construction. What a person or a peer typed becomes one of these once, at
// the border, or is refused there.

#include <optional>
#include <string>
#include <string_view>

#include "base/id.hpp"
#include "base/result.hpp"

namespace zed {

/// A machine of the fleet: "server". Never "zed@server" (that is its Erlang node).
class NodeName {
public:
  static constexpr bool empty_is_unset = true;  ///< messages say "no node" by an empty name
  NodeName() = default;
  /// Letters, digits, '-', '_', '.', at most 63 bytes, starting with a letter or a digit; accepts
  /// and drops a leading "zed@". Errors: `invalid`.
  static Result<NodeName> parse(std::string_view text);
  const std::string& str() const { return text_; }
  bool empty() const { return text_.empty(); }
  friend auto operator<=>(const NodeName&, const NodeName&) = default;

private:
  explicit NodeName(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

using JobName = Name<struct JobNameTag>;      ///< the declared atom: "finetune"
using ModelName = Name<struct ModelNameTag>;  ///< the declared atom: "llama70b"

/// A dataset relative to its pool: "jobs/train-001". The pool's name differs per machine and never
/// appears in a message.
class DatasetName {
public:
  DatasetName() = default;
  /// Components of [A-Za-z0-9_.:-] (OpenZFS also allows a space; we do not), none empty, none
  /// starting with '.' or '-', at most 200 bytes in all (255 less a pool's name and a snapshot's),
  /// at most 16 deep. Errors: `invalid`, naming the component.
  static Result<DatasetName> parse(std::string_view text);
  const std::string& str() const { return text_; }
  bool empty() const { return text_.empty(); }
  /// "train-001" of "jobs/train-001".
  std::string leaf() const;
  /// "jobs" of "jobs/train-001"; empty for a root.
  std::string parent() const;
  /// Whether this is `root` or inside it.
  bool is_under(std::string_view root) const;
  friend auto operator<=>(const DatasetName&, const DatasetName&) = default;

private:
  explicit DatasetName(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

/// A snapshot: "jobs/train-001@epoch-15".
struct SnapshotName {
  DatasetName dataset;
  std::string snapshot;  ///< "epoch-15": legal by parse()

  /// Errors: `invalid`.
  static Result<SnapshotName> parse(std::string_view text);
  static Result<SnapshotName> of(DatasetName dataset, std::string_view snapshot);
  std::string str() const { return dataset.str() + "@" + snapshot; }
  friend auto operator<=>(const SnapshotName&, const SnapshotName&) = default;
};

/// Whether a word may stand after the '@': [A-Za-z0-9_.:-]+, at most 80 bytes, no leading '-'.
bool is_snapshot_word(std::string_view word);

/// Whether two names mean the same to a person who types: '-' equals '_', a leading '@' or ':' is
/// dropped.
bool same_typed_name(std::string_view a, std::string_view b);

}  // namespace zed
