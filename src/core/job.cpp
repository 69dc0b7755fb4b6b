#include "core/job.hpp"

#include <initializer_list>

namespace zed {
namespace {

using enum JobState;

struct Row {
  JobState from;
  std::initializer_list<JobState> to;
  std::initializer_list<JobState> by_person;
};

// A success of an older timeline may end a job in any state but a terminal one (design: which
// success counts), and a cancel may too.
const Row rows[] = {
    {pending, {preparing, running, stopping, stopped, succeeded, failed, cancelled, waiting}, {}},
    {preparing, {pending, running, stopping, stopped, succeeded, failed, cancelled, lost}, {}},
    {running, {checkpointing, stopping, stopped, succeeded, failed, cancelled, lost, pending}, {}},
    {checkpointing, {running, stopping, stopped, succeeded, failed, cancelled, lost, pending}, {}},
    {stopping, {stopped, succeeded, failed, cancelled, lost, pending}, {}},
    {stopped, {succeeded, cancelled}, {pending}},
    {succeeded, {}, {}},
    {failed, {succeeded, cancelled}, {pending}},
    {cancelled, {}, {}},
    {lost, {pending, waiting, running, stopping, stopped, succeeded, failed, cancelled}, {}},
    {waiting, {pending, running, succeeded, cancelled, stopped}, {pending}},
};

bool contains(std::initializer_list<JobState> states, JobState wanted) {
  for (JobState state : states)
    if (state == wanted) return true;
  return false;
}

}  // namespace

bool may_become(JobState from, JobState to, bool by_person) {
  for (const Row& row : rows)
    if (row.from == from) return contains(row.to, to) || (by_person && contains(row.by_person, to));
  return false;
}

}  // namespace zed
