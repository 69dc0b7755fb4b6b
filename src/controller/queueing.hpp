#pragma once
// What the queue does beside finding places: capacity is held for the job at its head, lower
// priorities make room, and a short wait for a node may beat moving the data. Inside the room only.

#include <cstdint>

#include "controller/machine.hpp"
#include "sched/place.hpp"

namespace zed::controller {

/// A job gives way at most this often; a person's resume counts anew.
inline constexpr std::int64_t most_evictions = 3;

/// The place for a job at this moment. What is held for others is not there for it, unless its
/// time-out ends it before they could start.
std::optional<Placement> place_now(Machine& m, const DesiredJob& job,
                                   const sched::PlaceRequest& request);

/// The job found no place. If lower priorities can make room for it they are told to, and what
/// they leave is held for it; if it is the first of this pass that only capacity keeps waiting,
/// capacity is held for it. What it waits for, in words; "" if neither helps.
std::string wait_for_capacity(Machine& m, const DesiredJob& job,
                              const sched::PlaceRequest& request);

/// Why it is better to wait for another node than to move the data to that one; nothing if it is
/// not.
std::optional<std::string> worth_waiting(Machine& m, const DesiredJob& job,
                                         const sched::PlaceRequest& request,
                                         const Placement& placement);

/// Reservations, but those of one job: what is held for it is not in its own way.
std::vector<sched::Reservation> promises_to_others(const Machine& m, const JobId& but);

void begin_pass(Machine& m);
/// Ends what was held for jobs that no longer wait for it.
void end_pass(Machine& m);

/// How long a job may still run by its time-out; none without one.
std::optional<Millis> time_left(const Machine& m, const DesiredJob& job);

}  // namespace zed::controller
