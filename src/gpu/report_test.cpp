// One report made of many: what tools say of the same device, what was known before, and what a job
// is offered of it.

#include <gtest/gtest.h>

#include "base/json.hpp"
#include "gpu/inventory.hpp"
#include "gpu/merge.hpp"
#include "gpu/probed.hpp"
#include "net/scripts_test.hpp"

namespace zed::gpu {
namespace {

Device nvidia(std::int64_t index, const std::string& uuid, const std::string& bus) {
  Device device;
  device.vendor = GpuVendor::nvidia;
  device.index = index;
  if (!uuid.empty()) device.uuid = Known<std::string>::of(uuid, "test");
  if (!bus.empty()) device.bus_id = Known<std::string>::of(bus, "test");
  device.model = Known<std::string>::of("NVIDIA GeForce RTX 4090", "test");
  device.total = Known<Bytes>::of(mebibytes(24564), "test");
  device.driver_seen = true;
  return device;
}

TEST(Merge, ADriverThatNumbersAnewRenumbersNothing) {
  Report last;
  last.boot = "b";
  last.devices = {nvidia(0, "GPU-a", "0000:01:00.0"), nvidia(1, "GPU-b", "0000:02:00.0"),
                  nvidia(2, "GPU-c", "0000:03:00.0")};
  Report now;
  now.boot = "b";
  now.devices = {nvidia(0, "GPU-a", "0000:01:00.0"), nvidia(1, "GPU-c", "0000:03:00.0")};
  settle(now, {});
  remember(now, last);
  ASSERT_EQ(now.devices.size(), 3u);
  EXPECT_EQ(now.devices[1].uuid.value, "GPU-b");
  EXPECT_EQ(now.devices[1].health, GpuHealth::lost);
  EXPECT_EQ(now.devices[2].uuid.value, "GPU-c");
  EXPECT_EQ(now.devices[2].index, 2);
  // After a restart of the machine, what is gone was taken out by a person.
  now.devices.erase(now.devices.begin() + 1);
  now.boot = "c";
  remember(now, last);
  EXPECT_EQ(now.devices.size(), 2u);
}

TEST(Merge, ALostRowGetsItsNameBackFromTheLastInventory) {
  Report last;
  last.devices = {nvidia(0, "GPU-a", "0000:01:00.0"), nvidia(1, "GPU-b", "0000:02:00.0")};
  Report now;
  Device lost;
  lost.vendor = GpuVendor::nvidia;
  lost.index = 1;
  lost.driver_seen = true;
  lost.diagnose(GpuHealth::lost, "lost", "test");
  now.devices = {nvidia(0, "GPU-a", "0000:01:00.0"), lost};
  settle(now, {});
  remember(now, last);
  ASSERT_EQ(now.devices.size(), 2u);
  EXPECT_EQ(now.devices[1].uuid.value, "GPU-b");
  EXPECT_EQ(now.devices[1].model.value, "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(now.devices[1].uuid.source, "last inventory");
  EXPECT_EQ(now.devices[1].health, GpuHealth::lost);
}

TEST(Merge, OrderOfToolsDecidesFieldsAndTheWorstHealthWins) {
  Report report;
  merge(report, {nvidia(0, "GPU-a", "0000:01:00.0")});
  Device other = nvidia(0, "GPU-a", "0000:01:00.0");
  other.total = Known<Bytes>::of(mebibytes(1), "other");
  other.temperature = Known<std::int64_t>::of(40, "other");
  other.diagnose(GpuHealth::reset_required, "pending", "other");
  merge(report, {other});
  ASSERT_EQ(report.devices.size(), 1u);
  const Device& merged = report.devices[0];
  EXPECT_EQ(merged.total.value, mebibytes(24564));
  EXPECT_EQ(merged.temperature.source, "other");
  EXPECT_EQ(merged.health, GpuHealth::reset_required);
}

TEST(Inventory, WhatAJobCannotUseIsNotOffered) {
  auto health_of = [](Device device) {
    Report report;
    report.devices = {std::move(device)};
    settle(report, HostMemory{gibibytes(64).value, std::nullopt});
    return core_gpus(report, {}).at(0).health;
  };
  EXPECT_EQ(health_of(nvidia(0, "GPU-a", "0000:01:00.0")), GpuHealth::ok);
  Device parent = nvidia(0, "GPU-a", "0000:01:00.0");
  parent.mig_enabled = true;
  EXPECT_EQ(health_of(parent), GpuHealth::reserved);
  Device instance = nvidia(0, "", "");
  instance.mig_parent = "GPU-a";
  EXPECT_EQ(health_of(instance), GpuHealth::reserved);
  Device screen;
  screen.vendor = GpuVendor::intel;
  screen.integrated = true;
  screen.driver_seen = true;
  EXPECT_EQ(health_of(screen), GpuHealth::reserved);
  screen.compute_seen = true;
  EXPECT_EQ(health_of(screen), GpuHealth::ok);
  Device bare;
  bare.vendor = GpuVendor::nvidia;
  EXPECT_EQ(health_of(bare), GpuHealth::reserved);
}

TEST(Inventory, UnifiedMemoryIsTheHostsShare) {
  Report report;
  Device board;
  board.vendor = GpuVendor::nvidia;
  board.integrated = true;
  board.driver_seen = true;
  report.devices = {board};
  settle(report, HostMemory{gibibytes(128).value, std::nullopt});
  ASSERT_EQ(report.devices.size(), 1u);
  EXPECT_EQ(reported_memory(report.devices[0]),
            (Bytes{gibibytes(128).value - gibibytes(128).value / 10}));
}

TEST(Inventory, SlicesAndCardsAreCalledByUuidAndTheRestByNumber) {
  EXPECT_EQ(visible_name(nvidia(3, "GPU-a", "")), "GPU-a");
  EXPECT_EQ(visible_name(nvidia(3, "", "")), "3");
  Device arc = nvidia(1, "0000-1", "");
  arc.vendor = GpuVendor::intel;
  EXPECT_EQ(visible_name(arc), "1");
}

TEST(Strangers, AreWhoeverIsNotOurs) {
  auto is_ours = [](std::int64_t pid) { return pid == 7; };
  Device device = nvidia(0, "GPU-a", "");
  EXPECT_EQ(strangers_of(device, is_ours), Bytes{});
  // A desktop uses memory without being a compute process.
  device.used = Known<Bytes>::of(mebibytes(2210), "test");
  EXPECT_EQ(strangers_of(device, is_ours), mebibytes(2240));
  device.processes = {{7, "train", mebibytes(2000)}, {8, "other", mebibytes(100)}};
  EXPECT_EQ(strangers_of(device, is_ours), mebibytes(192));
  // A few MiB more or less are no news.
  device.used = Known<Bytes>::of(mebibytes(2215), "test");
  EXPECT_EQ(strangers_of(device, is_ours), mebibytes(192));
  // Who uses what is not told: while we use it, nothing is held against it.
  device.processes = {{7, "train", std::nullopt}};
  EXPECT_EQ(strangers_of(device, is_ours), Bytes{});
  device.processes = {{8, "other", std::nullopt}};
  EXPECT_EQ(strangers_of(device, is_ours), mebibytes(2240));
}

// ---- by a helper process ----

class Helper : public net::Scripts {
protected:
  ProbedOptions options(const std::string& body) {
    ProbedOptions made;
    made.program = script(body);
    made.inventory_file = folder_ / "gpus.json";
    return made;
  }
  static std::string report_of(const Device& device) {
    Report report;
    report.devices = {device};
    return to_json(to_value(report));
  }
};

TEST_F(Helper, WhatItFoundIsKeptForTheNextAgent) {
  ProbedGpus gpus(options("cat <<'END'\n" + report_of(nvidia(0, "GPU-a", "")) + "\nEND"));
  EXPECT_TRUE(gpus.known().empty());
  auto found = gpus.probe();
  ASSERT_TRUE(found) << found.error().describe();
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->at(0).health, GpuHealth::ok);
  EXPECT_EQ(gpus.loads().at(0).uuid, "GPU-a");
  ProbedGpus after(options("exit 1"));
  // Not asked yet: nothing is placed on it, and its name is known.
  ASSERT_EQ(after.known().size(), 1u);
  EXPECT_EQ(after.known()[0].health, GpuHealth::stale);
  EXPECT_EQ(after.known()[0].model, "NVIDIA GeForce RTX 4090");
  EXPECT_FALSE(after.probe());
}

TEST_F(Helper, OneThatPrintsNonsenseChangesNothing) {
  ProbedGpus good(options("cat <<'END'\n" + report_of(nvidia(0, "GPU-a", "")) + "\nEND"));
  ASSERT_TRUE(good.probe());
  for (const char* body : {"echo nonsense", "echo '{\"devices\": 7}'", "echo '[]'", "kill -9 $$"})
    EXPECT_FALSE(ProbedGpus(options(body)).probe()) << body;
  EXPECT_EQ(ProbedGpus(options("exit 1")).known().size(), 1u);
}

}  // namespace
}  // namespace zed::gpu
