// What each parser makes of odd output. The recorded outputs are played through the real program by
// test/gpu/probe_test.py; here are the borders of the rules.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "gpu/amd_tools.hpp"
#include "gpu/inventory.hpp"
#include "gpu/merge.hpp"
#include "gpu/nvidia_csv.hpp"
#include "gpu/nvidia_list.hpp"
#include "gpu/nvidia_names.hpp"
#include "gpu/nvidia_xml.hpp"
#include "gpu/other_tools.hpp"
#include "gpu/pci_names.hpp"
#include "gpu/sysfs.hpp"
#include "gpu/words.hpp"

namespace zed::gpu {
namespace {

const std::vector<std::string> short_columns{
    "index", "uuid", "memory.total", "memory.used", "memory.free", "power.draw", "name"};

Device only(const std::vector<Device>& devices) {
  EXPECT_EQ(devices.size(), 1u);
  return devices.empty() ? Device{} : devices.front();
}

TEST(Words, TheSameThingIsSaidInManyWays) {
  for (const char* text : {"[N/A]", "N/A", "[Not Supported]", "Not Supported", "", " ",
                           "[Not Found]", "not available", "None"})
    EXPECT_EQ(word_of(text).state, FieldState::unsupported) << text;
  for (const char* text : {"[Insufficient Permissions]", "Insufficient Permissions"})
    EXPECT_EQ(word_of(text).state, FieldState::denied) << text;
  for (const char* text : {"[Unknown Error]", "ERR!", "[anything in brackets]"})
    EXPECT_EQ(word_of(text).state, FieldState::error) << text;
  EXPECT_EQ(word_of("[GPU is lost]").health, GpuHealth::lost);
  EXPECT_EQ(word_of("[GPU requires reset]").health, GpuHealth::reset_required);
  EXPECT_EQ(word_of("24564").state, FieldState::value);
}

TEST(Words, SizesAreReadWithTheirUnitsAndBounded) {
  EXPECT_EQ(size_of("24564 MiB"), mebibytes(24564));
  EXPECT_EQ(size_of("4 GB"), gibibytes(4));
  EXPECT_EQ(size_of("127800000 kB"), kibibytes(127800000));
  EXPECT_EQ(size_of("1.5 GiB"), mebibytes(1536));
  for (const char* bad :
       {"", "MiB", "-1 MiB", "5 parsecs", "1e30 GB", "9999999999999 TB", "24,5 GB"})
    EXPECT_EQ(size_of(bad), std::nullopt) << bad;
}

TEST(BusId, IsOneWordWhateverTheToolWrites) {
  EXPECT_EQ(normal_bus_id("00000000:01:00.0"), "0000:01:00.0");
  EXPECT_EQ(normal_bus_id("0000:0A:00.0"), "0000:0a:00.0");
  EXPECT_EQ(normal_bus_id("01:00.0"), "0000:01:00.0");
  EXPECT_EQ(normal_bus_id("0000:44:00"), "0000:44:00.0");
  EXPECT_EQ(normal_bus_id("10000:e1:00.0"), "10000:e1:00.0");
  for (const char* bad : {"", ":", "[N/A]", "0000:1:00.0", "a:b:c:d", "0000:01:00.10"})
    EXPECT_EQ(normal_bus_id(bad), "") << bad;
}

TEST(NvidiaCsv, ANameMayHoldCommasAndAPriceMayNot) {
  auto answer = read_gpu_csv("0, GPU-1, 8192, 0, 8000, 11.5, NVIDIA Eng Sample, Rev A\r\n\r\n",
                             short_columns);
  EXPECT_EQ(only(answer.devices).model.value, "NVIDIA Eng Sample, Rev A");
  EXPECT_FALSE(answer.doubtful);
  // A decimal comma shifts nothing, since columns are parted by ", "; the figure is not believed.
  answer = read_gpu_csv("0, GPU-1, 24564, 1, 24210, 11,02, NVIDIA GeForce RTX 4090", short_columns);
  EXPECT_EQ(only(answer.devices).total.value, mebibytes(24564));
  EXPECT_EQ(only(answer.devices).power.state, FieldState::error);
  EXPECT_TRUE(answer.doubtful);
}

TEST(NvidiaCsv, ARowTornApartIsJoinedAndAnotherShapeIsRejected) {
  auto answer = read_gpu_csv("0, GPU-1, 4096, 0, 4055\n, [N/A], NVIDIA GeForce GTX 950M\n"
                             "some words\n<?xml version=\"1.0\"?>\n",
                             short_columns);
  EXPECT_EQ(only(answer.devices).total.value, mebibytes(4096));
  EXPECT_EQ(answer.rejected, 2u);
}

TEST(NvidiaCsv, AnAbsurdFigureIsAnErrorOfThatFieldAlone) {
  auto answer =
      read_gpu_csv("0, GPU-1, 99999999999999999999, -5, 10, nan, NVIDIA T4", short_columns);
  Device device = only(answer.devices);
  EXPECT_EQ(device.total.state, FieldState::error);
  EXPECT_EQ(device.used.state, FieldState::error);
  EXPECT_EQ(device.model.value, "NVIDIA T4");
  EXPECT_TRUE(answer.doubtful);
}

TEST(NvidiaCsv, ALostGpuKeepsItsNumberAndHidesNoOther) {
  std::string lost = "[GPU is lost]";
  auto answer =
      read_gpu_csv("0, GPU-0, 11264, 5, 11259, 15.10, NVIDIA GeForce RTX 2080 Ti\n"
                   "1, " +
                       lost + ", " + lost + ", " + lost + ", " + lost + ", " + lost + ", " + lost +
                       "\n"
                       "2, GPU-2, 11264, 5, 11259, 15.10, NVIDIA GeForce RTX 2080 Ti\n",
                   short_columns);
  ASSERT_EQ(answer.devices.size(), 3u);
  EXPECT_EQ(answer.devices[1].health, GpuHealth::lost);
  EXPECT_EQ(answer.devices[1].index, 1);
  EXPECT_EQ(answer.devices[2].index, 2);
  EXPECT_EQ(answer.devices[2].health, GpuHealth::ok);
}

TEST(NvidiaCsv, WhatTheDriverReservesIsTheGap) {
  auto answer =
      read_gpu_csv("0, GPU-1, 24564, 1, 24210, 11.0, NVIDIA GeForce RTX 4090", short_columns);
  EXPECT_EQ(only(answer.devices).reserved.value, mebibytes(353));
}

TEST(NvidiaCsv, AnOldDriverNamesTheColumnThatItDoesNotKnow) {
  EXPECT_EQ(unknown_column("Field \"addressing_mode\" is not a valid field to query.\n\n"),
            "addressing_mode");
  for (const char* other : {"", "Field \"", "Field \"x\" is fine", "No devices were found"})
    EXPECT_EQ(unknown_column(other), "") << other;
}

TEST(NvidiaCsv, NamesOfProcessesHoldCommasToo) {
  auto apps = read_apps_csv("GPU-a, 2044, /opt/tools/a,b/worker, 512\n"
                            "GPU-a, 3302, [Insufficient Permissions], [N/A]\n"
                            "0, GPU-b, python, 5\nGPU-c, x, y, 1\n");
  ASSERT_EQ(apps.size(), 2u);
  EXPECT_EQ(apps[0].process.name, "/opt/tools/a,b/worker");
  EXPECT_EQ(apps[0].process.used, mebibytes(512));
  EXPECT_EQ(apps[1].process.used, std::nullopt);
}

struct KindCase {
  const char* name;
  const char* total;
  MemoryKind kind;
};
TEST(NvidiaMemory, NotSupportedMeansSharedUnlessTheNameKnowsBetter) {
  for (const KindCase& c : {KindCase{"Orin (nvgpu)", "[N/A]", MemoryKind::unified},
                            KindCase{"NVIDIA GB10", "[Not Supported]", MemoryKind::unified},
                            KindCase{"NVIDIA N1X", "8128", MemoryKind::unified},
                            KindCase{"NVIDIA Something New", "[N/A]", MemoryKind::unified},
                            KindCase{"NVIDIA GeForce RTX 5090", "32607", MemoryKind::dedicated},
                            KindCase{"NVIDIA H100L-2-24C", "24576", MemoryKind::slice},
                            KindCase{"GRID T4-8C", "8192", MemoryKind::slice},
                            KindCase{"Tesla V100-SXM3-32GB", "32510", MemoryKind::dedicated},
                            KindCase{"NVIDIA A100-SXM4-40GB", "40960", MemoryKind::dedicated}}) {
    auto answer = read_gpu_csv(
        std::string("0, GPU-1, ") + c.total + ", [N/A], [N/A], [N/A], " + c.name, short_columns);
    EXPECT_EQ(only(answer.devices).memory_kind.value, c.kind) << c.name;
  }
  // A card whose memory a wrapper left out shares nothing; nor does one that may not be read.
  for (const char* total : {"[N/A]", "[Insufficient Permissions]"}) {
    auto answer = read_gpu_csv(std::string("0, GPU-1, ") + total +
                                   ", [N/A], [N/A], [N/A], NVIDIA A100-SXM4-80GB",
                               short_columns);
    EXPECT_FALSE(only(answer.devices).integrated) << total;
  }
}

TEST(NvidiaMemory, WhatTheCpuAddressesTooIsTheAcceleratorsOwn) {
  const std::vector<std::string> columns{"addressing_mode", "index", "uuid", "memory.total",
                                         "name"};
  struct Case {
    const char* name;
    std::int64_t reported;
  };
  for (const Case& c : {Case{"NVIDIA GH200 480GB", 97'871},
                        Case{"NVIDIA GH200 144G HBM3e", 146'831}, Case{"NVIDIA GB200", 189'471}}) {
    auto answer =
        read_gpu_csv("ATS, 0, GPU-1, " + std::to_string(c.reported) + ", " + c.name, columns);
    EXPECT_EQ(only(answer.devices).memory_kind.value, MemoryKind::coherent) << c.name;
    EXPECT_EQ(only(answer.devices).total.value, mebibytes(c.reported)) << c.name;
    auto silent = read_gpu_csv(std::string("ATS, 0, GPU-1, [N/A], ") + c.name, columns);
    EXPECT_FALSE(only(silent.devices).integrated) << c.name;
  }
}

TEST(NvidiaXml, OtherDocumentsAreRefused) {
  for (const char* bad : {"", "<", "plain words", "<a/>", "<?xml version=\"1.0\"?><nvidia_smi_lo/>",
                          "<nvidia_smi_log><gpu>"})
    EXPECT_FALSE(read_nvidia_xml(bad)) << bad;
  EXPECT_FALSE(read_nvidia_xml(std::string(std::size_t{5} << 20, ' ')));
  // Entities are not expanded, so none can be a bomb.
  auto bomb = read_nvidia_xml(R"(<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>
      <nvidia_smi_log><gpu id="00000000:01:00.0"><product_name>&b;</product_name></gpu>
      </nvidia_smi_log>)");
  ASSERT_TRUE(bomb);
  EXPECT_EQ(only(bomb->devices).model.value, "&b;");
}

TEST(NvidiaXml, TheDriversOwnVerdictIsHealth) {
  auto read = [](const std::string& inside) {
    return only(read_nvidia_xml("<nvidia_smi_log><gpu id=\"00000000:01:00.0\"><product_name>NVIDIA "
                                "H100</product_name>" +
                                inside + "</gpu></nvidia_smi_log>")
                    .value()
                    .devices);
  };
  EXPECT_EQ(read("<gpu_recovery_action>None</gpu_recovery_action>").health, GpuHealth::ok);
  EXPECT_EQ(read("<gpu_recovery_action>Reboot</gpu_recovery_action>").health,
            GpuHealth::reset_required);
  EXPECT_EQ(read("<gpu_recovery_action>Drain P2P</gpu_recovery_action>").health,
            GpuHealth::degraded);
  EXPECT_EQ(read("<remapped_rows><remapped_row_failure>Yes</remapped_row_failure></remapped_rows>")
                .health,
            GpuHealth::reset_required);
  EXPECT_EQ(
      read("<retired_pages><pending_blacklist>Yes</pending_blacklist></retired_pages>").health,
      GpuHealth::reset_required);
  EXPECT_EQ(read("<uuid>GPU is lost</uuid>").health, GpuHealth::lost);
}

TEST(NvidiaList, InstancesStandBehindTheirGpu) {
  auto devices = read_nvidia_list("GPU 0: NVIDIA A100 (UUID: GPU-a)\n"
                                  "  MIG 3g.20gb     Device  0: (UUID: MIG-GPU-a/1/0)\n"
                                  "GPU 11: NVIDIA A100 (UUID: GPU-b)\nnonsense\n");
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_TRUE(devices[0].mig_enabled);
  EXPECT_EQ(devices[1].model.value, "NVIDIA A100 MIG 3g.20gb");
  EXPECT_EQ(devices[1].mig_parent, "GPU-a");
  EXPECT_EQ(devices[1].uuid.value, "MIG-GPU-a/1/0");
  EXPECT_EQ(devices[2].index, 11);
  Report report;
  merge(report, devices);
  settle(report, {});
  EXPECT_EQ(report.devices.size(), 2u);
}

TEST(Topology, NvlinkJoinsIslands) {
  auto topology = read_topology("\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\n"
                                "GPU0\t X \tNV4\tSYS\tSYS\t0-7\t0\n"
                                "GPU1\tNV4\t X \tSYS\tSYS\t0-7\t0\n"
                                "GPU2\tSYS\tSYS\t X \tPHB\t8-15\t1\n"
                                "GPU3\tSYS\tSYS\tPHB\t X \t8-15\t1\n\nLegend:\n\n  NV#  = x\n");
  EXPECT_EQ(topology.islands,
            (std::map<std::int64_t, std::string>{{0, "nvlink-0"}, {1, "nvlink-0"}}));
  EXPECT_EQ(topology.numa, (std::map<std::int64_t, std::int64_t>{{0, 0}, {1, 0}, {2, 1}, {3, 1}}));
}

TEST(Amd, EveryNodeOfTheJsonMayBeOfAnotherType) {
  for (const char* bad : {"", "words", "{", "{\"a\":1}", "7"})
    EXPECT_FALSE(read_amd_smi(bad)) << bad;
  auto odd = read_amd_smi(R"(WARNING: x
[{"gpu": "N/A", "asic": "N/A", "bus": [], "vram": 7, "driver": 5}, 3, "x", null,
 {"gpu": 1, "asic": {"market_name": "MI300X"}, "vram": {"size": {"value": "196592", "unit": "MB"}}}])");
  ASSERT_TRUE(odd);
  ASSERT_EQ(odd->devices.size(), 2u);
  EXPECT_EQ(odd->devices[1].total.value, mebibytes(196592));
  auto newer = read_amd_smi(R"({"gpu_data": [{"gpu": 0, "asic": {"market_name": "MI355X"}}]})");
  ASSERT_TRUE(newer);
  EXPECT_EQ(only(newer->devices).model.value, "MI355X");
}

TEST(Amd, PartsOfOneAcceleratorShareItsMemory) {
  std::string parts;
  for (int i = 0; i < 8; ++i)
    parts += std::string(i == 0 ? "" : ",") + R"({"gpu": )" + std::to_string(i) +
             R"(, "asic": {"market_name": "MI300X", "asic_serial": "0x1234"},
                "bus": {"bdf": "0000:05:00.)" +
             std::to_string(i) + R"("},
                "vram": {"size": {"value": 196592, "unit": "MB"}}})";
  Report report;
  merge(report, read_amd_smi("[" + parts + "]").value().devices);
  settle(report, {});
  ASSERT_EQ(report.devices.size(), 8u);
  std::set<std::string> identities;
  for (const Device& device : report.devices) {
    EXPECT_EQ(reported_memory(device), mebibytes(24574));
    EXPECT_EQ(device.memory_kind.value, MemoryKind::slice);
    identities.insert(identity_of(device));
  }
  EXPECT_EQ(identities.size(), 8u);
  EXPECT_EQ(visible_name(report.devices[5]), "5");
}

TEST(Amd, ArchitectureNumbersBecomeNames) {
  EXPECT_EQ(gfx_name(110501), "gfx1151");
  EXPECT_EQ(gfx_name(90010), "gfx90a");
  EXPECT_EQ(gfx_name(90402), "gfx942");
  EXPECT_EQ(gfx_name(100301), "gfx1031");
  EXPECT_EQ(gfx_name(0), "");
}

TEST(Apple, ThreeQuartersUnlessAPersonSaidOtherwise) {
  struct Case {
    std::int64_t memory_gib;
    std::int64_t offered_gib;
  };
  for (const Case& c : {Case{24, 18}, Case{36, 27}, Case{48, 36}, Case{64, 48}}) {
    Report report;
    settle_apple_memory(
        report,
        read_apple_sysctl("hw.memsize: " + std::to_string(gibibytes(c.memory_gib).value) +
                          "\nmachdep.cpu.brand_string: Apple M4\niogpu.wired_limit_mb: 0\n"));
    EXPECT_EQ(reported_memory(only(report.devices)), gibibytes(c.offered_gib));
  }
  Report report;
  settle_apple_memory(report,
                      read_apple_sysctl("sysctl: unknown oid 'hw.memsize'\n"
                                        "machdep.cpu.brand_string: Intel(R) Core(TM) i9\n"));
  EXPECT_TRUE(report.devices.empty());
}

TEST(Lspci, QuotedFieldsHoldCommasAndOtherVendorsAreNoGpus) {
  auto devices = read_lspci(
      "0000:03:00.0 \"Display controller [0380]\" \"Advanced Micro Devices, Inc. [AMD/ATI] "
      "[1002]\" "
      "\"Vega 20 [Radeon, Instinct] [66a0]\" -r06 \"x [1002]\" \"Device [0834]\"\n"
      "0000:04:00.0 \"VGA compatible controller [0300]\" \"ASPEED Technology, Inc. [1a03]\" "
      "\"ASPEED Graphics Family [2000]\" -r52 \"\" \"\"\n"
      "0000:01:00.1 \"Audio device [0403]\" \"NVIDIA Corporation [10de]\" \"x [22ba]\"\n\"\n");
  EXPECT_EQ(only(devices).model.value, "AMD Radeon, Instinct");
}

TEST(KernelLog, AnApplicationsFaultIsNotTheGpus) {
  auto devices = read_kernel_log("[1.0] NVRM: Xid (PCI:0000:61:00): 31, pid=1, name=a, MMU Fault\n"
                                 "[2.0] NVRM: Xid (PCI:0000:62:00): 119, pid=1, Timeout\n"
                                 "[3.0] NVRM: Xid (PCI:0000:63:00): 63, pid=1, Row remap\n"
                                 "[4.0] usb 1-1: GPU has fallen off the bus 0000:01:00.0\n");
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[0].health, GpuHealth::ok);
  EXPECT_EQ(devices[1].health, GpuHealth::reset_required);
  EXPECT_EQ(devices[2].health, GpuHealth::degraded);
}

TEST(KernelLog, AGpuThatWorksSinceIsOnlyDegraded) {
  Report report;
  auto works =
      read_gpu_csv("0, GPU-1, 24564, 1, 24210, 11.0, NVIDIA GeForce RTX 4090", short_columns);
  works.devices[0].bus_id = Known<std::string>::of("0000:44:00.0", "nvidia-smi");
  merge(report, works.devices);
  merge(report, read_kernel_log("[1.0] NVRM: Xid (PCI:0000:44:00): 79, pid=1, GPU has fallen\n"));
  EXPECT_EQ(only(report.devices).health, GpuHealth::degraded);
}

// ---- no text brings a parser down ----

RC_GTEST_PROP(Parsers, TakeAnyText, (std::string text)) {
  (void)read_gpu_csv(text, gpu_columns());
  (void)read_apps_csv(text);
  (void)read_nvidia_xml(text);
  (void)read_nvidia_list(text);
  (void)read_topology(text);
  (void)read_amd_smi(text);
  (void)read_rocm_smi(text);
  (void)read_xpu_smi(text);
  (void)read_system_profiler(text);
  (void)read_apple_sysctl(text);
  (void)read_lspci(text);
  (void)read_kernel_log(text);
  (void)normal_bus_id(text);
  (void)is_vgpu(text);
  (void)name_in_pci_ids(text, "10de:2684");
  Report report;
  explain_nvidia_failure(text, 1, report);
}

RC_GTEST_PROP(Parsers, TakeRecordedTextCutAnywhere, ()) {
  namespace fs = std::filesystem;
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(ZED_SOURCE_DIR "/test/fixtures/gpu")) {
      std::ifstream file(entry.path(), std::ios::binary);
      all.emplace_back((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    }
    return all;
  }();
  std::string text = *rc::gen::elementOf(texts);
  text.resize(static_cast<std::size_t>(*rc::gen::inRange<std::int64_t>(0, std::ssize(text) + 1)));
  (void)read_gpu_csv(text, gpu_columns());
  (void)read_nvidia_xml(text);
  (void)read_nvidia_list(text);
  (void)read_topology(text);
  (void)read_amd_smi(text);
  (void)read_rocm_smi(text);
  (void)read_xpu_smi(text);
  (void)read_system_profiler(text);
  (void)read_lspci(text);
  (void)read_kernel_log(text);
}

}  // namespace
}  // namespace zed::gpu
