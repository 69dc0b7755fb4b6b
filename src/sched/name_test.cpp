#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/text.hpp"
#include "sched/gpu_name.hpp"
#include "sched/nominal.hpp"
#include "sched/visible.hpp"

namespace zed::sched {
namespace {

/// The rows of a table in test/fixtures/match, without its heading.
std::vector<std::vector<std::string>> rows_of(const std::string& file) {
  std::ifstream in(std::string(ZED_SOURCE_DIR) + "/test/fixtures/match/" + file);
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line))
    if (!line.empty()) rows.push_back(split(line, '\t'));
  return rows;
}

TEST(GpuName, EveryRowOfTheTable) {
  auto rows = rows_of("name_match_cases.tsv");
  ASSERT_GE(rows.size(), 40u);
  for (const auto& row : rows)
    EXPECT_EQ(name_matches(row[0], row[1]), row[2] == "1") << row[0] << " against " << row[1];
}

struct NameCase {
  const char* query;
  const char* device;
  bool match;
};
// More of the same kinds, from product lists.
const NameCase more_names[] = {
    {"A100 40GB", "NVIDIA A100-SXM4-40GB", true},
    {"A100-80GB", "NVIDIA A100-SXM4-40GB", false},
    {"A100 PCIe", "NVIDIA A100-SXM4-80GB", false},
    {"A100", "NVIDIA A100-SXM4-80GB MIG 1g.10gb", false},
    {"A10*", "NVIDIA A100-SXM4-80GB", false},
    {"L40", "NVIDIA L40S", false},
    {"L40*", "NVIDIA L40S", true},
    {"4070tisuper", "NVIDIA GeForce RTX 4070 Ti SUPER", true},
    {"RTX 4070 SUPER", "NVIDIA GeForce RTX 4070 Ti SUPER", false},
    {"rtx6000ada", "NVIDIA RTX 6000 Ada Generation", true},
    {"RTX 6000", "Quadro RTX 6000", true},
    {"RTX PRO 6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition", true},
    {"RTX PRO 6000 Server", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", false},
    {"RTX PRO 6000", "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", false},
    {"M3", "Apple M3 Max", false},
    {"m3max", "Apple M3 Max", true},
    {"M2 Ultra", "Apple M2 Ultra", true},
    {"B200", "NVIDIA GB200", false},
    {"V100", "Tesla V100S-PCIE-32GB", false},
    {"MI300X", "AMD Instinct MI300X OAM", true},
    {"RX 7900 XTX", "AMD Radeon RX 7900 XTX", true},
    {"gtx 1080 ti", "NVIDIA GeForce GTX 1080 Ti", true},
    {"H100 NVL", "NVIDIA H100 NVL", true},
    {"H100 SXM5", "NVIDIA H100 80GB HBM3", false},
    {"RTX 3080", "NVIDIA GeForce RTX 3080 Laptop GPU", false},
    {"a1000", "NVIDIA A100-SXM4-80GB", false},
    {"", "NVIDIA A100-SXM4-80GB", false},
    {"*", "NVIDIA A100-SXM4-80GB", false},
    {"NVIDIA", "NVIDIA A100-SXM4-80GB", false},
    {"rtx", "NVIDIA GeForce RTX 4090", false},
};

TEST(GpuName, MoreOfTheSameKinds) {
  for (const NameCase& c : more_names)
    EXPECT_EQ(name_matches(c.query, c.device), c.match) << c.query << " against " << c.device;
}

TEST(GpuName, ASizeThatTheDriverDoesNotPrintIsTakenFromTheMemory) {
  Gpu gpu;
  gpu.model = "NVIDIA GeForce RTX 4090";
  gpu.vram_reported = mebibytes(24564);
  EXPECT_TRUE(name_matches("RTX 4090 24GB", gpu));
  EXPECT_FALSE(name_matches("RTX 4090 48GB", gpu));
}

RC_GTEST_PROP(GpuName, AnyTextParsesAndMatchesItselfUnlessItNamesNothing,
              (const std::string& text)) {
  GpuName name = GpuName::parse(text);
  RC_ASSERT(matches(name, name) == !name.words.empty());
}

TEST(NominalSize, EveryRowOfTheTable) {
  auto rows = rows_of("vram_match_cases.tsv");
  ASSERT_GE(rows.size(), 29u);
  for (const auto& row : rows) {
    Gpu gpu;
    gpu.vram_reported = mebibytes(std::stoll(row[1]));
    gpu.model = row[2];
    auto wanted = MemorySize::parse(row[0]);
    ASSERT_TRUE(wanted.has_value()) << row[0];
    EXPECT_EQ(vram_satisfies(*wanted, gpu), row[3] == "1") << row[0] << " against " << row[1];
  }
}

TEST(NominalSize, UnifiedMemoryIsComparedAsItIs) {
  Gpu mac;
  mac.memory_kind = MemoryKind::unified;
  mac.vram_reported = gibibytes(18);  // of a 24 GB machine
  EXPECT_FALSE(vram_satisfies({MemorySize::Kind::nominal_gb, 20}, mac));
  EXPECT_FALSE(vram_satisfies({MemorySize::Kind::nominal_gb, 24}, mac));
  EXPECT_TRUE(vram_satisfies({MemorySize::Kind::nominal_gb, 18}, mac));
}

TEST(NominalSize, ExactSizesAreExact) {
  Gpu gpu;
  gpu.vram_reported = mebibytes(24564);
  EXPECT_FALSE(vram_satisfies(*MemorySize::parse("24GiB"), gpu));
  EXPECT_TRUE(vram_satisfies(*MemorySize::parse("24564MiB"), gpu));
  EXPECT_FALSE(vram_satisfies(*MemorySize::parse("24565MiB"), gpu));
}

TEST(NominalSize, EccDoesNotMakeAnL4SmallerThanItIs) {
  EXPECT_EQ(nominal_size_gb(gibibytes(22), "NVIDIA L4"), 24);
  EXPECT_EQ(nominal_size_gb(gibibytes(22), "NVIDIA GeForce RTX 2080 Ti"), 22);
  EXPECT_EQ(nominal_size_gb(gibibytes(20), "NVIDIA L4"), 20) << "only within a tenth";
}

RC_GTEST_PROP(NominalSize, MoreBytesAreNeverASmallerSize, ()) {
  auto a = *rc::gen::inRange<std::int64_t>(900, 300 * 1024);
  auto b = *rc::gen::inRange<std::int64_t>(900, 300 * 1024);
  auto small = nominal_size_gb(mebibytes(std::min(a, b)), "");
  auto large = nominal_size_gb(mebibytes(std::max(a, b)), "");
  if (small && large) RC_ASSERT(*small <= *large);
}

/// The five cards of the mixed box that the table's rows speak of, and a GPU cut into instances.
std::vector<Gpu> mixed_box() {
  std::vector<Gpu> gpus;
  for (const char* row :
       {"GPU-dc135f25-d20d 00000000:81:00.0", "GPU-0745b330-6411 00000000:21:00.0",
        "GPU-d3c40942-752d 00000000:01:00.0", "GPU-60fcb053-9b8c 00000000:61:00.0",
        "GPU-d3c40942-0001 00000000:41:00.0"}) {
    Gpu gpu;
    gpu.vendor = GpuVendor::nvidia;
    auto fields = split(row, ' ');
    gpu.uuid = fields[0];
    gpu.bus_id = fields[1];
    gpus.push_back(gpu);
  }
  return gpus;
}

std::vector<Gpu> mig_box() {
  std::vector<Gpu> gpus = mixed_box();
  gpus.resize(3);
  for (std::size_t i = 0; i < 2; ++i) {
    gpus[i].uuid = i == 0 ? "MIG-76af1172" : "MIG-2238933e";
    gpus[i].mig_parent = "GPU-af453cc2";
  }
  return gpus;
}

std::string visible(const std::vector<Gpu>& gpus, const std::string& environment) {
  std::map<std::string, std::string> variables;
  for (const std::string& setting : split(environment, ' ')) {
    std::size_t equals = setting.find('=');
    if (equals != std::string::npos)
      variables[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  std::vector<std::string> uuids;
  for (const Gpu& gpu : visible_gpus(gpus, variables))
    uuids.push_back(gpu.uuid.substr(0, 12));
  return join(uuids, " ");
}

TEST(VisibleGpus, EveryRowOfTheTable) {
  const std::string all = "GPU-dc135f25 GPU-0745b330 GPU-d3c40942 GPU-60fcb053 GPU-d3c40942";
  std::map<std::string, std::string> expected = {
      {"CUDA_VISIBLE_DEVICES unset", all},
      {"CUDA_VISIBLE_DEVICES=-1", ""},
      {"CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,1", "GPU-d3c40942 GPU-0745b330"},
      {"CUDA_VISIBLE_DEVICES=GPU-<first 8 hex>", "GPU-0745b330"},
      {"CUDA_VISIBLE_DEVICES=MIG-<uuid>", "MIG-2238933e"},
      {"NVIDIA_VISIBLE_DEVICES=void", ""},
  };
  auto rows = rows_of("cuda_visible_cases.tsv");
  ASSERT_EQ(rows.size(), expected.size());
  for (const auto& row : rows) {
    ASSERT_TRUE(expected.contains(row[0])) << row[0];
    std::string environment = row[0];
    bool mig = environment.ends_with("MIG-<uuid>");
    if (mig) environment = "CUDA_VISIBLE_DEVICES=MIG-2238933e";
    if (environment.ends_with("hex>")) environment = "CUDA_VISIBLE_DEVICES=GPU-0745b330";
    if (environment.ends_with(" unset")) environment.clear();
    EXPECT_EQ(visible(mig ? mig_box() : mixed_box(), environment), expected[row[0]]) << row[0];
  }
}

TEST(VisibleGpus, ListsEndAtTheFirstThatIsNone) {
  auto box = mixed_box();
  EXPECT_EQ(visible(box, "CUDA_VISIBLE_DEVICES=1,7,0"), "GPU-0745b330");
  EXPECT_EQ(visible(box, "CUDA_VISIBLE_DEVICES=1,-1,0"), "GPU-0745b330");
  EXPECT_EQ(visible(box, "CUDA_VISIBLE_DEVICES="), "");
  EXPECT_EQ(visible(box, "CUDA_VISIBLE_DEVICES=1,1"), "");
  EXPECT_EQ(visible(box, "CUDA_VISIBLE_DEVICES=GPU-d3c40942"), "") << "two begin so";
  EXPECT_EQ(visible(box, "CUDA_VISIBLE_DEVICES=99999999999999999999"), "");
}

TEST(VisibleGpus, ShowsOneInstanceOnly) {
  EXPECT_EQ(visible(mig_box(), "CUDA_VISIBLE_DEVICES=MIG-2238933e,MIG-76af1172"), "MIG-2238933e");
}

TEST(VisibleGpus, OtherVendorsAreNotTouched) {
  auto box = mixed_box();
  box[0].vendor = GpuVendor::amd;
  EXPECT_EQ(visible(box, "CUDA_VISIBLE_DEVICES=-1"), "GPU-dc135f25");
}

}  // namespace
}  // namespace zed::sched
