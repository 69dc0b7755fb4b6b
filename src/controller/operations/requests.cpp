// Requests from their arrival to their one answer.

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/names.hpp"
#include "controller/operations/daily.hpp"
#include "controller/operations/handlers.hpp"
#include "controller/operations/models.hpp"

namespace zed::controller {
namespace {

constexpr std::size_t most_waiting = 10'000;
constexpr Millis journal_patience = seconds(30);
/// A second node confirms within milliseconds; nobody waits long for one that does not.
constexpr Millis safe_patience{400};

/// Whether what the request decided can be answered now that it is durable.
bool is_settled(const Machine& m, WaitingRequest& waiting) {
  if (!waiting.is_safe || !m.journal.has_second() || waiting.is_safe(m)) return true;
  if (!waiting.safe_by) waiting.safe_by = m.now.monotonic + safe_patience;
  return *waiting.safe_by <= m.now.monotonic;
}

}  // namespace

void Asked::reply_when_durable(std::function<Result<Value>(Machine&)> make) const {
  WaitingRequest waiting;
  waiting.seq = m.journal.last_seq();
  waiting.deadline = m.now.monotonic + journal_patience;
  waiting.what = "write the journal";
  waiting.answer = [make = std::move(make)](Machine& machine, const NeedOutcome*) {
    return make(machine);
  };
  m.waiting.emplace(request, std::move(waiting));
}

void Asked::reply_when_safe(std::function<bool(const Machine&)> is_safe,
                            std::function<Result<Value>(Machine&)> make) const {
  reply_when_durable(std::move(make));
  m.waiting.at(request).is_safe = std::move(is_safe);
}

void Asked::reply_on_need(const std::string& need, const NodeName& node, Millis within,
                          std::string what,
                          std::function<Result<Value>(Machine&, const NeedOutcome&)> make) const {
  WaitingRequest waiting;
  waiting.need = need;
  waiting.link = m.fleet.link_of(node);
  waiting.deadline = m.now.monotonic + within;
  waiting.what = std::move(what);
  waiting.answer = [make = std::move(make)](Machine& machine, const NeedOutcome* outcome) {
    return make(machine, *outcome);
  };
  m.waiting.emplace(request, std::move(waiting));
}

void Asked::continue_on_need(const std::string& need, const NodeName& node, Millis within,
                             std::string what, std::function<void(const Asked&)> next) const {
  continue_with_outcome(
      need, node, within, std::move(what),
      [next = std::move(next)](const Asked& again, const NeedOutcome&) { next(again); });
}

void Asked::persist_on_need(const std::string& need, const NodeName& node, Millis within,
                            std::string what, std::function<void(const Asked&)> next) const {
  continue_on_need(need, node, within, std::move(what), std::move(next));
  m.waiting.at(request).persists = true;
}

void Asked::continue_with_outcome(
    const std::string& need, const NodeName& node, Millis within, std::string what,
    std::function<void(const Asked&, const NeedOutcome&)> next) const {
  WaitingRequest waiting;
  waiting.need = need;
  waiting.link = m.fleet.link_of(node);
  waiting.deadline = m.now.monotonic + within;
  waiting.what = std::move(what);
  waiting.proceed = [who = caller, next = std::move(next)](Machine& machine, RequestId number,
                                                           const NeedOutcome& outcome) {
    next(Asked{machine, number, who}, outcome);
  };
  m.waiting.emplace(request, std::move(waiting));
}

bool Asked::may_change() const {
  if (!m.journal.broken()) return true;
  refuse(ErrorCode::unavailable,
         "nothing can be recorded: the journal cannot be written: " +
             m.journal.broken()->describe(),
         "make room or repair the disk of the controller's machine; jobs go on meanwhile");
  return false;
}

void Asked::audit(const std::string& subject, const std::string& text) const {
  m.tell("audit", subject, text + " (" + caller.who + ", " + caller.door + ")");
}

DesiredJob* job_or_refuse(const Asked& asked, const std::string& typed) {
  auto id = find_job(asked.m.desired, typed);
  if (id) return asked.m.desired.find(*id);
  asked.refuse(id.error());
  return nullptr;
}

Status check_ready(const Machine& m, const NodeName& node, ErrorCode code) {
  if (m.fleet.is_ready(node)) return {};
  return fail(code, fmt::format("node {} {}", node.str(), m.fleet.absence(node)), "zedctl nodes");
}

void on_requested(Machine& m, RequestId request, const api::Request& operation,
                  const api::Caller& caller) {
  Asked asked{m, request, caller};
  if (m.waiting.contains(request)) return;  // asked twice under one number: answered once
  if (m.waiting.size() >= most_waiting)
    return asked.refuse(ErrorCode::busy, "too many requests wait already", "try again");
  bool changes =
      std::visit([](const auto& op) { return std::decay_t<decltype(op)>::changes; }, operation);
  if (changes && !asked.may_change()) return;
  std::visit([&](const auto& op) { handle(asked, op); }, operation);
}

void answer_durable(Machine& m) {
  std::vector<RequestId> done;
  for (auto& [request, waiting] : m.waiting)
    if (waiting.seq > 0 && m.journal.is_durable(waiting.seq) && is_settled(m, waiting))
      done.push_back(request);
  for (RequestId request : done) {
    WaitingRequest waiting = std::move(m.waiting.at(request));
    m.waiting.erase(request);
    m.answer(request, waiting.answer(m, nullptr));
  }
}

void answer_need(Machine& m, const NeedOutcome& outcome) {
  std::vector<RequestId> done;
  for (const auto& [request, waiting] : m.waiting) {
    const bool stays = waiting.persists && outcome.error && is_retryable(outcome.error->code);
    if (waiting.need == outcome.need && !stays) done.push_back(request);
  }
  for (RequestId request : done) {
    WaitingRequest waiting = std::move(m.waiting.at(request));
    m.waiting.erase(request);
    if (outcome.error)
      m.answer(request, fail(Error(*outcome.error).with(waiting.what)));
    else if (waiting.proceed)
      waiting.proceed(m, request, outcome);
    else
      m.answer(request, waiting.answer(m, &outcome));
  }
}

void persist_requests(Machine& m) {
  std::vector<RequestId> idle;
  for (const auto& [request, waiting] : m.waiting)
    if (waiting.persists && !m.steps.is_live(waiting.need) &&
        !m.steps.pause_of(waiting.need, m.now.monotonic))
      idle.push_back(request);
  for (RequestId request : idle) {
    WaitingRequest waiting = std::move(m.waiting.at(request));
    m.waiting.erase(request);
    waiting.proceed(m, request, NeedOutcome{});
  }
}

void answer_log(Machine& m, const LogPage& page) {
  if (page.request == 0) return;
  for (auto waiting = m.waiting.begin(); waiting != m.waiting.end(); ++waiting) {
    if (waiting->second.log_page != page.request) continue;
    RequestId request = waiting->first;
    std::string what = waiting->second.what;
    std::string no_log = waiting->second.no_log;
    m.waiting.erase(waiting);
    if (page.error && page.error->code == ErrorCode::not_found) {
      m.answer(request, fail(ErrorCode::not_found, no_log, "zedctl logs -f waits for it"));
      return;
    }
    if (page.error) {
      m.answer(request, fail(Error(*page.error).with(what)));
      return;
    }
    api::LogReply reply{page.offset, page.end, page.lines, what.ends_with("(live)")};
    m.answer(request, api::encode_reply(reply));
    return;
  }
}

void expire_requests(Machine& m) {
  std::vector<RequestId> expired;
  for (const auto& [request, waiting] : m.waiting)
    if (waiting.deadline <= m.now.monotonic) expired.push_back(request);
  for (RequestId request : expired) {
    std::string what = m.waiting.at(request).what;
    m.waiting.erase(request);
    m.answer(request, fail(ErrorCode::timeout, "no answer in time to: " + what,
                           "it may still happen: look at `zedctl events`"));
  }
}

void fail_requests_on(Machine& m, LinkId link) {
  std::vector<RequestId> failed;
  for (const auto& [request, waiting] : m.waiting) {
    // Its other end may be what went away: nothing brings that need's outcome any more.
    const bool is_dropped = !waiting.need.empty() && !m.steps.is_live(waiting.need);
    if ((waiting.link == link || is_dropped) && !waiting.persists) failed.push_back(request);
  }
  for (RequestId request : failed) {
    std::string what = m.waiting.at(request).what;
    m.waiting.erase(request);
    m.answer(request, fail(ErrorCode::unavailable, "the node went away during: " + what,
                           "try again when it is back"));
  }
}

}  // namespace zed::controller
