// Very many snapshots on OpenZFS: what is asked of it, and how often. Skipped where there is none.

#include <algorithm>
#include <atomic>

#include <unistd.h>

#include "contract/zfs_fixture.hpp"
#include "store/zfs/zfs_store.hpp"

namespace zed::contract {
namespace {

using store::zfs::Arguments;

// OpenZFS takes one snapshot of a dataset in a transaction group, of many datasets at once.
constexpr int datasets = 50;
constexpr int snapshots_each = 100;
/// Those of the datasets and of their parent.
constexpr int many = (datasets + 1) * snapshots_each;

struct Counts {
  std::atomic<int> all{0};
  std::atomic<int> snapshots_asked{0};  ///< whose properties were asked for
};

class CountingCommands final : public store::zfs::Commands {
public:
  explicit CountingCommands(Counts& counts)
      : counts_(counts), commands_(store::zfs::make_system_commands()) {}

  Result<store::zfs::Output> run(const Arguments& arguments, std::string_view input) override {
    ++counts_.all;
    if (arguments.at(1) == "get" || arguments.at(1) == "program")
      counts_.snapshots_asked +=
          static_cast<int>(std::count_if(arguments.begin(), arguments.end(), [](const auto& word) {
            return word.find('@') != std::string::npos;
          }));
    return commands_->run(arguments, input);
  }
  Result<std::unique_ptr<store::zfs::Child>> start(const Arguments& arguments, Pipe pipe) override {
    return commands_->start(arguments, pipe);
  }

private:
  Counts& counts_;
  std::unique_ptr<Commands> commands_;
};

TEST(ZfsScale, FiveThousandSnapshotsAreAskedForOnce) {
  auto zfs = make_zfs();
  if (!zfs) GTEST_SKIP() << "ZED_TEST_ZFS_ROOT names no pool";
  const DatasetName job = ds("jobs/7");
  const std::string jobs = zfs->full("jobs");
  zfs->by_hand({"zfs", "create", "-o", "mountpoint=none", jobs});
  for (int i = 1; i <= datasets; ++i)
    zfs->by_hand({"zfs", "create", jobs + "/" + std::to_string(i)});
  zfs->close();
  for (int i = 1; i <= snapshots_each; ++i)
    zfs->by_hand({"zfs", "snapshot", "-r", jobs + "@epoch-" + std::to_string(i)});

  Counts counts;
  auto store = store::open_zfs_store(zfs->root(), std::make_unique<CountingCommands>(counts), true);
  ASSERT_OK(store);
  EXPECT_EQ(counts.snapshots_asked, many);
  EXPECT_LT(counts.all, 30);

  // From here on only what is new is asked for, and in the order in which it was made.
  counts.snapshots_asked = 0;
  auto snapshots = (*store)->inspect(job).value().snapshots;
  ASSERT_EQ(snapshots.size(), static_cast<std::size_t>(snapshots_each));
  for (int i : {1, 2, 9, 10, 99, snapshots_each})
    EXPECT_EQ(snapshots[static_cast<std::size_t>(i - 1)].name, "epoch-" + std::to_string(i));
  EXPECT_EQ(counts.snapshots_asked, 0);
  auto cursor = (*store)->changes_since("")->cursor;
  zfs->by_hand({"zfs", "snapshot", zfs->full(job.str()) + "@by-hand"});
  std::vector<DatasetName> changed;
  for (int i = 0; i < 1000 && changed.empty(); ++i) {
    changed = (*store)->changes_since(cursor)->datasets;
    if (changed.empty()) ::usleep(10'000);
  }
  EXPECT_EQ(changed, (std::vector{job}));
  EXPECT_EQ((*store)->inspect(job)->snapshots.size(), static_cast<std::size_t>(snapshots_each + 1));
  EXPECT_EQ(counts.snapshots_asked, 1);
}

}  // namespace
}  // namespace zed::contract
