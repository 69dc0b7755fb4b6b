// The few durable facts of a node: the highest controller term, who holds the journal's copy, and
// that copy itself where it is this node. Pages of a job's log, too.

#include <algorithm>

#include "agent/matters.hpp"

namespace zed::agent {
namespace {

constexpr std::size_t longest_copy_queue = 256;
constexpr std::size_t most_log_reads = 64;
constexpr std::size_t most_log_bytes = 128 * 1024;  // in one answer, whatever the shell read

void tell_copy(Machine& m) {
  m.say(JournalStored{m.copy_term, m.copy_seq});
}

bool continues_copy(const Machine& m, const JournalRecords& records) {
  return records.reset || (records.term == m.copy_term && records.first_seq == m.copy_seq + 1);
}

std::uint64_t last_seq(const JournalRecords& records) {
  return records.first_seq + records.records.size() - 1;
}

void store_next(Machine& m) {
  while (!m.copy_under_way && !m.copy_queue.empty()) {
    JournalRecords records = std::move(m.copy_queue.front());
    m.copy_queue.pop_front();
    if (records.records.empty() && !records.reset) continue;
    if (!continues_copy(m, records)) {
      tell_copy(m);  // what we have; the controller goes on from there, or resets the copy
      continue;
    }
    m.copy_under_way = true;
    ControllerTerm term = records.term;
    std::uint64_t seq = last_seq(records);
    EffectId id = m.expect_status([&m, term, seq](Status stored) {
      m.copy_under_way = false;
      if (stored) {
        m.copy_term = term;
        m.copy_seq = seq;
        tell_copy(m);
      } else {
        m.notice("journal",
                 "the copy of the journal cannot be written: " + stored.error().describe());
        m.copy_queue.clear();  // what follows does not continue the copy any more
      }
      store_next(m);
    });
    m.emit(StoreJournalCopy{id, std::move(records)});
  }
}

}  // namespace

void save_node_state(Machine& m, const ControllerTerm& term, const NodeName& second,
                     std::function<void(Status)> then) {
  ControllerTerm highest = std::max(term, m.highest_term);
  EffectId id = m.expect_status([&m, highest, second, then = std::move(then)](Status saved) {
    if (saved) {
      m.highest_term = std::max(m.highest_term, highest);
      m.journal_second = second;
    } else {
      m.notice("node " + m.name.str(),
               "the controller's term cannot be saved: " + saved.error().describe());
    }
    then(std::move(saved));
  });
  m.emit(SaveNodeState{id, highest, second});
}

void copy_journal(Machine& m, const JournalRecords& records) {
  if (records.term < m.highest_term) return;
  if (m.copy_queue.size() >= longest_copy_queue) {
    tell_copy(m);  // dropped: the controller sees where the copy ends and sends the rest again
    return;
  }
  m.copy_queue.push_back(records);
  store_next(m);
}

void read_log(Machine& m, const ReadLog& request) {
  if (m.log_reads.size() >= most_log_reads) {
    LogPage busy;
    busy.request = request.request;
    busy.error = Error{ErrorCode::busy, "too many logs are being read on " + m.name.str(), {}, ""};
    m.say(std::move(busy));
    return;
  }
  EffectId id = m.next_effect();
  m.log_reads[id] = request.request;
  m.emit(FetchLog{id, request});
}

void log_read(Machine& m, const LogRead& event) {
  auto found = m.log_reads.find(event.effect);
  if (found == m.log_reads.end()) return;
  LogPage page;
  if (event.result)
    page = *event.result;
  else
    page.error = event.result.error();
  page.request = found->second;
  m.log_reads.erase(found);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < page.lines.size(); ++i) {
    bytes += page.lines[i].text.size() + 32;
    if (bytes <= most_log_bytes) continue;
    // Offsets count bytes of the log, which the lines do not tell: an oversized page is an error,
    // not a page with a hole.
    page.lines.clear();
    page.end = page.offset;
    page.error = Error{ErrorCode::internal, "a page of the log is too large to send", {}, ""};
    break;
  }
  m.say(std::move(page));
}

}  // namespace zed::agent
