// The end of a reign: what only this controller's disk has goes to the one that took over. Jobs are
// submitted again under their identity; forks become proposals to the person, since the fleet may
// have gone another way meanwhile.

#include <algorithm>

#include <fmt/format.h>

#include "base/enum.hpp"
#include "controller/machine.hpp"
#include "controller/names.hpp"

namespace zed::controller {
namespace {

constexpr std::size_t most_messages = 64;

/// What of one job no second node has.
std::vector<Record> unshared_of(const Machine& m, const DesiredJob& job) {
  std::vector<Record> records;
  if (job.is_terminal() || m.journal.is_stored(job.changed_seq)) return records;
  if (!m.journal.is_stored(job.submitted_seq))
    records.emplace_back(Submitted{job.job, job.by, job.submitted, job.begins});
  if (job.wanted != Wanted::run)
    records.emplace_back(WantedSet{job.job.id, job.wanted, job.by, job.wanted_why, NodeName{}});
  if (!job.forks.empty() && !m.journal.is_stored(job.safe_seq))
    records.emplace_back(Forked{job.forks.back(), job.home});
  return records;
}

bool is_taken(const Machine& m, const DatasetName& dataset) {
  if (m.fleet.uuid_of(dataset)) return true;
  return std::any_of(m.desired.jobs.begin(), m.desired.jobs.end(),
                     [&](const auto& entry) { return entry.second.job.dataset == dataset; });
}

/// Takes in one record of a controller whose term is over.
struct Heir {
  Machine& m;
  const ControllerTerm& term;

  void operator()(const Submitted& r) const {
    if (r.job.id.is_nil() || m.desired.find(r.job.id) != nullptr) return;
    const std::string subject = "job " + r.job.name.str();
    // A dataset of that name is the job's own if it has the job's identity: it ran already.
    auto there = m.fleet.uuid_of(r.job.dataset);
    const bool own = there && there->bytes == r.job.id.bytes;
    if (!own && is_taken(m, r.job.dataset)) {
      m.tell_once("taken " + r.job.id.str(), "notice", subject,
                  "was submitted to a controller that was cut off; its dataset " +
                      r.job.dataset.str() + " is another job's by now: dispatch it again");
      return;
    }
    auto named = m.desired.by_name.find(r.job.name);
    if (named != m.desired.by_name.end() && !m.desired.find(named->second)->is_over()) {
      m.tell_once("named " + r.job.id.str(), "notice", subject,
                  "was submitted to a controller that was cut off; another one of its name is "
                  "under way by now: dispatch it again when that has ended");
      return;
    }
    m.record(r);
    m.tell("job", subject,
           fmt::format("is submitted again: controller term {} was cut off before others knew it",
                       term.number));
  }
  void operator()(const WantedSet& r) const {
    const DesiredJob* job = m.desired.find(r.job);
    // A word of a person on a job that nobody here has said anything of.
    if (job != nullptr && job->attempts == 0 && job->wanted == Wanted::run && !job->is_over())
      m.record(r);
  }
  void operator()(const Forked& r) const {
    const Fork& fork = r.fork.fork;
    const DesiredJob* job = m.desired.find(fork.job);
    if (job == nullptr || job->is_terminal() || job->timeline == fork.timeline) return;
    auto is_same = [&](const KnownFork& known) { return known.fork.timeline == fork.timeline; };
    if (std::any_of(job->forks.begin(), job->forks.end(), is_same)) return;
    for (const Proposal& proposal : m.desired.proposals)
      if (is_same(proposal.fork)) return;
    m.record(Proposed{Proposal{r.fork, term}});
    m.tell("fork", "job " + job->job.name.str(),
           fmt::format("a controller that was cut off had decided a {} to {}; nothing follows from "
                       "it unless you say so: zedctl status",
                       to_string(fork.why),
                       r.fork.from_name.empty() ? "its input" : "@" + r.fork.from_name));
  }
  template <class Other> void operator()(const Other&) const {}
};

}  // namespace

void hand_over(Machine& m, LinkId link) {
  HandOver message{m.term, {}};
  std::size_t bytes = 0;
  std::size_t messages = 0;
  auto send = [&] {
    if (message.records.empty() || messages == most_messages) return;
    m.out.push_back(SayToAgent{link, message});
    message.records.clear();
    bytes = 0;
    ++messages;
  };
  for (const auto& entry : m.desired.jobs)
    for (const Record& record : unshared_of(m, entry.second)) {
      std::string text = encode_record(record);
      if (bytes + text.size() > largest_record) send();
      bytes += text.size();
      message.records.push_back(std::move(text));
    }
  send();
}

void take_in(Machine& m, const HandedOver& message) {
  if (message.term >= m.term) return;  // nobody is heir to himself
  for (const std::string& text : message.records)
    if (auto record = decode_record(text)) std::visit(Heir{m, message.term}, *record);
}

}  // namespace zed::controller
