#pragma once
// One report out of what many tools say.

#include <functional>
#include <string_view>

#include "gpu/device.hpp"
#include "gpu/tree.hpp"

namespace zed::gpu {

/// Adds what one tool found. A device is the same as one that is there by UUID, else by bus id,
/// else by its number of that vendor, else if it is the only one left on both sides. What is known
/// already stays; health is the worst of both, except that a working reading beats a missing
/// driver link and an old message of the kernel.
void merge(Report& report, std::vector<Device> found);

/// The finishing touch: names from PCI ids (`name_of` may know more of them than the built-in
/// table), memory of unified GPUs from the host's, MIG parents out of the list, numbers for those
/// that no tool numbered, order by vendor and number.
void settle(Report& report, const HostMemory& host,
            const std::function<std::string(std::string_view pci_id)>& name_of = {});

/// Uses the last known inventory: facts of GPUs that cannot be asked now (asleep, lost), and GPUs
/// that were here in this run of the machine and are not any more, as lost. Numbers stay.
void remember(Report& report, const Report& last);

/// All GPUs of `last` as they were, stale: for when nothing answers.
Report stale_report(const Report& last, std::string_view why);

}  // namespace zed::gpu
