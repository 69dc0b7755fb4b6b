#pragma once
// The question that is put to the scheduler for one job. Inside the room only.

#include "controller/desired.hpp"
#include "sched/request.hpp"

namespace zed::controller {

struct Machine;

/// What the scheduler must know: the job, and where its files are already.
sched::PlaceRequest place_request(const Machine& m, const DesiredJob& job);

}  // namespace zed::controller
