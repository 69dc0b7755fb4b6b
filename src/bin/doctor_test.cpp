// What `zed-agent doctor` says of a machine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bin/daemon.hpp"
#include "bin/doctor.hpp"

namespace zed::bin {
namespace {

using ::testing::HasSubstr;
using Level = Finding::Level;

constexpr WallTime now{1'800'000'000'000};
constexpr std::int64_t day = std::int64_t{86'400'000};

std::optional<pki::CertificateInfo> certificate(std::int64_t from_day, std::int64_t to_day) {
  pki::CertificateInfo info;
  info.identity = {"zed@server", pki::Role::agent};
  info.not_before = WallTime{now.ms + from_day * day};
  info.not_after = WallTime{now.ms + to_day * day};
  return info;
}

TEST(Doctor, ACertificateIsJudgedByItsDays) {
  EXPECT_EQ(judge_certificate(certificate(-10, 80), now).level, Level::ok);
  EXPECT_EQ(judge_certificate(certificate(-85, 5), now).level, Level::warn);
  EXPECT_EQ(judge_certificate(certificate(-91, -1), now).level, Level::fail);
  EXPECT_THAT(judge_certificate(certificate(-91, -1), now).todo, HasSubstr("forget server"));
  Finding early = judge_certificate(certificate(1, 91), now);
  EXPECT_EQ(early.level, Level::fail);
  EXPECT_THAT(early.todo, HasSubstr("clock"));
  EXPECT_THAT(judge_certificate(std::optional<pki::CertificateInfo>{}, now).todo,
              HasSubstr("zed-agent join"));
  Finding broken = judge_certificate(fail(ErrorCode::refused, "others may read it", "chmod"), now);
  EXPECT_EQ(broken.level, Level::fail);
  EXPECT_EQ(broken.todo, "chmod");
}

TEST(Doctor, APortThatOurOwnAgentHasIsFine) {
  const Status taken = fail(ErrorCode::busy, "the port is in use");
  EXPECT_EQ(judge_port(4370, "controllers", {}, false).level, Level::ok);
  EXPECT_EQ(judge_port(4370, "controllers", taken, true).level, Level::ok);
  Finding strange = judge_port(4370, "controllers", taken, false);
  EXPECT_EQ(strange.level, Level::fail);
  EXPECT_THAT(strange.todo, HasSubstr("ss -ltnp"));
}

TEST(Doctor, AnAgentOfRootNeedsTheUserOfJobs) {
  const Status none = fail(ErrorCode::not_found, "no such user");
  EXPECT_EQ(judge_job_user(true, "root", {}).level, Level::ok);
  EXPECT_EQ(judge_job_user(true, "root", none).level, Level::fail);
  EXPECT_THAT(judge_job_user(true, "root", none).todo, HasSubstr("useradd --system"));
  EXPECT_EQ(judge_job_user(false, "alice", none).level, Level::ok) << "it runs them as itself";
}

TEST(Doctor, GpusAreJudgedByTheirHealth) {
  Gpu well;
  well.model = "NVIDIA A100-SXM4-80GB";
  Gpu slow = well;
  slow.health = GpuHealth::degraded;
  slow.why = "its BAR is small";
  Gpu lost = well;
  lost.health = GpuHealth::lost;
  Gpu lent = well;
  lent.health = GpuHealth::reserved;
  auto findings = judge_gpus({well, slow, lost, lent}, {{"no driver", "modprobe nvidia"}});
  ASSERT_EQ(findings.size(), 5u);
  EXPECT_EQ(findings[0].level, Level::ok);
  EXPECT_EQ(findings[1].level, Level::warn);
  EXPECT_EQ(findings[2].level, Level::fail);
  EXPECT_EQ(findings[3].level, Level::warn);
  EXPECT_EQ(findings[4].todo, "modprobe nvidia");
  ASSERT_EQ(judge_gpus({}, {}).size(), 1u);
  EXPECT_EQ(judge_gpus({}, {})[0].level, Level::ok) << "a machine without a GPU is no fault";
}

TEST(Doctor, ClocksCgroupsAndFolders) {
  EXPECT_EQ(judge_clock(true).level, Level::ok);
  EXPECT_EQ(judge_clock(false).level, Level::warn);
  EXPECT_EQ(judge_clock(std::nullopt).level, Level::warn);
  EXPECT_EQ(judge_cgroup(true).level, Level::ok);
  EXPECT_EQ(judge_cgroup(false).level, Level::warn);
  EXPECT_EQ(judge_open_files(enough_open_files).level, Level::ok);
  EXPECT_EQ(judge_open_files(1'024).level, Level::warn);
  EXPECT_EQ(judge_state_folder("/var/lib/zed/agent", true, gibibytes(9)).level, Level::ok);
  EXPECT_EQ(judge_state_folder("/var/lib/zed/agent", true, mebibytes(9)).level, Level::warn);
  EXPECT_EQ(judge_state_folder("/var/lib/zed/agent", false, gibibytes(9)).level, Level::fail);
  EXPECT_EQ(judge_set_aside("/pool/lost", 2).what,
            "/pool/lost holds 2 folders that a start of the store set aside");
}

}  // namespace
}  // namespace zed::bin
