#include "controller/journal.hpp"

#include <algorithm>

#include "controller/records.hpp"

namespace zed::controller {
namespace {

constexpr std::size_t batch_bytes = largest_record;
constexpr std::size_t window_bytes = std::size_t{1} << 20;  ///< sent and not yet stored
constexpr Millis repeat_after = seconds(10);
constexpr Millis stuck_after = seconds(60);
constexpr std::size_t compact_at_least = 4096;  ///< records

}  // namespace

void Journal::start(std::vector<std::string> records, std::uint64_t last_seq,
                    std::uint64_t compacted) {
  records_ = std::move(records);
  last_ = durable_ = read_ = last_seq;
  first_ = last_seq + 1 - std::min<std::uint64_t>(records_.size(), last_seq);
  compacted_ = compacted;
}

std::uint64_t Journal::append(std::string record, std::vector<Effect>& out) {
  records_.push_back(record);
  ++last_;
  // While the disk refuses, records wait; retry() sends them in their order.
  if (!broken_) out.push_back(WriteJournal{last_, std::move(record)});
  return last_;
}

void Journal::written(std::uint64_t seq) {
  durable_ = std::max(durable_, std::min(seq, last_));
  if (durable_ == last_) broken_.reset();
}

void Journal::failed(const Error& error, Instant now) {
  broken_ = error;
  retry_at_ = now + seconds(1);
}

void Journal::retry(Instant now, std::vector<Effect>& out) {
  if (!broken_ || now < retry_at_) return;
  retry_at_ = now + seconds(1);
  for (std::uint64_t seq = durable_ + 1; seq <= last_; ++seq)
    out.push_back(WriteJournal{seq, record(seq)});
}

bool Journal::has_lost(const ControllerTerm& term, const ControllerTerm& copy_term,
                       std::uint64_t copy_seq) const {
  return copy_term == term && copy_seq > std::max(read_, ever_sent_);
}

void Journal::second_connected(LinkId link, const ControllerTerm& term,
                               const ControllerTerm& copy_term, std::uint64_t copy_seq) {
  second_ = link;
  // A copy of this term continues, unless records that it lacks were compacted away.
  bool continues =
      copy_term == term && copy_seq <= last_ && copy_seq + 1 >= first_ && copy_seq >= compacted_;
  reset_ = !continues;
  sent_ = stored_ = continues ? copy_seq : 0;
}

void Journal::second_gone() {
  second_.reset();
  stored_ = 0;
}

void Journal::stored(std::uint64_t seq) {
  if (second_ && !reset_) stored_ = std::max(stored_, std::min(seq, sent_));
}

void Journal::send(const ControllerTerm& term, std::vector<Effect>& out) {
  if (!second_) return;
  std::uint64_t next = std::max(sent_ + 1, first_);
  std::size_t outstanding = 0;
  for (std::uint64_t seq = std::max(stored_ + 1, first_); seq < next; ++seq)
    outstanding += record(seq).size();
  while (next <= durable_ && outstanding < window_bytes) {
    JournalRecords message{term, next, reset_, {}};
    std::size_t bytes = 0;
    while (next <= durable_ && (bytes == 0 || bytes + record(next).size() < batch_bytes)) {
      bytes += record(next).size();
      message.records.push_back(record(next++));
    }
    outstanding += bytes;
    reset_ = false;
    sent_ = next - 1;
    ever_sent_ = std::max(ever_sent_, sent_);
    out.push_back(SayToAgent{*second_, std::move(message)});
  }
}

bool Journal::is_stuck(Instant now) const {
  return second_ && stored_ != sent_ && stored_ == moved_to_ && now - moved_at_ >= stuck_after;
}

void Journal::repeat(Instant now) {
  if (!second_ || stored_ == sent_ || stored_ != moved_to_) {
    moved_to_ = stored_;
    moved_at_ = now;
  }
  const bool idle = !second_ || stored_ == sent_ || stored_ != watched_;
  if (idle || now - watched_since_ < repeat_after) {
    if (idle) watched_since_ = now;
    watched_ = stored_;
    return;
  }
  watched_since_ = now;
  reset_ = stored_ == 0;
  sent_ = stored_;
}

bool Journal::wants_compaction(std::size_t live) const {
  return !broken_ && durable_ == last_ && records_.size() >= compact_at_least &&
         records_.size() > 4 * live && (!second_ || stored_ == last_);
}

void Journal::compact(std::vector<std::string> records, std::vector<Effect>& out) {
  if (records.size() > records_.size()) return;
  records_ = records;
  first_ = last_ + 1 - records_.size();
  compacted_ = last_;
  out.push_back(CompactJournal{last_, std::move(records)});
}

}  // namespace zed::controller
