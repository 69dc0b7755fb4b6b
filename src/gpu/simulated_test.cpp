#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gpu/simulated.hpp"

namespace zed::gpu {
namespace {

NodeName node(const char* name) {
  return NodeName::parse(name).value();
}

TEST(SimulatedGpus, TheBuiltInProfilesAreTheVisionsFleet) {
  for (const std::string& profile : builtin_profiles())
    EXPECT_TRUE(simulated_gpus(profile, node("a"))) << profile;
  auto server = simulated_gpus("2x-a100-80", node("server")).value();
  ASSERT_EQ(server.size(), 2u);
  EXPECT_NE(server[0].uuid, server[1].uuid);
  EXPECT_EQ(server[1].vram_nominal_gb, 80);
  auto laptop = simulated_gpus("m3-max-64", node("macbook")).value();
  EXPECT_EQ(laptop[0].memory_kind, MemoryKind::unified);
  EXPECT_EQ(laptop[0].vram_nominal_gb, std::nullopt);
}

TEST(SimulatedGpus, AnUnknownProfileNamesTheNearest) {
  auto gpus = simulated_gpus("rtx-4080", node("a"));
  ASSERT_FALSE(gpus);
  EXPECT_EQ(gpus.error().hint, "did you mean \"rtx-4090\"?");
}

TEST(SimulatedGpus, AFileOfOnesOwnIsReadAgainAtEachProbe) {
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("zed-profile-" + std::to_string(::getpid()) + ".json");
  std::ofstream(path) << R"({"schema":1,"gpus":[{"model":"NVIDIA RTX A6000","vram_mib":49140}]})";
  SimulatedGpus gpus(path.string(), node("a"));
  EXPECT_EQ(gpus.probe().value().at(0).health, GpuHealth::ok);
  std::ofstream(path) << R"({"gpus":[{"model":"NVIDIA RTX A6000","vram_mib":49140,
      "health":"lost","why":"XID 79"}]})";
  EXPECT_EQ(gpus.probe().value().at(0).health, GpuHealth::lost);
  for (const char* broken : {"", "{}x", R"({"gpus":[{}]})", R"({"gpus":[{"model":"a"}]})",
                             R"({"gpus":[{"model":"a","vram_mib":1,"count":1000}]})",
                             R"({"gpus":[{"model":"a","vram_mib":1,"health":"tired"}]})"}) {
    std::ofstream(path) << broken;
    EXPECT_FALSE(gpus.probe()) << broken;
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace zed::gpu
