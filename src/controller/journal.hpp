#pragma once
// How far the journal is: durable on this machine (accepted), durable on the second node (safe),
// and what still has to be sent there. Holds the records' text, so that a second node that joins
// late gets all of it.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "controller/effects.hpp"

namespace zed::controller {

class Journal {
public:
  /// What was read at the start; `compacted` is the seq of the last compaction's last record, 0 if
  /// there was none.
  void start(std::vector<std::string> records, std::uint64_t last_seq, std::uint64_t compacted);

  /// Appends a record: its number, and the effect that makes it durable.
  std::uint64_t append(std::string record, std::vector<Effect>& out);
  /// All up to `seq` are durable here.
  void written(std::uint64_t seq);
  /// They could not be written: tried again from `now` + 1 s on.
  void failed(const Error& error, Instant now);
  /// Repeats what failed, when it is time.
  void retry(Instant now, std::vector<Effect>& out);
  /// Why nothing can be recorded at present.
  const std::optional<Error>& broken() const { return broken_; }

  std::uint64_t last_seq() const { return last_; }
  std::uint64_t durable_seq() const { return durable_; }
  /// Durable on the second node too; 0 while there is none.
  std::uint64_t stored_seq() const { return stored_; }
  bool is_durable(std::uint64_t seq) const { return seq <= durable_; }
  bool is_stored(std::uint64_t seq) const { return seq <= stored_; }

  /// What the disk had at the start.
  std::uint64_t read_seq() const { return read_; }
  /// Whether a copy of this term has records that this disk must have had, and has no more: a copy
  /// is only ever sent what is durable here.
  bool has_lost(const ControllerTerm& term, const ControllerTerm& copy_term,
                std::uint64_t copy_seq) const;
  /// The second node said hello: what its copy has. A copy of another term is begun anew.
  void second_connected(LinkId link, const ControllerTerm& term, const ControllerTerm& copy_term,
                        std::uint64_t copy_seq);
  void second_gone();
  bool has_second() const { return second_.has_value(); }
  std::optional<LinkId> second_link() const { return second_; }
  /// The second node's disk has all up to `seq`. What it claims beyond what was sent is ignored.
  void stored(std::uint64_t seq);
  /// Sends what is durable here and not yet there, a bounded amount at a time.
  void send(const ControllerTerm& term, std::vector<Effect>& out);

  /// What was sent and is not stored after a while is sent again: the second node's disk may have
  /// refused it.
  void repeat(Instant now);
  /// The second node is connected and has stored nothing of what it was sent for a long time: its
  /// disk may be full.
  bool is_stuck(Instant now) const;

  /// Whether the journal has grown enough over `live` records to be worth rewriting.
  bool wants_compaction(std::size_t live) const;
  /// Replaces all records; nothing may be outstanding.
  void compact(std::vector<std::string> records, std::vector<Effect>& out);

private:
  const std::string& record(std::uint64_t seq) const { return records_[seq - first_]; }

  std::vector<std::string> records_;
  std::uint64_t first_ = 1;  ///< seq of records_.front()
  std::uint64_t last_ = 0;
  std::uint64_t durable_ = 0;
  std::uint64_t stored_ = 0;
  std::uint64_t compacted_ = 0;
  std::uint64_t read_ = 0;       ///< last seq at the start
  std::uint64_t ever_sent_ = 0;  ///< to any second node, since the start
  std::optional<LinkId> second_;
  std::uint64_t sent_ = 0;
  std::uint64_t watched_ = 0;  ///< stored_ as of watched_since_
  Instant watched_since_;
  std::uint64_t moved_to_ = 0;  ///< stored_ when it last moved, or when nothing was outstanding
  Instant moved_at_;
  bool reset_ = false;  ///< the next message to the second node begins its copy anew
  std::optional<Error> broken_;
  Instant retry_at_;
};

}  // namespace zed::controller
