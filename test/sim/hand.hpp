#pragma once
// What people do with their own zfs commands, beside Zed, on one machine's copy of a job. Each
// returns whether it happened (there was such a dataset, and nothing was held).

#include <cstddef>
#include <cstdint>

namespace zed::sim {

class World;

/// `zfs snapshot jobs/job0@by-hand-N`
bool hand_snapshot(World& world, std::size_t machine, std::size_t job);
/// `zfs destroy jobs/job0@epoch-N`
bool hand_destroy(World& world, std::size_t machine, std::size_t job, std::uint64_t which);
/// `zfs rollback -r jobs/job0@epoch-N`, of a snapshot that is not the newest
bool hand_rollback(World& world, std::size_t machine, std::size_t job, std::uint64_t which);
/// `zfs set com.zed:note=… jobs/job0`
bool hand_set(World& world, std::size_t machine, std::size_t job);

}  // namespace zed::sim
