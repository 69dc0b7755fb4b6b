// What the room makes of what it reads, and which commands it gives.

#include <algorithm>
#include <cerrno>

#include <gtest/gtest.h>

#include "store/zfs/bookmarks.hpp"
#include "store/zfs/command.hpp"
#include "store/zfs/inventory.hpp"
#include "store/zfs/marker.hpp"
#include "store/zfs/output.hpp"
#include "store/zfs/own_rollbacks.hpp"
#include "store/zfs/zfs.hpp"

namespace zed::store::zfs {
namespace {

DatasetName ds(const std::string& text) {
  return DatasetName::parse(text).value();
}
CheckpointId checkpoint_id(std::uint8_t n) {
  CheckpointId id;
  id.bytes.fill(n);
  return id;
}

// ---- markers ------------------------------------------------------------------------------------

env::ReceiveRequest request() {
  env::ReceiveRequest request;
  request.dataset = ds("models/llama");
  request.base = checkpoint_id(1);
  request.snapshot = "v2";
  request.snapshot_properties = {{property::id, checkpoint_id(2).str()}, {"loss", "0.5"}};
  request.dataset_changes = {{property::type, "model"}, {"old", std::nullopt}};
  request.kind = StreamKind::zfs;
  return request;
}

TEST(ZfsMarker, ComesBackFromItsProperties) {
  auto kept = marker_properties(Marker::of(request(), true), request());
  kept["plain"] = "stays";
  auto parts = take_apart(kept);
  ASSERT_TRUE(parts.marker);
  EXPECT_EQ(parts.marker->str(), Marker::of(request(), true).str());
  EXPECT_TRUE(parts.marker->made_dataset);
  EXPECT_EQ(parts.marker->phase, Marker::Phase::receiving);
  EXPECT_EQ(parts.for_snapshot, request().snapshot_properties);
  EXPECT_EQ(parts.for_dataset, request().dataset_changes);
  EXPECT_EQ(parts.plain, (Properties{{"plain", "stays"}}));
  EXPECT_EQ(parts.kept.size(), 5U);
  // A files stream's snapshot is made with its properties: nothing is to be remembered.
  auto files = request();
  files.kind = StreamKind::files;
  EXPECT_EQ(marker_properties(Marker::of(files, false), files).size(), 1U);
}

TEST(ZfsMarker, ContinuesOnlyTheSameReceive) {
  Marker marker = Marker::of(request(), false);
  EXPECT_TRUE(marker.continues(request()));
  auto other = request();
  other.base.reset();
  EXPECT_FALSE(marker.continues(other));
  other = request();
  other.kind = StreamKind::files;
  EXPECT_FALSE(marker.continues(other));
  other = request();
  other.snapshot_properties[property::id] = checkpoint_id(3).str();
  EXPECT_FALSE(marker.continues(other));
  for (const char* text : {"", "zfs", "zfs x - 0 receiving v2",
                           "rsync 02020202020202020202020202020202 - 0 receiving v2",
                           "zfs 02020202020202020202020202020202 - 0 dreaming v2",
                           "zfs 02020202020202020202020202020202 - 0 receiving -rf"})
    EXPECT_FALSE(Marker::parse(text)) << text;
}

// ---- datasets -----------------------------------------------------------------------------------

Facts facts(const std::string& rows) {
  return gather(parse_properties(rows)).at("tank/jobs/a");
}

TEST(ZfsInventory, PutsADatasetTogether) {
  auto rows = parse_snapshots("tank/jobs/a@epoch-1\t11\t100\t5\t6\t7\n"
                              "tank/jobs/a@by-hand\t12\t101\t5\t6\t7\n"
                              "tank/jobs/a@vanished\t13\t102\t5\t6\t7\n");
  std::map<std::string, SnapshotFacts> known;
  known["tank/jobs/a@epoch-1"].properties = {{property::id, checkpoint_id(1).str()}};
  known["tank/jobs/a@by-hand"] = {};
  auto record = assemble(ds("jobs/a"),
                         facts("tank/jobs/a\tguid\t7\t-\n"
                               "tank/jobs/a\treadonly\ton\tinherited from tank\n"
                               "tank/jobs/a\twritten\t0\t-\n"
                               "tank/jobs/a\tused\t4096\t-\n"
                               "tank/jobs/a\tmounted\tyes\t-\n"),
                         rows, known);
  EXPECT_TRUE(record.dataset.readonly);
  EXPECT_FALSE(record.dataset.changed);
  EXPECT_EQ(record.dataset.used, Bytes{4096});
  ASSERT_EQ(record.dataset.snapshots.size(), 2U);
  EXPECT_EQ(record.dataset.snapshots[0].id, checkpoint_id(1));
  EXPECT_EQ(record.dataset.snapshots[1].id, id_from_guid(12));
}

TEST(ZfsInventory, ASnapshotWithoutItsPropertiesIsNobodys) {
  auto rows = parse_snapshots("tank/jobs/a@v1\t11\t100\ntank/jobs/a@v2\t12\t101\n");
  std::map<std::string, SnapshotFacts> known{{"tank/jobs/a@v1", {}}, {"tank/jobs/a@v2", {}}};
  auto record = assemble(ds("jobs/a"),
                         facts("tank/jobs/a\tcom.zed:rx\tzfs " + checkpoint_id(2).str() +
                               " - 0 receiving v2\tlocal\n"),
                         rows, known);
  EXPECT_TRUE(record.dataset.receiving);
  EXPECT_TRUE(record.has_unsealed);
  ASSERT_EQ(record.dataset.snapshots.size(), 1U);
  EXPECT_EQ(record.dataset.snapshots[0].name, "v1");
}

Record record(const std::string& name, std::uint64_t snapshot) {
  Record made;
  made.dataset.name = ds(name);
  made.dataset.snapshots.resize(1);
  made.dataset.snapshots[0].guid = snapshot;
  return made;
}

TEST(ZfsChanges, NameWhatChangedSinceTheCursor) {
  ChangeLog log("x");
  auto [first, all] = log.since("", {record("a", 1), record("b", 1)});
  EXPECT_EQ(all, (std::vector{ds("a"), ds("b")}));
  auto [second, some] = log.since(first, {record("a", 2), record("b", 1)});
  EXPECT_EQ(some, (std::vector{ds("a")}));
  auto [third, gone] = log.since(second, {record("a", 2)});
  EXPECT_EQ(gone, (std::vector{ds("b")}));
  auto [fourth, none] = log.since(third, {record("a", 2)});
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(third, fourth);
  // An older cursor still works; another store's, or one that cannot be, names all that is there.
  EXPECT_EQ(log.since(first, {record("a", 2)}).second, (std::vector{ds("a"), ds("b")}));
  for (const char* cursor : {"y-1", "x-", "x-99", "x-1x"})
    EXPECT_EQ(log.since(cursor, {record("a", 2)}).second, (std::vector{ds("a")})) << cursor;
}

// ---- arguments ----------------------------------------------------------------------------------

/// Answers as told and remembers what it was asked.
class FakeCommands final : public Commands {
public:
  struct Asked {
    std::vector<Arguments> commands;
    std::vector<Output> answers;
  };
  explicit FakeCommands(Asked& asked) : asked_(asked) {}
  Result<Output> run(const Arguments& arguments, std::string_view) override {
    asked_.commands.push_back(arguments);
    if (asked_.commands.size() > asked_.answers.size())
      return fail(ErrorCode::internal, "nothing to answer");
    return asked_.answers[asked_.commands.size() - 1];
  }
  Result<std::unique_ptr<Child>> start(const Arguments&, Pipe) override {
    return fail(ErrorCode::unsupported, "no pipes here");
  }

private:
  Asked& asked_;
};

TEST(Zfs, SnapshotsAreListedByTheirFastColumnsOnly) {
  FakeCommands::Asked asked;
  asked.answers = {{true, "tank/a@x\t1\t2\n", {}}};
  Zfs zfs(std::make_unique<FakeCommands>(asked), "tank");
  EXPECT_EQ(zfs.all_snapshots(Zfs::Columns::fast)->size(), 1U);
  EXPECT_EQ(asked.commands.at(0), (Arguments{"zfs", "list", "-Hp", "-r", "-t", "snapshot", "-o",
                                             "name,guid,createtxg", "tank"}));
}

TEST(Zfs, PropertiesOfNewSnapshotsAreAskedForOnce) {
  FakeCommands::Asked asked;
  std::string list = "tank/a\tguid\t5\t-\n";
  std::string rows = "tank/a@x\t1\t2\n";
  std::string said = "tank/a@x\tguid\t1\t-\ntank/a@x\tcreatetxg\t2\t-\n"
                     "tank/a@x\tcom.zed:loss\t0.5\tlocal\n";
  asked.answers = {{true, "tank\tguid\t4\t-\n" + list, {}},
                   {true, rows, {}},
                   {true, said, {}},
                   {true, "tank\tguid\t4\t-\n" + list, {}},
                   {true, rows, {}}};
  Zfs zfs(std::make_unique<FakeCommands>(asked), "tank");
  Inventory inventory(zfs);
  for (int i = 0; i < 2; ++i) {
    auto all = inventory.all(Freshness::seconds_old);
    ASSERT_TRUE(all) << all.error().describe();
    ASSERT_EQ(all->size(), 1U);
    EXPECT_EQ(all->at(0).dataset.snapshots.at(0).properties, (Properties{{"loss", "0.5"}}));
  }
  EXPECT_EQ(asked.commands.size(), 5U);
}

/// 100 snapshots of tank/a: a listing of every column, what the channel program and what `zfs get`
/// say of them.
struct Many {
  std::string rows;
  std::string program = R"({"return":{)";
  std::string got;
  Many() {
    for (int i = 1; i <= 100; ++i) {
      const std::string name = "tank/a@s" + std::to_string(i);
      const std::string number = std::to_string(i);
      rows += name + "\t" + number + "\t" + number + "\t0\t24576\t1796087134\n";
      program += (i == 1 ? "\"" : ",\"") + name + R"(":{"com.zed:loss":"0.)" + number + "\"}";
      got += name + "\tguid\t" + number + "\t-\n" + name + "\tcreatetxg\t" + number + "\t-\n" +
             name + "\tcom.zed:loss\t0." + number + "\tlocal\n";
    }
    program += "}}\n";
  }
};

TEST(Zfs, ManyNewSnapshotsAreAskedForByAChannelProgram) {
  const Many many;
  FakeCommands::Asked asked;
  asked.answers = {
      {true, "tank/a\tguid\t5\t-\n", {}}, {true, many.rows, {}}, {true, many.program, {}}};
  asked.answers[0].out = "tank\tguid\t4\t-\n" + asked.answers[0].out;
  Zfs zfs(std::make_unique<FakeCommands>(asked), "tank");
  Inventory inventory(zfs);
  auto all = inventory.all(Freshness::seconds_old);
  ASSERT_TRUE(all) << all.error().describe();
  ASSERT_EQ(all->at(0).dataset.snapshots.size(), 100U);
  const Snapshot& last = all->at(0).dataset.snapshots.at(99);
  EXPECT_EQ(last.properties, (Properties{{"loss", "0.100"}}));
  EXPECT_EQ(last.created, WallTime{1'796'087'134'000});
  EXPECT_EQ(last.referenced, Bytes{24576});
  EXPECT_EQ(asked.commands.at(2).at(1), "program");
  EXPECT_EQ(asked.commands.size(), 3U);
}

TEST(Zfs, WithoutChannelProgramsTheyAreAskedForAsBefore) {
  const Many many;
  for (const Output& refusal :
       {Output{false, "", "permission denied"}, Output{true, "{\"ret", ""}}) {
    FakeCommands::Asked asked;
    asked.answers = {{true, "tank\tguid\t4\t-\ntank/a\tguid\t5\t-\n", {}},
                     {true, many.rows, {}},
                     refusal,
                     {true, many.got, {}}};
    Zfs zfs(std::make_unique<FakeCommands>(asked), "tank");
    Inventory inventory(zfs);
    auto all = inventory.all(Freshness::seconds_old);
    ASSERT_TRUE(all) << all.error().describe();
    EXPECT_EQ(all->at(0).dataset.snapshots.at(99).properties, (Properties{{"loss", "0.100"}}));
  }
}

TEST(Zfs, WhatMayLagIsWaitedForBeforeSnapshotsAreListed) {
  FakeCommands::Asked asked;
  const std::string datasets = "tank\tguid\t4\t-\ntank/a\tguid\t5\t-\ntank/a\tmounted\tyes\t-\n"
                               "tank/a\twritten\t0\t-\n";
  asked.answers = {
      {true, datasets, {}}, {true, "", {}}, {true, datasets, {}}, {true, "", {}}, {true, "", {}}};
  Zfs zfs(std::make_unique<FakeCommands>(asked), "tank");
  Inventory inventory(zfs);
  ASSERT_TRUE(inventory.all(Freshness::exact));
  std::vector<std::string> verbs;
  for (const Arguments& command : asked.commands)
    verbs.push_back(command.at(1));
  EXPECT_EQ(verbs, (std::vector<std::string>{"get", "sync", "get", "list", "list"}));
}

TEST(Zfs, ProgramsReturnTablesAndFailuresAreErrors) {
  FakeCommands::Asked asked;
  asked.answers = {
      {true, "{\"return\":{\"what\":\"failed\",\"errno\":17,\"at\":\"a/d@one\"}}", {}},
      {false, {}, "Channel program execution failed:\n[string \"channel program\"]:1: boo\n"},
      {true, "{\"return\":5}", {}}};
  Zfs zfs(std::make_unique<FakeCommands>(asked), "tank/fleet");
  auto answer = zfs.program("try", "return 1", {"-x"}).value();
  EXPECT_EQ(answer.text("what"), "failed");
  EXPECT_EQ(answer.error_number(), EEXIST);
  EXPECT_EQ(answer.text("nothing"), "");
  EXPECT_EQ(asked.commands.at(0), (Arguments{"zfs", "program", "-j", "--", "tank", "-", "-x"}));
  EXPECT_FALSE(zfs.program("try", "return 1", {}));
  EXPECT_FALSE(zfs.program("try", "return 1", {}));
}

TEST(Zfs, OnlyLegalNamesBelowTheRootAreOurs) {
  FakeCommands::Asked asked;
  Zfs zfs(std::make_unique<FakeCommands>(asked), "tank/fleet");
  EXPECT_EQ(zfs.relative("tank/fleet/jobs/a"), ds("jobs/a"));
  for (const char* name : {"tank/fleet", "tank/fleets/a", "tank/other", "tank/fleet/with space",
                           "tank/fleet/.zed", "tank/fleet/"})
    EXPECT_FALSE(zfs.relative(name)) << name;
  EXPECT_TRUE(Zfs::is_root("tank"));
  EXPECT_FALSE(Zfs::is_root("-rf"));
  EXPECT_FALSE(Zfs::is_root("tank//x"));
}

// ---- bookmarks ----------------------------------------------------------------------------------

NodeName peer(const std::string& text) {
  return NodeName::parse(text).value();
}

std::string bookmark_listed(const std::string& of, std::uint8_t id, std::uint64_t txg) {
  return "tank/a#" + bookmark_word(peer(of), checkpoint_id(id)) + "\t" + std::to_string(id) + "\t" +
         std::to_string(txg) + "\n";
}

/// The commands that change something, as one line each.
std::vector<std::string> changes_of(const FakeCommands::Asked& asked) {
  std::vector<std::string> lines;
  for (const Arguments& command : asked.commands)
    if (command.at(1) != "list") lines.push_back(command.at(1) + " " + command.back());
  return lines;
}

Snapshot taken(std::uint8_t id) {
  Snapshot snapshot;
  snapshot.name = "v" + std::to_string(id);
  snapshot.id = checkpoint_id(id);
  snapshot.guid = id;
  return snapshot;
}

TEST(ZfsBookmarks, ANewOneOfAPeerComesBeforeItsOldOneGoes) {
  FakeCommands::Asked asked;
  asked.answers = {{true, bookmark_listed("laptop", 1, 10) + bookmark_listed("server", 1, 10), {}},
                   {true, {}, {}},
                   {true, {}, {}}};
  Zfs zfs(std::make_unique<FakeCommands>(asked), "tank");
  ASSERT_TRUE(Bookmarks(zfs).keep(ds("a"), taken(2), peer("laptop")));
  EXPECT_EQ(changes_of(asked),
            (std::vector<std::string>{
                "bookmark tank/a#" + bookmark_word(peer("laptop"), checkpoint_id(2)),
                "destroy tank/a#" + bookmark_word(peer("laptop"), checkpoint_id(1))}));
}

TEST(ZfsBookmarks, OneThatIsThereIsNotMadeAgain) {
  FakeCommands::Asked asked;
  asked.answers = {{true, bookmark_listed("laptop", 2, 10), {}}};
  Zfs zfs(std::make_unique<FakeCommands>(asked), "tank");
  ASSERT_TRUE(Bookmarks(zfs).keep(ds("a"), taken(2), peer("laptop")));
  EXPECT_TRUE(changes_of(asked).empty());
}

TEST(ZfsBookmarks, WhatPeersLeaveThatAreGoneStaysBounded) {
  FakeCommands::Asked asked;
  std::string listed;
  for (int i = 0; i < 64; ++i)
    listed += bookmark_listed("gone-" + std::to_string(i), 1, 10 + static_cast<std::uint64_t>(i));
  asked.answers = {{true, listed, {}}, {true, {}, {}}, {true, {}, {}}};
  Zfs zfs(std::make_unique<FakeCommands>(asked), "tank");
  ASSERT_TRUE(Bookmarks(zfs).keep(ds("a"), taken(2), peer("laptop")));
  EXPECT_EQ(changes_of(asked).back(),
            "destroy tank/a#" + bookmark_word(peer("gone-0"), checkpoint_id(1)));
}

TEST(ZfsBookmarks, OnlyThoseInTheWayOfARollbackAreDropped) {
  FakeCommands::Asked asked;
  asked.answers = {{true, bookmark_listed("laptop", 1, 10) + bookmark_listed("server", 2, 30), {}},
                   {true, "tank/a@v1\t1\t10\t0\t1\t1\ntank/a@v2\t2\t20\t0\t1\t1\n", {}},
                   {true, {}, {}}};
  Zfs zfs(std::make_unique<FakeCommands>(asked), "tank");
  ASSERT_TRUE(Bookmarks(zfs).drop_newer_than_snapshots(ds("a")));
  EXPECT_EQ(changes_of(asked),
            (std::vector<std::string>{"destroy tank/a#" +
                                      bookmark_word(peer("server"), checkpoint_id(2))}));
}

// ---- rollbacks ----------------------------------------------------------------------------------

TEST(ZfsOwnRollbacks, EachIsHeardOfOnce) {
  OwnRollbacks own;
  EXPECT_FALSE(own.claim("tank/a"));
  own.expect("tank/a");
  own.expect("tank/a");
  EXPECT_FALSE(own.claim("tank/b"));
  EXPECT_TRUE(own.claim("tank/a"));
  EXPECT_TRUE(own.claim("tank/a"));
  EXPECT_FALSE(own.claim("tank/a"));
}

TEST(ZfsOwnRollbacks, OneThatFailedHidesNoPersonsRollback) {
  OwnRollbacks own;
  own.expect("tank/a");
  own.withdraw("tank/a");
  EXPECT_FALSE(own.claim("tank/a"));
  // Its event has come before the command failed: nothing is owed for that.
  own.withdraw("tank/a");
  own.expect("tank/a");
  EXPECT_TRUE(own.claim("tank/a"));
}

}  // namespace
}  // namespace zed::store::zfs
