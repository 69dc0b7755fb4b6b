#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "gpu/other_tools.hpp"
#include "gpu/sysfs.hpp"

namespace zed::gpu {
namespace {

namespace fs = std::filesystem;

/// A machine's /sys that goes when the test ends.
class Machine {
public:
  Machine() {
    std::string name = (fs::temp_directory_path() / "zed-gpu-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~Machine() {
    std::error_code error;
    fs::remove_all(root_, error);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void file(const std::string& path, const std::string& text) const {
    const fs::path whole = root_.string() + path;
    fs::create_directories(whole.parent_path());
    std::ofstream(whole) << text << "\n";
  }
  /// An Instinct card at a bus number ("83"), as node `node` of KFD, in the hive.
  void card(const std::string& bus, int node, const std::string& hive) const {
    const std::string device = "/sys/bus/pci/devices/0000:" + bus + ":00.0/";
    file(device + "vendor", "0x1002");
    file(device + "device", "0x740f");
    file(device + "class", "0x038000");
    file(device + "driver", "-> ../../../bus/pci/drivers/amdgpu");
    file(device + "mem_info_vram_total", "68702699520");
    const std::string kfd = "/sys/class/kfd/kfd/topology/nodes/" + std::to_string(node) + "/";
    file(kfd + "gpu_id", std::to_string(1000 + node));
    file(kfd + "properties", "simd_count 416\ngfx_target_version 90010\nlocation_id " +
                                 std::to_string(std::stoi(bus, nullptr, 16) << 8) + "\nhive_id " +
                                 hive);
  }
  std::vector<Device> devices() const { return read_sysfs(Tree(root_)); }

private:
  fs::path root_;
};

std::map<std::string, std::string> islands(const std::vector<Device>& devices) {
  std::map<std::string, std::string> found;
  for (const Device& device : devices)
    found[device.bus_id.value] = device.island;
  return found;
}

Device the_only(std::vector<Device> devices) {
  EXPECT_EQ(devices.size(), 1U);
  return devices.empty() ? Device{} : devices.front();
}

TEST(AmdIslands, AHiveIsOne) {
  Machine machine;
  machine.card("83", 2, "15930411456790219453");
  machine.card("c3", 3, "15930411456790219453");
  machine.card("43", 4, "7");
  machine.card("03", 5, "0");
  EXPECT_EQ(islands(machine.devices()),
            (std::map<std::string, std::string>{{"0000:83:00.0", "xgmi-15930411456790219453"},
                                                {"0000:c3:00.0", "xgmi-15930411456790219453"},
                                                {"0000:43:00.0", "xgmi-7"},
                                                {"0000:03:00.0", ""}}));
}

TEST(AmdIslands, AHiveThatIsNoNumberIsNone) {
  Machine machine;
  machine.card("83", 2, "../../etc");
  machine.card("c3", 3, "999999999999999999999");
  for (const auto& [bus, island] : islands(machine.devices()))
    EXPECT_EQ(island, "") << bus;
}

TEST(AmdHealth, ErrorsThatEccDidNotCorrectCount) {
  Machine machine;
  machine.card("83", 2, "0");
  const std::string counts = "/sys/bus/pci/devices/0000:83:00.0/ras/umc_err_count";
  machine.file(counts, "ue: 0\nce: 12");
  EXPECT_EQ(the_only(machine.devices()).health, GpuHealth::ok);
  machine.file(counts, "ue: 3\nce: 12\nde: 0");
  const Device device = the_only(machine.devices());
  EXPECT_EQ(device.health, GpuHealth::degraded);
  EXPECT_EQ(device.why, "3 memory errors that could not be corrected");
  for (const char* nonsense : {"", "ue:", "ue: many", "ue: -4", "ue 7"}) {
    machine.file(counts, nonsense);
    EXPECT_EQ(the_only(machine.devices()).health, GpuHealth::ok) << nonsense;
  }
}

TEST(AppleMemory, WhatMetalRecommendsComesFirst) {
  AppleFacts facts;
  facts.brand = "Apple M3 Max";
  facts.memory = gibibytes(64);
  facts.wired_limit = gibibytes(40);
  const auto usable_of = [&facts] {
    Report report;
    settle_apple_memory(report, facts);
    return the_only(report.devices).usable;
  };
  EXPECT_EQ(usable_of().value, gibibytes(40));
  EXPECT_EQ(usable_of().source, "sysctl");
  facts.working_set = gibibytes(48);
  EXPECT_EQ(usable_of().value, gibibytes(48));
  EXPECT_EQ(usable_of().source, "Metal");
  facts.working_set = gibibytes(96);
  EXPECT_EQ(usable_of().value, gibibytes(64)) << "never more than there is";
}

TEST(KernelLog, AnAmdGpuWhoseResetFailedNeedsOne) {
  const std::string failed =
      "[  113.1] amdgpu 0000:04:00.0: amdgpu: GPU reset begin!\n"
      "[  113.9] amdgpu 0000:04:00.0: amdgpu: GPU reset(2) failed\n"
      "[  114.0] amdgpu 0000:04:00.0: amdgpu: GPU reset end with ret = -110\n";
  const Device hung = the_only(read_kernel_log(failed));
  EXPECT_EQ(hung.vendor, GpuVendor::amd);
  EXPECT_EQ(hung.health, GpuHealth::reset_required);
  EXPECT_EQ(hung.why, "the driver could not reset it after it hung");
  const Device well = the_only(
      read_kernel_log(failed + "[  200.0] amdgpu 0000:04:00.0: amdgpu: GPU reset(3) succeeded!\n"));
  EXPECT_EQ(well.health, GpuHealth::ok);
  EXPECT_EQ(well.why, "");
}

TEST(KernelLog, AnAmdGpuThatLeftTheBusIsLost) {
  const Device device = the_only(
      read_kernel_log("[  1.0] amdgpu 0000:0a:00.0: amdgpu: device lost from bus!\n"
                      "[  1.1] amdgpu 0000:0a:00.0: amdgpu: GPU reset end with ret = -19\n"));
  EXPECT_EQ(device.bus_id.value, "0000:0a:00.0");
  EXPECT_EQ(device.health, GpuHealth::lost);
}

TEST(KernelLog, AWedgedXeIsOneUntilItIsBoundAgain) {
  const std::string wedged = "[ 10.7] xe 0000:09:00.0: [drm] *ERROR* CRITICAL: Xe has declared "
                             "device 0000:09:00.0 as wedged.\n";
  EXPECT_EQ(the_only(read_kernel_log(wedged)).health, GpuHealth::reset_required);
  const std::string again = "[ 99.0] xe 0000:09:00.0: [drm] Found battlemage (device ID e20b) "
                            "discrete display version 14.01 stepping B0\n";
  EXPECT_EQ(the_only(read_kernel_log(wedged + again)).health, GpuHealth::ok);
  EXPECT_EQ(the_only(read_kernel_log(again + wedged)).health, GpuHealth::reset_required);
}

}  // namespace
}  // namespace zed::gpu
