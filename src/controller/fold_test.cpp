#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/json.hpp"
#include "controller/ends.hpp"
#include "controller/names.hpp"
#include "controller/records.hpp"
#include "controller/testing.hpp"
#include "controller/timelines.hpp"

namespace zed::controller {
namespace {

using testing::dataset;
using testing::node;

const ControllerTerm reign{1, ControllerId{{7}}};

JobId id_of(std::uint8_t n) {
  return JobId{{n}};
}
Generation gen(std::uint64_t counter) {
  return {reign, counter};
}

Job job_named(const std::string& name, std::uint8_t n) {
  Job job;
  job.id = id_of(n);
  job.name = JobName(name);
  job.dataset = dataset("jobs/" + name + "-001");
  job.argv = {"true"};
  return job;
}

Placed placed(std::uint8_t job, std::uint64_t counter, const std::string& where) {
  return {id_of(job), PlacedAttempt{gen(counter), node(where), {}, 1, {}, {}, {}, {}}};
}

Forked forked(std::uint8_t job, std::uint64_t from, std::uint64_t to, Fork::Why why,
              std::uint64_t seq, const std::string& home) {
  KnownFork fork;
  fork.fork.job = id_of(job);
  fork.fork.left = gen(from);
  fork.fork.timeline = gen(to);
  fork.fork.why = why;
  if (seq > 0) fork.fork.from = CheckpointId{{9, static_cast<std::uint8_t>(seq)}};
  fork.from_seq = seq;
  return {fork, node(home)};
}

Finished finished(std::uint8_t job, JobState state) {
  return {id_of(job), Outcome{state, "", {}, {}}, std::nullopt, {}};
}

DesiredState folded(const std::vector<Record>& records) {
  DesiredState state;
  std::uint64_t seq = 0;
  for (const Record& record : records)
    fold(state, record, ++seq);
  return state;
}

TEST(Fold, TheFirstPlacementMakesHomeAndTimeline) {
  auto state = folded({TermBegan{reign, {}, {}}, Submitted{job_named("a", 1), "me", {}, {}},
                       placed(1, 1, "server")});
  const DesiredJob& job = state.jobs.at(id_of(1));
  EXPECT_EQ(job.home, node("server"));
  EXPECT_EQ(job.timeline, gen(1));
  EXPECT_EQ(job.changed_seq, 3U);
  EXPECT_EQ(state.counter, 1U);
}

TEST(Fold, GenerationsOnlyGrow) {
  auto state = folded({TermBegan{reign, {}, {}}, Submitted{job_named("a", 1), "me", {}, {}},
                       placed(1, 5, "server"), AttemptOver{id_of(1), gen(5), {}, false, false, {}},
                       placed(1, 4, "other"), placed(1, 5, "other")});
  EXPECT_FALSE(state.jobs.at(id_of(1)).placed);
  EXPECT_EQ(state.jobs.at(id_of(1)).last_generation, gen(5));
}

TEST(Fold, ATerminalStateNeverChanges) {
  for (JobState state : {JobState::succeeded, JobState::cancelled}) {
    std::vector<Record> records = {TermBegan{reign, {}, {}},
                                   Submitted{job_named("a", 1), "me", {}, {}},
                                   placed(1, 1, "server"), finished(1, state)};
    const DesiredState before = folded(records);
    std::vector<Record> late = {placed(1, 2, "server"),
                                forked(1, 1, 3, Fork::Why::rollback, 1, "server"),
                                WantedSet{id_of(1), Wanted::run, "me", "", {}},
                                finished(1, JobState::failed),
                                finished(1, JobState::cancelled),
                                AttemptOver{id_of(1), gen(1), {}, true, false, {}},
                                Moved{id_of(1), node("other"), {}}};
    records.insert(records.end(), late.begin(), late.end());
    EXPECT_TRUE(folded(records).jobs == before.jobs) << to_string(state);
  }
}

TEST(Fold, AStoppedJobGoesOnByAPersonsWordOnly) {
  std::vector<Record> records = {TermBegan{reign, {}, {}},
                                 Submitted{job_named("a", 1), "me", {}, {}},
                                 WantedSet{id_of(1), Wanted::stop, "me", "", {}},
                                 finished(1, JobState::stopped), placed(1, 2, "server")};
  EXPECT_FALSE(folded(records).jobs.at(id_of(1)).placed);
  records.push_back(WantedSet{id_of(1), Wanted::run, "me", "", {}});
  records.push_back(placed(1, 3, "server"));
  EXPECT_TRUE(folded(records).jobs.at(id_of(1)).placed);
}

TEST(Fold, ASecondSubmitOfOneIdIsTheSame) {
  auto state = folded(
      {Submitted{job_named("a", 1), "me", {}, {}}, Submitted{job_named("b", 1), "me", {}, {}}});
  EXPECT_EQ(state.jobs.at(id_of(1)).job.name.str(), "a");
}

TEST(Record, OfANewerVersionIsRefusedClearly) {
  auto record = decode_record(R"({"type":"time-travelled","job":"x"})");
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().code, ErrorCode::unsupported);
  EXPECT_NE(record.error().message.find("time-travelled"), std::string::npos);
  EXPECT_EQ(decode_record("{\"type\":").error().code, ErrorCode::corrupt);
  EXPECT_EQ(decode_record(R"({"type":"placed","job":7})").error().code, ErrorCode::corrupt);
}

AppliedFile applied_file(const std::string& text, const std::string& upload) {
  AppliedFile file;
  file.text = text;
  file.folder = "/home/me";
  file.upload = upload;
  file.from_node = node("server");
  file.by = "me";
  file.at = {9};
  return file;
}

std::vector<Record> some_history() {
  return {TermBegan{reign, node("server"), {5}},
          Joined{node("server"), NodeId{{1}}},
          Joined{node("laptop"), NodeId{{2}}},
          SecondChosen{node("laptop")},
          DutySet{node("laptop"), Duty::cordoned, "me", "it smells"},
          Submitted{job_named("a", 1), "me", {6}, {}},
          placed(1, 1, "server"),
          FirstCheckpoint{id_of(1)},
          forked(1, 1, 2, Fork::Why::node_lost, 4, "laptop"),
          placed(1, 3, "laptop"),
          Submitted{job_named("b", 2),
                    "you",
                    {7},
                    Beginning{id_of(1), "a", CheckpointId{{4}}, "epoch-4", "4", ""}},
          Evicted{id_of(1), gen(3), id_of(2), "makes room for job b of priority 1"},
          AttemptOver{id_of(1), gen(3), {}, true, true, {8}},
          Proposed{Proposal{forked(1, 2, 9, Fork::Why::rollback, 3, "server").fork, reign}},
          ExpirySet{Expiry{DatasetId{{6}}, dataset("jobs/a-001.x"), {9}, "me", {}}, false},
          ExpiryAnnounced{DatasetId{{6}}, {8}},
          Uploaded{"u", 0, "deploy :a do\n"},
          Applied{applied_file("end\n", "u")},
          Joined{node("gone"), NodeId{{3}}},
          Forgotten{node("gone"), "me"},
          Moved{id_of(1), node("server"), CheckpointId{{3}}},
          WantedSet{id_of(2), Wanted::cancel, "you", "enough", {}},
          finished(2, JobState::cancelled),
          DutySet{node("laptop"), Duty::none, "me", ""},
          placed(1, 4, "server"),
          finished(1, JobState::succeeded)};
}

TEST(Record, EveryKindReadsBackAsItWasWritten) {
  for (const Record& record : some_history()) {
    std::string text = encode_record(record);
    auto back = decode_record(text);
    ASSERT_TRUE(back) << text << back.error().describe();
    EXPECT_EQ(encode_record(*back), text);
  }
}

TEST(Compaction, FoldsToTheSameState) {
  auto history = some_history();
  for (std::size_t length = 1; length <= history.size(); ++length) {
    DesiredState whole = folded({history.begin(), history.begin() + std::ptrdiff_t(length)});
    DesiredState again = folded(compaction_of(whole));
    for (const auto& [id, job] : whole.jobs)
      EXPECT_EQ(encode_record(JobKept{again.jobs.at(id)}), encode_record(JobKept{job})) << length;
    EXPECT_EQ(again.jobs.size(), whole.jobs.size());
    EXPECT_EQ(again.by_name, whole.by_name);
    EXPECT_EQ(again.members, whole.members);
    EXPECT_EQ(again.duties, whole.duties);
    EXPECT_EQ(again.applied, whole.applied);
    EXPECT_EQ(again.expiries, whole.expiries);
    EXPECT_EQ(again.proposals, whole.proposals);
    EXPECT_EQ(again.second, whole.second);
    EXPECT_EQ(again.term, whole.term);
    EXPECT_EQ(again.counter, whole.counter);
    EXPECT_EQ(again.revision, whole.revision);
  }
}

TEST(Applied, AFileOfFourMebibytesGoesInPieces) {
  std::string text = "deploy :a do\n";
  for (int i = 0; text.size() < (std::size_t{4} << 20) - 200; ++i)
    text += "  job :j" + std::to_string(i) + ", do: (run [\"ü\"])\n";
  text = text.substr(0, text.rfind("  job")) + "end\n";
  auto records = records_of(applied_file(text, ""));
  EXPECT_GT(records.size(), 100u);
  for (const Record& record : records) {
    std::string encoded = encode_record(record);
    EXPECT_LE(encoded.size(), largest_record);
    EXPECT_TRUE(decode_record(encoded)) << "each is text by itself";
  }
  DesiredState state = folded(records);
  ASSERT_TRUE(state.applied);
  EXPECT_EQ(state.applied->text, text);
  EXPECT_TRUE(state.uploaded.empty());
}

TEST(Applied, PiecesWithoutTheirEndMeanNothing) {
  auto small = records_of(applied_file("deploy :small do\nend\n", ""));
  ASSERT_EQ(small.size(), 1u);
  auto large =
      records_of(applied_file("deploy :large do\n" + std::string(100'000, '#') + "\nend\n", ""));
  ASSERT_GT(large.size(), 2u);
  auto records = small;
  records.insert(records.end(), large.begin(), large.end() - 1);
  EXPECT_EQ(folded(records).applied->cluster.name, "small") << "a crash before the last record";
  records.insert(records.end(), large.begin(), large.end());
  EXPECT_EQ(folded(records).applied->cluster.name, "large") << "and then it was applied again";
  records.push_back(large.back());
  EXPECT_EQ(folded(records).applied->cluster.name, "large") << "an end without pieces";
}

TEST(Applied, ATextThatThisVersionCannotReadIsKeptAndSaid) {
  auto state = folded(records_of(applied_file("deploy :a do\n  time_travel true\nend\n", "")));
  ASSERT_TRUE(state.applied);
  EXPECT_NE(state.applied->fault, "");
  EXPECT_TRUE(state.applied->cluster.jobs.empty());
}

TEST(Crashes, ARowOfThemWithoutACheckpointBetween) {
  std::vector<Record> records{TermBegan{reign, {}, {}}, Submitted{job_named("a", 1), "me", {}, {}}};
  auto crashes = [&] { return folded(records).jobs.at(id_of(1)).crashes; };
  records.emplace_back(placed(1, 1, "x"));
  records.emplace_back(AttemptOver{id_of(1), gen(1), {}, false, true, {}});
  EXPECT_EQ(crashes(), 1);
  records.emplace_back(placed(1, 2, "x"));
  records.emplace_back(forked(1, 1, 3, Fork::Why::node_lost, 0, "y"));
  EXPECT_EQ(crashes(), 2);
  records.emplace_back(placed(1, 4, "y"));
  records.emplace_back(forked(1, 3, 5, Fork::Why::node_lost, 7, "x"));
  EXPECT_EQ(crashes(), 1) << "seven checkpoints on: it got somewhere";
  records.emplace_back(placed(1, 6, "x"));
  records.emplace_back(forked(1, 5, 7, Fork::Why::node_lost, 7, "y"));
  EXPECT_EQ(crashes(), 2);
  records.emplace_back(WantedSet{id_of(1), Wanted::run, "me", "", {}});
  EXPECT_EQ(crashes(), 0) << "a person's word";
}

// Any records in any order: the fold is total, generations only grow, terminal stays terminal.
RC_GTEST_PROP(Fold, AnyOrderOfRecordsHoldsTheInvariants, (std::vector<std::uint8_t> picks)) {
  auto history = some_history();
  DesiredState state;
  std::uint64_t seq = 0;
  std::map<JobId, DesiredJob> before;
  for (std::uint8_t pick : picks) {
    fold(state, history[pick % history.size()], ++seq);
    for (const auto& [id, was] : before) {
      const DesiredJob& is = state.jobs.at(id);
      RC_ASSERT(is.last_generation >= was.last_generation);
      if (was.is_terminal()) RC_ASSERT(is.outcome == was.outcome);
    }
    before = state.jobs;
  }
}

// ---- which success counts -----------------------------------------------------------------------

DesiredJob with_forks(std::vector<Record> forks) {
  std::vector<Record> records = {TermBegan{reign, {}, {}},
                                 Submitted{job_named("a", 1), "me", {}, {}}, placed(1, 1, "x")};
  records.insert(records.end(), forks.begin(), forks.end());
  return folded(records).jobs.at(id_of(1));
}

TEST(SuccessRule, ByHowTheTimelineWasLeft) {
  using Why = Fork::Why;
  struct Row {
    const char* name;
    std::vector<Record> forks;
    std::uint64_t timeline;
    bool counts;
    bool returns;
  };
  const Row rows[] = {
      {"the current one", {}, 1, true, false},
      {"the current one after a rollback",
       {forked(1, 1, 2, Why::rollback, 3, "x")},
       2,
       true,
       false},
      {"left by a loss", {forked(1, 1, 2, Why::node_lost, 3, "y")}, 1, true, true},
      {"left by two losses",
       {forked(1, 1, 2, Why::node_lost, 3, "y"), forked(1, 2, 3, Why::node_lost, 4, "z")},
       1,
       true,
       true},
      {"the middle one of two losses",
       {forked(1, 1, 2, Why::node_lost, 3, "y"), forked(1, 2, 3, Why::node_lost, 4, "z")},
       2,
       true,
       true},
      {"left by a rollback", {forked(1, 1, 2, Why::rollback, 3, "x")}, 1, false, false},
      {"left by resume --from", {forked(1, 1, 2, Why::resume_from, 3, "x")}, 1, false, false},
      {"left by a hand rollback", {forked(1, 1, 2, Why::hand_rollback, 3, "x")}, 1, false, false},
      {"left by a restart", {forked(1, 1, 2, Why::restart, 0, "x")}, 1, false, false},
      {"a loss, then a rollback",
       {forked(1, 1, 2, Why::node_lost, 3, "y"), forked(1, 2, 3, Why::rollback, 3, "y")},
       1,
       false,
       false},
      {"a rollback, then a loss: the one between",
       {forked(1, 1, 2, Why::rollback, 3, "x"), forked(1, 2, 3, Why::node_lost, 4, "y")},
       2,
       true,
       true},
      {"an unknown one", {}, 9, false, false},
  };
  for (const Row& row : rows) {
    DesiredJob job = with_forks(row.forks);
    SuccessVerdict verdict = judge_success(job, gen(row.timeline));
    EXPECT_EQ(verdict.counts, row.counts) << row.name << ": " << verdict.why_not;
    EXPECT_EQ(verdict.back.has_value(), row.returns) << row.name;
    if (verdict.back) {
      EXPECT_EQ(verdict.back->fork.timeline, gen(row.timeline)) << row.name;
      EXPECT_EQ(verdict.back->fork.left, job.timeline) << row.name;
    }
    EXPECT_EQ(verdict.why_not.empty(), row.counts) << row.name;
  }
}

TEST(SuccessRule, NothingCountsAfterTheEnd) {
  auto state = folded({TermBegan{reign, {}, {}}, Submitted{job_named("a", 1), "me", {}, {}},
                       placed(1, 1, "x"), finished(1, JobState::cancelled)});
  EXPECT_FALSE(judge_success(state.jobs.at(id_of(1)), gen(1)).counts);
}

TEST(Timelines, AncestorsCountUpToTheFork) {
  DesiredJob job = with_forks({forked(1, 1, 2, Fork::Why::rollback, 3, "x"),
                               forked(1, 2, 4, Fork::Why::node_lost, 5, "x")});
  EXPECT_TRUE(is_on_current_timeline(job, gen(1), 3));
  EXPECT_FALSE(is_on_current_timeline(job, gen(1), 4)) << "abandoned by the rollback";
  EXPECT_TRUE(is_on_current_timeline(job, gen(2), 5));
  EXPECT_FALSE(is_on_current_timeline(job, gen(2), 6)) << "abandoned by the loss";
  EXPECT_TRUE(is_on_current_timeline(job, gen(4), 99));
  EXPECT_FALSE(is_on_current_timeline(job, gen(3), 1)) << "unknown";
  EXPECT_EQ(next_fork(job, gen(1))->fork.timeline, gen(2)) << "one fork after the other";
  EXPECT_EQ(next_fork(job, gen(4)), nullptr);
}

TEST(Timelines, AForkFromTheInputHasNoAncestors) {
  DesiredJob job = with_forks({forked(1, 1, 2, Fork::Why::restart, 0, "x")});
  EXPECT_FALSE(is_on_current_timeline(job, gen(1), 1));
}

// ---- what an end means --------------------------------------------------------------------------

TEST(StateAfter, ByWishAndExit) {
  using Kind = ExitRecord::Kind;
  struct Row {
    Wanted wanted;
    Kind kind;
    std::int64_t failures;
    std::optional<JobState> state;
  };
  const Row rows[] = {
      {Wanted::run, Kind::success, 0, JobState::succeeded},
      {Wanted::stop, Kind::success, 0, JobState::succeeded},
      {Wanted::cancel, Kind::success, 0, JobState::succeeded},
      {Wanted::stop, Kind::stopped, 0, JobState::stopped},
      {Wanted::stop, Kind::exit_code, 0, JobState::stopped},
      {Wanted::cancel, Kind::cancelled, 0, JobState::cancelled},
      {Wanted::cancel, Kind::signal, 0, JobState::cancelled},
      {Wanted::run, Kind::stopped, 0, std::nullopt},
      {Wanted::run, Kind::supervisor_lost, 99, std::nullopt},
      {Wanted::run, Kind::exit_code, 0, std::nullopt},
      {Wanted::run, Kind::exit_code, 2, std::nullopt},
      {Wanted::run, Kind::exit_code, 3, JobState::failed},
      {Wanted::run, Kind::out_of_memory, 3, JobState::failed},
      {Wanted::run, Kind::start_failed, 3, JobState::failed},
      {Wanted::run, Kind::timed_out, 0, JobState::failed},
  };
  for (const Row& row : rows) {
    DesiredJob job;
    job.wanted = row.wanted;
    job.failures = row.failures;
    ExitRecord exit;
    exit.kind = row.kind;
    EXPECT_EQ(state_after(job, exit), row.state)
        << to_string(row.wanted) << " " << to_string(row.kind) << " " << row.failures;
  }
}

TEST(Retry, PausesGrowAndEnd) {
  EXPECT_EQ(pause_before_retry(1), seconds(1));
  EXPECT_EQ(pause_before_retry(4), seconds(8));
  EXPECT_EQ(pause_before_retry(1000), seconds(60));
}

// ---- names --------------------------------------------------------------------------------------

TEST(Names, AsPeopleTypeThem) {
  auto state = folded({Submitted{job_named("finetune", 1), "me", {}, {}},
                       Submitted{job_named("train_mnist", 2), "me", {}, {}}});
  struct Row {
    const char* typed;
    std::uint8_t job;
  };
  const Row rows[] = {{"finetune", 1},          {":finetune", 1},    {"finetune_job", 1},
                      {":finetune_job", 1},     {"finetune-001", 1}, {":finetune_001", 1},
                      {"jobs/finetune-001", 1}, {"train-mnist", 2},  {"train_mnist", 2},
                      {"train_mnist-001", 2}};
  for (const Row& row : rows) {
    auto found = find_job(state, row.typed);
    ASSERT_TRUE(found) << row.typed << ": " << found.error().describe();
    EXPECT_EQ(*found, id_of(row.job)) << row.typed;
  }
  EXPECT_EQ(*find_job(state, id_of(2).str()), id_of(2));
  auto wrong = find_job(state, "finetun");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::not_found);
  EXPECT_EQ(wrong.error().hint, "did you mean `finetune`?");
}

TEST(Names, TheLastSubmittedHoldsTheName) {
  Job again = job_named("a", 2);
  again.dataset = dataset("jobs/a-002");
  auto state = folded({Submitted{job_named("a", 1), "me", {}, {}}, Submitted{again, "me", {}, {}}});
  EXPECT_EQ(*find_job(state, "a"), id_of(2));
  EXPECT_EQ(*find_job(state, "a-001"), id_of(1)) << "the old one by its dataset";
}

TEST(Names, NodesWithTheirErlangName) {
  DesiredState state;
  FleetView view;
  view.nodes[node("server")];
  EXPECT_EQ(*find_node(state, view, "zed@server"), node("server"));
  EXPECT_EQ(*find_node(state, view, ":zed@server"), node("server"));
  EXPECT_EQ(find_node(state, view, "servre").error().hint, "did you mean `server`?");
}

}  // namespace
}  // namespace zed::controller
