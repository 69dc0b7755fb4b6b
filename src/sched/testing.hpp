#pragma once
// Fleets and jobs in one line, for tests and benchmarks:
//
//   auto fleet = fleet_of("a: A100/80; b: 2xA100/80 has llama70b");
//   EXPECT_EQ(show(place(fleet, job("llama70b vram=48", fleet))), "b/gpu0");
//
// A GPU is [count x] model / GB [u: unified] [@numa] [%island] [!: held] [~: lost] [+N: GiB used by
// strangers]; '_' stands for a space. Other words of a node: has DATASET, root DATASET, label WORD,
// ram GB, free GB, os NAME, and a status (lost, suspect, draining, cordoned), norun.

#include <cstdint>
#include <string>
#include <string_view>

#include "core/fleet.hpp"
#include "sched/place.hpp"

namespace zed::sched::testing {

FleetView fleet_of(std::string_view text);

/// "llama70b vram=48 gpus=2 prefer=gpu:A100 fallback=node:b,label:x only=b name=train": words
/// without '=' are input datasets of 100 GiB, found on the nodes that have them.
PlaceRequest job(std::string_view text, const FleetView& fleet = {});

/// An attempt of that job on those GPUs.
Attempt attempt_of(const PlaceRequest& request, const Placement& placement);
/// Places it and lets it run. Asserts that it fits.
Placement run(FleetView& fleet, const PlaceRequest& request);

/// "b/gpu0+gpu1", "b" without GPUs, or "nowhere".
std::string show(const PlacementResult& result);
std::string show(const std::optional<Placement>& placement);

/// An identity made from a number.
JobId job_id(std::uint64_t number);
NodeName node(std::string_view name);

}  // namespace zed::sched::testing
