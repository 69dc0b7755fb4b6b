#pragma once
// Names of GPUs by PCI id, for machines where no tool has one.

#include <string>
#include <string_view>

#include "core/gpu.hpp"

namespace zed::gpu {

/// "NVIDIA GeForce RTX 3060" of "10de:2504"; empty if it is not in the short table.
std::string_view name_of_pci_id(std::string_view pci_id);
/// The name of such a device out of the text of a pci.ids file; empty if it has none.
std::string name_in_pci_ids(std::string_view file, std::string_view pci_id);

/// nvidia 10de, amd 1002, intel 8086; other for all others (a server's own screen among them).
GpuVendor vendor_of_pci_id(std::string_view pci_id);
/// "NVIDIA", "AMD", "Intel", "Apple".
std::string_view vendor_word(GpuVendor vendor);
/// An integrated GPU that its name says to be one: "Intel UHD Graphics 770". Bus 00:02.0 is another
/// sign, and 'Arc' none.
bool is_integrated_intel(std::string_view bus_id);

}  // namespace zed::gpu
