#pragma once
// What a node keeps in its own dataset, zed/node:
//
//   node.json            its id, the highest controller term seen, who holds the journal's copy
//   journal-copy         the copy of the controller's journal, if this is the second node
//   journal-copy.json    the term that the copy belongs to
//   attempts/            launch and exit records (proc/launch.hpp)

#include <cstdint>
#include <filesystem>
#include <optional>

#include "core/message.hpp"
#include "journal/journal.hpp"

namespace zed::bin {

struct NodeRecord {
  NodeId node;
  ControllerTerm highest_term;
  NodeName journal_second;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("highest_term", self.highest_term);
    visit("journal_second", self.journal_second);
  }
};

/// Used by one thread at a time.
class NodeFiles {
public:
  /// Reads what is there, or makes a node of that id. Errors: `corrupt`, `io`.
  static Result<NodeFiles> open(std::filesystem::path folder, NodeId new_node);

  const NodeRecord& record() const { return record_; }
  std::filesystem::path attempts() const { return folder_ / "attempts"; }
  ControllerTerm journal_copy_term() const { return copy_term_; }
  std::uint64_t journal_copy_seq() const { return copy_ ? copy_->last_seq() : 0; }

  Status save(const ControllerTerm& highest_term, const NodeName& journal_second);
  /// Appends to the copy, or begins it anew. `stale` if the records do not follow on.
  Status store_copy(const JournalRecords& records);

private:
  Status begin_copy(const JournalRecords& records);

  std::filesystem::path folder_;
  NodeRecord record_;
  ControllerTerm copy_term_;
  std::optional<journal::Journal> copy_;
};

}  // namespace zed::bin
