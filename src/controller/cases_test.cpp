// Bugs of other schedulers that the controller must not have (docs/scheduling.md lists all).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.hpp"
#include "controller/testing.hpp"
#include "controller/timelines.hpp"

namespace zed::controller {
namespace {

using ::testing::HasSubstr;
using testing::World;
using Kind = ExitRecord::Kind;

const char* const cluster = R"(
deploy :lab, pool: "tank" do
  job :train do
    run ["train"]
    requires gpus: 1, vram: 20
    prefer node: :server
    retries 1
  end
end
)";

TEST(Case08, NothingGoesToANodeWhoseInventoryIsNotIn) {
  World world("server: A100/80");
  ASSERT_TRUE(world.apply(cluster));
  world.goes_silent("server");
  world.agent("server").has_no_inventory = true;
  world.returns("server");
  world.dispatch("train").value();
  world.pass(seconds(20));
  EXPECT_EQ(world.show("train"), "pending");
  EXPECT_FALSE(from_value<api::NodesReply>(world.must(api::ListNodes{}))->nodes.at(0).listed);
  EXPECT_EQ(world.ask(api::Resume{"train", "", "server"}).error().message,
            "node server has just connected and still tells what it holds");
  world.agent("server").has_no_inventory = false;
  world.goes_silent("server");
  world.returns("server");
  world.pass(seconds(1));
  EXPECT_TRUE(from_value<api::NodesReply>(world.must(api::ListNodes{}))->nodes.at(0).listed);
  EXPECT_EQ(world.show("train"), "running on server");
}

TEST(Case20, AGpuThatBreaksTakesNothingUntilItIsWell) {
  World world("server: A100/80; spare: A100/80");
  ASSERT_TRUE(world.apply(cluster));
  auto gpus = world.agent("server").gpus;
  gpus[0].health = GpuHealth::lost;  // after a sleep, say
  world.say(world.agent("server"), GpusChanged{gpus});
  world.settle();
  world.dispatch("train").value();
  EXPECT_EQ(world.show("train"), "running on spare") << "although it prefers server";
  world.exits("train", Kind::success);
  gpus[0].health = GpuHealth::ok;
  world.say(world.agent("server"), GpusChanged{gpus});
  world.settle();
  api::Dispatch again;
  again.job = "train";
  again.again = true;
  world.must(again);
  EXPECT_EQ(world.show("train"), "running on server");
}

TEST(Case28, AJobThatFailsFromItsCheckpointIsToldToGoOneBack) {
  World world("server: A100/80");
  ASSERT_TRUE(world.apply(cluster));
  world.dispatch("train").value();
  world.commits("train", "epoch-1");
  world.commits("train", "epoch-2");
  world.exits("train", Kind::exit_code);
  world.pass(seconds(5));
  world.exits("train", Kind::exit_code);  // which began at epoch-2 and came no further
  world.pass(seconds(5));
  ASSERT_EQ(world.show("train"), "failed") << "not for ever";
  EXPECT_THAT(world.job("train").outcome->reason, HasSubstr("zedctl rollback train@epoch-1"));
}

TEST(Case29, TheNewestCheckpointIsTheHighestSeqNotNameOrTime) {
  DesiredJob job;
  job.timeline = Generation{{1, ControllerId{{7}}}, 1};
  Dataset copy;
  auto add = [&](const std::string& name, const std::string& seq, std::int64_t created) {
    Snapshot snapshot;
    snapshot.name = name;
    snapshot.id.bytes[0] = static_cast<std::uint8_t>(copy.snapshots.size() + 1);
    snapshot.created = WallTime{created};
    snapshot.properties = {{property::seq, seq}, {property::timeline, job.timeline.str()}};
    copy.snapshots.push_back(snapshot);
  };
  add("epoch-10", "10", 1000);  // "epoch-9" sorts after it, and was received later
  add("epoch-9", "9", 9000);
  add("step-99999", "2", 5000);
  EXPECT_EQ(newest_current_checkpoint(job, copy)->name, "epoch-10");
}

TEST(Case30, TheLogTravelsWithTheDataset) {
  World world("server: A100/80; spare: A100/80");
  ASSERT_TRUE(world.apply(cluster));
  world.dispatch("train").value();
  world.commits("train", "epoch-1");
  world.pass(seconds(10));
  world.goes_silent("server");
  api::ReadJobLog read;
  read.job = "train";
  EXPECT_THAT(to_json(world.must(read)), HasSubstr("epoch 1")) << "from the replica";
}

}  // namespace
}  // namespace zed::controller
