// What is said of OpenZFS on a machine, from what its commands print.

#include <filesystem>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include "base/text.hpp"
#include "store/zfs/doctor.hpp"

namespace zed::store::zfs {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Level = Finding::Level;

/// Answers by the command's words; one that is not known is not installed.
class Machine final : public Commands {
public:
  std::map<std::string, Output> says;

  Result<Output> run(const Arguments& arguments, std::string_view) override {
    auto found = says.find(join(arguments, " "));
    if (found == says.end())
      return fail(ErrorCode::unsupported, "there is no program `" + arguments[0] + "` here");
    return found->second;
  }
  Result<std::unique_ptr<Child>> start(const Arguments&, Pipe) override {
    return fail(ErrorCode::unsupported, "no pipes here");
  }
};

constexpr char pools[] = "zpool list -Hp -o name,size,free,capacity,health,readonly";

class ZfsDoctor : public ::testing::Test {
protected:
  ZfsDoctor() {
    fs::create_directories(root_ / "dev");
    std::ofstream(root_ / "dev/zfs") << "";
    question_.root = root_;
    question_.kernel = "6.1.0-1-amd64";
    question_.pool = "tank";
    machine_.says["zfs version"] = {true, "zfs-2.1.11-1+deb12u1\nzfs-kmod-2.1.11-1+deb12u1\n", ""};
    machine_.says[pools] = {true, "tank\t1099511627776\t549755813888\t50\tONLINE\toff\n", ""};
  }
  ~ZfsDoctor() override { fs::remove_all(root_); }

  /// "level subject: what -> todo", a line each.
  std::vector<std::string> findings() {
    std::vector<std::string> lines;
    for (const Finding& finding : examine_zfs(machine_, question_))
      lines.push_back(std::string(to_string(finding.level)) + " " + finding.subject + ": " +
                      finding.what + (finding.todo.empty() ? "" : " -> " + finding.todo));
    return lines;
  }

  fs::path root_ = fs::temp_directory_path() / ("zed-doctor-" + std::to_string(::getpid()));
  Machine machine_;
  DoctorQuestion question_;
};

TEST_F(ZfsDoctor, AHealthyMachineHasAShortList) {
  EXPECT_THAT(findings(), ElementsAre("ok zfs: OpenZFS 2.1.11",
                                      "ok pool tank: ONLINE, 512 GiB of 1.00 TiB free"));
}

TEST_F(ZfsDoctor, WithoutToolsAFolderIsStillPossible) {
  machine_.says.clear();
  auto lines = findings();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("warn zfs: OpenZFS's commands are not installed"));
  EXPECT_THAT(lines[0], HasSubstr("apt install zfsutils-linux"));
  question_.is_wanted = true;
  EXPECT_THAT(findings()[0], HasSubstr("fail zfs"));
}

TEST_F(ZfsDoctor, AModuleThatIsNotLoadedIsToldFromOneThatIsNotThere) {
  machine_.says["zfs version"] = {false, "zfs-2.1.11-1\n",
                                  "zfs_version_kernel() failed: No such file or directory\n"};
  EXPECT_THAT(findings()[0], HasSubstr("no module for kernel 6.1.0-1-amd64"));
  EXPECT_THAT(findings()[0], HasSubstr("linux-headers-6.1.0-1-amd64"));
  fs::create_directories(root_ / "lib/modules/6.1.0-1-amd64/updates/dkms");
  std::ofstream(root_ / "lib/modules/6.1.0-1-amd64/updates/dkms/zfs.ko") << "";
  EXPECT_THAT(findings()[0], HasSubstr("not loaded -> modprobe zfs"));
}

TEST_F(ZfsDoctor, VersionsAreCompared) {
  machine_.says["zfs version"].out = "zfs-2.3.2-2~bpo12+1\nzfs-kmod-2.1.11-1\n";
  EXPECT_THAT(findings()[0], HasSubstr("warn zfs: OpenZFS's commands are 2.3.2, the loaded "
                                       "module is 2.1.11 -> reboot"));
  machine_.says["zfs version"].out = "zfs-0.8.6-1\nzfs-kmod-0.8.6-1\n";
  EXPECT_THAT(findings()[0], HasSubstr("fail zfs: OpenZFS 0.8.6 is older than 2.1"));
}

TEST_F(ZfsDoctor, PoolsAreJudgedByHealthAndRoom) {
  machine_.says[pools].out = "a\t1000\t500\t50\tDEGRADED\toff\n"
                             "b\t1000\t500\t50\tSUSPENDED\toff\n"
                             "c\t1000\t120\t88\tONLINE\toff\n"
                             "d\t1000\t10\t99\tONLINE\toff\n"
                             "e\t1000\t500\t50\tONLINE\ton\n"
                             "no row\n";
  auto lines = findings();
  EXPECT_THAT(lines, Contains("warn pool a: DEGRADED, 500 B of 1000 B free -> zpool status a"));
  EXPECT_THAT(lines, Contains(HasSubstr("fail pool b: SUSPENDED")));
  EXPECT_THAT(lines, Contains(HasSubstr("warn pool c: 88 % full")));
  EXPECT_THAT(lines, Contains(HasSubstr("fail pool d: 99 % full")));
  EXPECT_THAT(lines, Contains(HasSubstr("fail pool e: imported readonly")));
  EXPECT_THAT(lines, Contains(HasSubstr("warn pool tank: it is not imported here")));
}

TEST_F(ZfsDoctor, ADeviceThatMayNotBeOpenedIsAFailure) {
  fs::remove(root_ / "dev/zfs");
  EXPECT_THAT(findings(), Contains(HasSubstr("fail /dev/zfs")));
}

constexpr char given[] = "---- Permissions on tank ---------------------------------------------\n"
                         "Permission sets:\n"
                         "\t@replica create,mount,receive,@more\n"
                         "\t@more rollback\n"
                         "Create time permissions:\n"
                         "\tdestroy\n"
                         "Local permissions:\n"
                         "\teveryone send\n"
                         "Descendent permissions:\n"
                         "\tuser alice hold\n"
                         "Local+Descendent permissions:\n"
                         "\tuser alice @replica\n"
                         "\tuser bob bookmark\n"
                         "\tgroup staff release,snapshot\n";

TEST_F(ZfsDoctor, RightsAreReadWithTheirSetsAndGroups) {
  EXPECT_THAT(allowed(given, "alice", {"staff"}),
              ElementsAre("create", "mount", "receive", "release", "rollback", "send", "snapshot"));
  EXPECT_THAT(allowed(given, "carol", {}), ElementsAre("send"));
  EXPECT_TRUE(allowed("", "alice", {}).empty());
  EXPECT_TRUE(
      allowed("Permission sets:\n\t@a @b\n\t@b @a\nLocal permissions:\n\tuser u @a\n", "u", {})
          .empty())
      << "a circle ends";
}

TEST_F(ZfsDoctor, AnOrdinaryUserIsToldWhatItLacks) {
  question_.privileged = false;
  question_.user = "alice";
  machine_.says["zfs allow tank"] = {true, given, ""};
  auto lines = findings();
  EXPECT_THAT(lines.back(), HasSubstr("warn zfs allow tank: alice lacks "));
  EXPECT_THAT(lines.back(), HasSubstr("as root: zfs allow -u alice "));
  machine_.says["zfs allow tank"].out =
      "Local+Descendent permissions:\n\tuser alice " + join(replica_permissions(), ",") + "\n";
  EXPECT_THAT(findings().back(), HasSubstr("ok zfs allow tank"));
}

}  // namespace
}  // namespace zed::store::zfs
