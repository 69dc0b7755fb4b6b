#include "sched/queue.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

namespace zed::sched {
namespace {

// Judging every later job against every blocked one is quadratic; those first in the order matter.
constexpr std::size_t most_blockers = 16;
constexpr std::size_t most_moves = 8;

struct Line {
  std::vector<QueuedJob> jobs;  ///< of one user and priority, in submit order
  std::size_t next = 0;
};

bool comes_first(const QueuedJob& a, const QueuedJob& b) {
  return std::tie(b.priority, a.submitted, a.id) < std::tie(a.priority, b.submitted, b.id);
}

/// One priority's jobs, taken by turns: who holds least goes next.
void take_turns(std::map<std::string, Line>& lines, std::map<std::string, std::int64_t>& held,
                std::vector<JobId>& ordered) {
  using Turn = std::tuple<std::int64_t, std::uint64_t, std::string>;
  std::set<Turn> turns;
  for (const auto& [user, line] : lines)
    turns.emplace(held[user], line.jobs.front().submitted, user);
  while (!turns.empty()) {
    std::string user = std::get<2>(*turns.begin());
    turns.erase(turns.begin());
    Line& line = lines[user];
    const QueuedJob& job = line.jobs[line.next++];
    ordered.push_back(job.id);
    held[user] += std::max<std::int64_t>(1, job.weight);
    if (line.next < line.jobs.size())
      turns.emplace(held[user], line.jobs[line.next].submitted, user);
  }
}

bool is_running(const Attempt& attempt) {
  return attempt.phase != AttemptPhase::ended;
}

}  // namespace

std::vector<JobId> order(std::vector<QueuedJob> pending,
                         const std::map<std::string, std::int64_t>& held_now) {
  std::sort(pending.begin(), pending.end(), comes_first);
  auto held = held_now;
  std::vector<JobId> ordered;
  ordered.reserve(pending.size());
  for (std::size_t i = 0; i < pending.size();) {
    std::map<std::string, Line> lines;
    std::int64_t priority = pending[i].priority;
    for (; i < pending.size() && pending[i].priority == priority; ++i)
      lines[pending[i].submitted_by].jobs.push_back(pending[i]);
    take_turns(lines, held, ordered);
  }
  return ordered;
}

std::vector<Decision> schedule(Index& index, const std::vector<PlaceRequest>& ordered,
                               const MayPass& may_pass) {
  std::vector<Decision> decisions;
  std::vector<const PlaceRequest*> blockers;
  std::optional<Index> idle;
  for (const PlaceRequest& request : ordered) {
    bool may_go = std::all_of(blockers.begin(), blockers.end(), [&](const PlaceRequest* blocked) {
      return may_pass(request, *blocked);
    });
    auto placement = may_go ? place(index, request) : std::nullopt;
    if (placement) index.reserve(reservation_of(request, *placement));
    decisions.push_back({request.job.id, placement});
    if (placement || !may_pass || !may_go || blockers.size() == most_blockers) continue;
    if (!idle) idle = index.idle();
    if (place(*idle, request)) blockers.push_back(&request);
  }
  return decisions;
}

namespace {

/// Tries to free one node by moving attempts off it, on an index that it puts back as it was.
class Mover {
public:
  Mover(Index& index, const FleetView& view, const PlaceRequest& stuck,
        const std::map<JobId, Job>& running)
      : index_(index), view_(view), running_(running), here_(stuck) {}

  /// The moves that make the stuck job fit on `node`; none if there are none (or too many).
  std::optional<std::vector<Move>> free(const Node& node) {
    here_.only = node.name;
    const std::vector<Attempt>& attempts = attempts_on(node.name);
    index_.update(node, {});
    bool could = place(index_, here_).has_value();
    std::optional<std::vector<Move>> moves;
    index_.update(node, attempts);
    if (could) moves = move_off(node, attempts);
    for (const JobId& job : reserved_)
      index_.release(job);
    reserved_.clear();
    index_.update(node, attempts);
    return moves;
  }

private:
  const std::vector<Attempt>& attempts_on(const NodeName& name) const {
    static const std::vector<Attempt> none;
    auto found = view_.attempts.find(name);
    return found == view_.attempts.end() ? none : found->second;
  }

  std::optional<std::vector<Move>> move_off(const Node& node, std::vector<Attempt> staying) {
    // Those that hold most first: they make the fewest moves.
    std::stable_sort(staying.begin(), staying.end(), [](const Attempt& a, const Attempt& b) {
      return a.gpus.size() > b.gpus.size();
    });
    std::vector<Move> moves;
    for (std::size_t i = 0; i < staying.size() && moves.size() < most_moves;) {
      auto to = is_running(staying[i]) ? elsewhere(staying[i], node.name) : std::nullopt;
      if (!to) {
        ++i;
        continue;
      }
      moves.push_back({staying[i].job, node.name, *to});
      staying.erase(staying.begin() + static_cast<std::ptrdiff_t>(i));
      index_.update(node, staying);
      if (place(index_, here_)) return moves;
    }
    return std::nullopt;
  }

  std::optional<NodeName> elsewhere(const Attempt& attempt, const NodeName& from) {
    auto job = running_.find(attempt.job);
    if (attempt.gpus.empty() || job == running_.end()) return std::nullopt;
    PlaceRequest request;
    request.job = job->second;
    request.exclusions.push_back({from, "it is to be freed", true});
    auto placement = place(index_, request);
    if (!placement) return std::nullopt;
    index_.reserve(reservation_of(request, *placement));
    reserved_.push_back(attempt.job);
    return placement->node;
  }

  Index& index_;
  const FleetView& view_;
  const std::map<JobId, Job>& running_;
  PlaceRequest here_;
  std::vector<JobId> reserved_;
};

}  // namespace

std::vector<Move> propose_moves(const FleetView& view, const PlaceRequest& stuck,
                                const std::map<JobId, Job>& running) {
  Index index(view);
  if (place(index, stuck)) return {};
  std::optional<std::vector<Move>> fewest;
  Mover mover(index, view, stuck, running);
  for (const auto& [name, node] : view.nodes) {
    if (stuck.only && *stuck.only != name) continue;
    auto moves = mover.free(node);
    if (moves && (!fewest || moves->size() < fewest->size())) fewest = std::move(moves);
  }
  return fewest ? *fewest : std::vector<Move>{};
}

}  // namespace zed::sched
