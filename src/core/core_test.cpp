#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/json.hpp"
#include "core/message.hpp"
#include "core/placement.hpp"
#include "core/roots.hpp"

namespace zed {
namespace {

TEST(DatasetName, RefusesWhatCouldClimbOutOrConfuse) {
  for (const char* text :
       {"", "/", "jobs/", "/jobs", "jobs//a", "jobs/../../etc", "jobs/.", "-rf", "jobs/-r", ".zed",
        "jobs/a b", "jobs/a@b", "jobs/a%20", "jobs/\xC3\xA9", "jobs/a\n"})
    EXPECT_FALSE(DatasetName::parse(text)) << text;
  EXPECT_FALSE(DatasetName::parse(std::string(201, 'a')));
  EXPECT_EQ(DatasetName::parse("models/llama-70b").value().leaf(), "llama-70b");
}

TEST(DatasetName, IsUnderItsRootsOnly) {
  auto name = DatasetName::parse("jobs/train-001").value();
  EXPECT_TRUE(name.is_under("jobs"));
  EXPECT_FALSE(name.is_under("job"));
  EXPECT_FALSE(name.is_under("jobs/train"));
}

TEST(Roots, AreZedsOwnAndWhatIsDeclared) {
  Cluster cluster;
  cluster.models.resize(2);
  cluster.models[0].dataset = DatasetName::parse("weights/llama").value();
  cluster.models[1].dataset = DatasetName::parse("weights/llama").value();
  cluster.data.resize(1);
  cluster.data[0].dataset = DatasetName::parse("corpus").value();
  cluster.jobs.resize(1);
  cluster.jobs[0].dataset = DatasetName::parse("jobs/train").value();
  const auto declared = declared_roots(cluster);
  EXPECT_EQ(declared.size(), 3u);
  auto may = [&](const std::string& name) {
    return may_be_made(DatasetName::parse(name).value(), declared);
  };
  for (const char* name : {"models/x", "jobs/other", "zed/node", "weights/llama", "corpus/part"})
    EXPECT_TRUE(may(name)) << name;
  for (const char* name : {"weights", "weights/llama2", "corpora", "home/me"})
    EXPECT_FALSE(may(name)) << name;
}

TEST(NodeName, DropsTheErlangPrefix) {
  EXPECT_EQ(NodeName::parse("zed@server").value().str(), "server");
  for (const char* text : {"", "-a", "a b", "a/b", "a@b"})
    EXPECT_FALSE(NodeName::parse(text));
}

RC_GTEST_PROP(Generation, TextRoundTripsAndKeepsItsOrder,
              (std::uint64_t term, std::uint64_t counter)) {
  Generation g{{term, {}}, counter};
  RC_ASSERT(Generation::parse(g.str()) == g);
  if (counter < UINT64_MAX) RC_ASSERT((g < Generation{{term, {}}, counter + 1}));
}

TEST(Generation, AHigherTermBeatsAnyCounter) {
  EXPECT_LT((Generation{{1, {}}, 99}), (Generation{{2, {}}, 1}));
}

TEST(MemorySize, KeepsNominalAndExactApart) {
  EXPECT_EQ(MemorySize::parse("24"), MemorySize::parse("24GB"));
  EXPECT_NE(MemorySize::parse("24"), MemorySize::parse("24GiB"));
  EXPECT_EQ(MemorySize::parse("24564MiB")->str(), "24564MiB");
  for (const char* text : {"", "GB", "-1", "1.5", "99999999999999999999", "24 potatoes"})
    EXPECT_FALSE(MemorySize::parse(text)) << text;
}

TEST(Requirement, RoundTripsAsAProperty) {
  Requirement r;
  r.vram = MemorySize::parse("48");
  r.gpu = {"RTX 4090", "A100"};
  r.labels = {"fast,disk", "a|b"};
  r.share = true;
  EXPECT_EQ(Requirement::parse(r.str()), r);
  EXPECT_EQ(Requirement::parse("vram:48")->str(), "vram:48");
  for (const char* text : {"vram", "vram:x", "vrum:4", "vram:4,vram:5", "share:maybe"})
    EXPECT_FALSE(Requirement::parse(text)) << text;
}

TEST(JobState, TerminalStatesNeverChange) {
  for (JobState from : {JobState::succeeded, JobState::cancelled})
    for (int to = 0; to < 11; ++to)
      EXPECT_FALSE(may_become(from, static_cast<JobState>(to), true));
  EXPECT_FALSE(may_become(JobState::stopped, JobState::pending, false));
  EXPECT_TRUE(may_become(JobState::stopped, JobState::pending, true));
}

TEST(Message, EveryKindRoundTripsThroughJson) {
  StartAttempt start;
  start.job.name = JobName("finetune");
  start.job.dataset = DatasetName::parse("jobs/finetune-001").value();
  start.job.requirement.vram = MemorySize::parse("48");
  start.generation = {{3, {}}, 7};
  PlanStep step{{}, NodeName::parse("server").value(), start, {}, {}, "because"};
  ControllerMessage order = StepOrder{step};
  auto json = parse_json(to_json(to_value(order)));
  ASSERT_TRUE(json) << json.error().describe();
  auto back = from_value<ControllerMessage>(*json);
  ASSERT_TRUE(back) << back.error().describe();
  EXPECT_EQ(*back, order);
}

TEST(Message, AnUnsetNodeIsEmptyButADatasetIsNamed) {
  EXPECT_TRUE(from_value<NodeName>(Value("")).value().empty());
  EXPECT_FALSE(from_value<DatasetName>(Value("")));
}

TEST(Dataset, NewestCheckpointGoesBySeqNotByNameOrTime) {
  Dataset dataset;
  auto add = [&](const char* name, const char* seq, std::int64_t created) {
    Snapshot snapshot;
    snapshot.name = name;
    snapshot.created = {created};
    if (*seq != 0) snapshot.properties[property::seq] = seq;
    dataset.snapshots.push_back(snapshot);
  };
  add("epoch-9", "9", 500);
  add("epoch-10", "10", 100);
  add("by-hand", "", 900);
  ASSERT_NE(dataset.newest_checkpoint(), nullptr);
  EXPECT_EQ(dataset.newest_checkpoint()->name, "epoch-10");
}

TEST(Rejection, IsImpossibleOnlyIfNoNodeWouldEverDo) {
  Shortfall busy{"gpus", "1", "0 free", true};
  Shortfall small{"vram", "48 GB", "24 GB", false};
  EXPECT_TRUE((Rejection{{{{}, {busy, small}}}, {}}).is_impossible());
  EXPECT_FALSE((Rejection{{{{}, {busy, small}}, {{}, {busy}}}, {}}).is_impossible());
}

}  // namespace
}  // namespace zed
