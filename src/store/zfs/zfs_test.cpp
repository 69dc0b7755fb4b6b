// What the zfs room reads and says, on text that OpenZFS 2.1.11 printed in a virtual machine.

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "store/zfs/command.hpp"
#include "store/zfs/errors.hpp"
#include "store/zfs/event_watch.hpp"
#include "store/zfs/inventory.hpp"
#include "store/zfs/marker.hpp"
#include "store/zfs/output.hpp"
#include "store/zfs/users_of.hpp"
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

// ---- values -------------------------------------------------------------------------------------

TEST(ZfsValues, SurviveAnyText) {
  for (const std::string text :
       {"", "-", "plain", "tab\tnewline\n", "100 %", "%", "zed \xC3\xA9", "\x01\x7f", "%41"}) {
    std::string stored = encode_value(text);
    EXPECT_EQ(decode_value(stored), text);
    EXPECT_FALSE(stored.empty());
    EXPECT_EQ(stored.find_first_of("\t\n"), std::string::npos);
  }
  // Set by hand, not by us: taken as it is.
  EXPECT_EQ(decode_value(""), "");
  EXPECT_EQ(decode_value("50 % done"), "50 % done");
}

// ---- listings -----------------------------------------------------------------------------------

TEST(ZfsOutput, PropertiesAreRows) {
  auto rows = parse_properties("a/d\ttype\tfilesystem\t-\n"
                               "a/d\tmountpoint\t/a/d\tinherited from a\n"
                               "a/d\tatime\toff\tlocal\n"
                               "a/d\tcom.zed:empty\t\tlocal\n"
                               "a/d\tcom.zed:dash\t-\tlocal\n");
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[1].source, "inherited from a");
  EXPECT_FALSE(rows[1].is_own());
  EXPECT_EQ(rows[3].value, "");
  EXPECT_TRUE(rows[4].is_own());
}

TEST(ZfsOutput, OddValuesForgeNoRows) {
  auto rows = parse_properties("a/d\tcom.zed:note\ttab\there\tlocal\n"
                               "a/d\tcom.zed:note\ttwo\n"
                               "lines\tlocal\n"
                               "a/d\tcom.zed:x\ty\tsomething else\n"
                               "a/d\tcom.zed:ok\t1\treceived\n");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].property, "com.zed:ok");
}

TEST(ZfsOutput, OnlyOwnPropertiesOfOursCount) {
  auto facts = gather(parse_properties("a/d\tused\t24576\t-\n"
                                       "a/d\torigin\t-\t-\n"
                                       "a/d\tcom.zed:status\trunning\tinherited from a\n"
                                       "a/d\tcom.zed:name\tfine%20tune\tlocal\n"
                                       "a/d\tcom.zed:home\tserver\treceived\n"
                                       "a/d\torg.other:x\ty\tlocal\n"
                                       "a/d@one\tguid\t3585775203466201959\t-\n"));
  EXPECT_EQ(facts.at("a/d").own, (Properties{{"name", "fine tune"}, {"home", "server"}}));
  EXPECT_EQ(facts.at("a/d").number("used"), 24576U);
  EXPECT_EQ(facts.at("a/d").text("origin"), "");
  EXPECT_EQ(facts.at("a/d@one").number("guid"), 3585775203466201959U);
}

TEST(ZfsOutput, SnapshotsAreOrderedByTransactionGroupAndNotByNameOrTime) {
  auto rows = parse_snapshots("a/d@z\t3585775203466201959\t14\t0\t24576\t1796043706\n"
                              "a/d@a\t17472382458462348192\t26\t8192\t24576\t1700000000\n"
                              "a/d\tno\tsnapshot\n"
                              "a/d@with space\t1472382458462348192\t21\n"
                              "a/d@b\tnot a guid\t27\n"
                              "a/c@m\t1472382458462348192\t20\n");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].dataset, "a/c");
  EXPECT_EQ(rows[1].word, "z");
  EXPECT_EQ(rows[2].word, "a");
  EXPECT_EQ(rows[2].guid, 17472382458462348192U);
  EXPECT_EQ(rows[2].used, 8192U);
  EXPECT_EQ(rows[2].creation, 1700000000);
}

TEST(ZfsOutput, OurBookmarksAreKnownByTheirNames) {
  const std::string id = checkpoint_id(7).str();
  auto rows = parse_bookmarks("a/d#zed:laptop:" + id + "\t42\t14\n" +
                              "a/d#zed:b.lan:" + checkpoint_id(8).str() + "\t43\t12\n" +
                              "a/d#mine\t1\t2\na/d#zed:x\t1\t2\na/d@zed:laptop:" + id +
                              "\t1\t2\na/d#zed:laptop:" + id + "\tx\t2\n");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].bookmark, (Bookmark{"b.lan", checkpoint_id(8), 43, 12}));
  EXPECT_EQ(rows[1].bookmark, (Bookmark{"laptop", checkpoint_id(7), 42, 14}));
  EXPECT_EQ(rows[1].word, bookmark_word(*NodeName::parse("laptop"), checkpoint_id(7)));
}

TEST(ZfsOutput, MountsAndVersions) {
  auto mounts = parse_mounts("a/d /a/d zfs rw,noatime,xattr,noacl 0 0\n"
                             "a/d@two /a/d/.zfs/snapshot/two zfs ro,relatime,xattr,noacl 0 0\n"
                             "a/with\\040space /a/with\\040space zfs ro 0 0\n"
                             "proc /proc proc rw 0 0\n");
  ASSERT_EQ(mounts.size(), 3U);
  EXPECT_FALSE(mounts[0].readonly);
  EXPECT_TRUE(mounts[1].readonly);
  EXPECT_EQ(mounts[2].source, "a/with space");
  EXPECT_EQ(mounts[2].path, "/a/with space");

  auto version = parse_version("zfs-2.1.11-1+deb12u1\nzfs-kmod-2.1.11-1+deb12u1\n").value();
  EXPECT_EQ(version.text, "2.1.11");
  EXPECT_TRUE(version.at_least(2, 1));
  EXPECT_FALSE(version.at_least(2, 2));
  // The kernel's module decides.
  EXPECT_EQ(parse_version("zfs-2.3.2-2~bpo12+1\nzfs-kmod-2.1.11-1\n")->text, "2.1.11");
  EXPECT_EQ(parse_version("zfs-2.4.0-rc1\n")->text, "2.4.0");
  EXPECT_FALSE(parse_version("unknown command"));
}

TEST(ZfsOutput, Estimates) {
  EXPECT_EQ(parse_estimate("full\ta/m@v1\t21022064\nsize\t21022064\n"), 21022064U);
  EXPECT_EQ(parse_estimate("incremental\ta/m@v1\ta/m@v2\t10512368\nsize\t10512368\n"), 10512368U);
  EXPECT_EQ(parse_estimate(""), std::nullopt);
}

TEST(ZfsOutput, ResumePointsAreReadWhereTheSnapshotIsUnknownToo) {
  auto point = parse_resume_point("resume token contents:\n"
                                  "nvlist version: 0\n"
                                  "\tobject = 0x2\n"
                                  "\toffset = 0x860000\n"
                                  "\tbytes = 0x885ce0\n"
                                  "\ttoguid = 0x8619aeb403d6efba\n"
                                  "\ttoname = a/m@v1\n"
                                  "\tembedok = 1\n"
                                  "\tcompressok = 1\n"
                                  "cannot resume send: 'a/m@v1' used in the initial send no "
                                  "longer exists\n")
                   .value();
  EXPECT_EQ(point.object, 2U);
  EXPECT_EQ(point.offset, 0x860000U);
  EXPECT_EQ(point.bytes, 0x885ce0U);
  EXPECT_EQ(point.to_guid, 0x8619aeb403d6efbaU);
  EXPECT_EQ(point.from_guid, 0U);
  EXPECT_EQ(point.to_name, "a/m@v1");
  EXPECT_TRUE(point.embedded && point.compressed);
  EXPECT_FALSE(point.large_blocks || point.raw);
  EXPECT_FALSE(parse_resume_point("cannot resume send: resume token is corrupt (incorrect "
                                  "checksum)\n"));
  EXPECT_TRUE(is_resume_token("1-e9ab5c0ef-e8-789c636064000310a500"));
  EXPECT_FALSE(is_resume_token("files-1/"));
  EXPECT_FALSE(is_resume_token("1-" + std::string(70'000, 'a')));
}

// ---- complaints ---------------------------------------------------------------------------------

struct Complaint {
  const char* text;
  ErrorCode code;
};

TEST(ZfsErrors, EachTrueComplaintHasItsCode) {
  using enum ErrorCode;
  const Complaint complaints[] = {
      {"cannot create snapshot 'a/d@one': dataset already exists\n", exists},
      {"cannot create 'a/d': dataset already exists\n", exists},
      {"cannot rename 'a/d': dataset already exists\n", exists},
      {"cannot promote 'a/c': conflicting snapshot 'one' from parent 'a/d@one'\n", exists},
      {"cannot receive new filesystem stream: destination 'b/r' exists\n"
       "must specify -F to overwrite it\n",
       exists},
      {"cannot open 'a/none': dataset does not exist\nusage:\n\tsnapshot [-r] ...\n", not_found},
      {"cannot hold snapshot 'a/d@none': dataset does not exist\n", not_found},
      {"could not find any snapshots to destroy; check snapshot names.\n", not_found},
      {"cannot receive incremental stream: destination 'b/nothere' does not exist\n", not_found},
      {"cannot open 'nopool': no such pool\n", not_found},
      {"cannot destroy snapshot a/d@one: dataset is busy\n", busy},
      {"cannot destroy 'a/d': filesystem has children\nuse '-r' to destroy the following "
       "datasets:\na/d@one\n",
       busy},
      {"cannot destroy 'a/d@one': snapshot has dependent clones\nuse '-R' to destroy the following "
       "datasets:\na/c\n",
       busy},
      {"cannot unmount '/a/d': pool or dataset is busy\n", busy},
      {"cannot receive incremental stream: destination b/n has been modified\n"
       "since most recent snapshot\n",
       stale},
      {"cannot receive incremental stream: most recent snapshot of b/m does not\n"
       "match incremental source\n",
       stale},
      {"cannot receive resume stream: kernel modules must be upgraded to receive this stream.\n",
       stale},
      {"cannot resume send: 'a/m@s2' used in the initial send no longer exists\n", stale},
      {"cannot rollback to 'a/d@one': more recent snapshots or bookmarks exist\n", stale},
      {"cannot receive new filesystem stream: checksum mismatch or incomplete stream.\n"
       "Partially received snapshot is saved.\n"
       "A resuming stream can be generated on the sending system by running:\n    zfs send -t "
       "1-e\n",
       corrupt},
      {"cannot receive: failed to read from stream\n", corrupt},
      {"cannot receive new filesystem stream: invalid backup stream\n", corrupt},
      {"cannot receive new filesystem stream: destination b/q/n space quota exceeded.\n", no_space},
      {"cannot create 'a/x': out of space\n", no_space},
      {"cannot resume send: resume token is corrupt (incorrect checksum)\n", invalid},
      {"cannot set property for 'a/d': invalid property 'com.zed:Upper'\n", invalid},
      {"cannot create snapshots : permission denied\n", refused},
      {"cannot mount 'b/x': Insufficient privileges\n", refused},
      {"cannot import 'tank': I/O error\n", io},
      {"", io},
  };
  for (const Complaint& complaint : complaints)
    EXPECT_EQ(to_string(error_of("try it", complaint.text).code), to_string(complaint.code))
        << complaint.text;
}

TEST(ZfsErrors, SayWhatWasTriedAndSpareTheUsage) {
  auto error = error_of("snapshot jobs/a@one",
                        "cannot open 'a/none': dataset does not exist\nusage:\n\tsnapshot [-r]\n");
  EXPECT_EQ(error.message, "snapshot jobs/a@one: cannot open 'a/none': dataset does not exist");
  EXPECT_LT(error_of("x", std::string(5'000, 'y')).message.size(), 600U);
  EXPECT_EQ(error_of_errno("x", ENOSPC).code, ErrorCode::no_space);
  EXPECT_EQ(error_of_errno("x", EBUSY).code, ErrorCode::busy);
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
  EXPECT_EQ(zfs.all_snapshots()->size(), 1U);
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
    auto all = inventory.all(false);
    ASSERT_TRUE(all) << all.error().describe();
    ASSERT_EQ(all->size(), 1U);
    EXPECT_EQ(all->at(0).dataset.snapshots.at(0).properties, (Properties{{"loss", "0.5"}}));
  }
  EXPECT_EQ(asked.commands.size(), 5U);
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

// ---- real commands ------------------------------------------------------------------------------

TEST(SystemCommands, RunWithInputAndTellHowTheyEnded) {
  auto commands = make_system_commands();
  std::string long_text(300'000, 'x');
  EXPECT_EQ(commands->run({"cat"}, long_text)->out, long_text);
  auto failed = commands->run({"ls", "/no such folder"}, {}).value();
  EXPECT_FALSE(failed.ok);
  EXPECT_NE(failed.err.find("No such file"), std::string::npos);
  EXPECT_EQ(commands->run({"env"}, {})->out.find("LC_ALL=C"), 0U);
  EXPECT_EQ(commands->run({"no-such-program"}, {}).error().code, ErrorCode::unsupported);
  // Input that nobody reads is no failure.
  EXPECT_TRUE(commands->run({"true"}, long_text)->ok);
}

TEST(SystemCommands, PipesEndWhenTheyAreLeft) {
  auto commands = make_system_commands();
  std::vector<std::byte> buffer(1000);
  auto endless = commands->start({"yes"}, Commands::Pipe::from_it).value();
  EXPECT_GT(endless->read(buffer).value(), 0U);
  endless.reset();  // would hang if it did not end

  auto sink = commands->start({"cat"}, Commands::Pipe::to_it).value();
  EXPECT_TRUE(sink->write(buffer));
  EXPECT_TRUE(sink->finish()->ok);

  auto deaf = commands->start({"false"}, Commands::Pipe::to_it).value();
  Status written;
  for (int i = 0; i < 1000 && written; ++i)
    written = deaf->write(buffer);
  EXPECT_EQ(written.error().code, ErrorCode::unavailable);
  EXPECT_FALSE(deaf->finish()->ok);
}

TEST(SystemCommands, AreKilledWhileAnotherThreadReads) {
  auto commands = make_system_commands();
  auto silent = commands->start({"sleep", "1000"}, Commands::Pipe::from_it).value();
  std::thread reader([&silent] {
    std::array<std::byte, 10> buffer{};
    EXPECT_EQ(silent->read(buffer).value(), 0U);
  });
  silent->kill();
  reader.join();
}

// ---- events -------------------------------------------------------------------------------------

std::string event(const std::string& dataset, const std::string& name, const std::string& txg) {
  return "Nov 30 2026 16:32:42.559999038\tsysevent.fs.zfs.history_event\n"
         "        version = 0x0\n"
         "        class = \"sysevent.fs.zfs.history_event\"\n"
         "        pool = \"tank\"\n"
         "        history_hostname = \"t\"\n"
         "        history_dsname = \"" +
         dataset +
         "\"\n"
         "        history_internal_str = \"parent=a\"\n"
         "        history_internal_name = \"" +
         name +
         "\"\n"
         "        history_dsid = 0x63\n"
         "        history_txg = " +
         txg +
         "\n"
         "        history_time = 0x6b0da52a\n"
         "        time = 0x6b0da52a 0x2160e83e \n"
         "        eid = 0x2c\n\n";
}

TEST(ZfsEvents, ARollbackIsASwapWithItsClone) {
  const std::string text = event("tank/a b/c@one", "snapshot", "0xe") +
                           event("tank/a b/c/%rollback", "clone swap", "0xf") +
                           event("tank/a b/c/%rollback", "destroy", "0xf") +
                           event("tank/a b/c/%recv", "clone swap", "0x10");
  RollbackReader reader;
  auto found = reader.take(text);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].dataset, "tank/a b/c");
  EXPECT_EQ(found[0].txg, 15U);
  EXPECT_EQ(found[0].at, 0x6b0da52a);
}

TEST(ZfsEvents, ComeInAnyPieces) {
  const std::string text = event("tank/a/%rollback", "clone swap", "0xf");
  for (std::size_t size : {1, 7, 100}) {
    RollbackReader reader;
    std::size_t found = 0;
    for (std::size_t at = 0; at < text.size(); at += size)
      found += reader.take(text.substr(at, size)).size();
    EXPECT_EQ(found, 1U) << size;
  }
}

TEST(ZfsEvents, MadeOfRubbishAreNone) {
  RollbackReader reader;
  EXPECT_TRUE(reader.take(std::string(1 << 20, 'x')).empty());
  EXPECT_TRUE(reader.take("\n\n = \n history_txg = 0xzz\n\n").empty());
  EXPECT_TRUE(reader.take("history_internal_name = \"clone swap\"\n\n").empty());
  EXPECT_TRUE(
      reader.take("history_dsname = \"/%rollback\"\nhistory_internal_name = \"clone swap\"\n\n")
          .empty());
}

TEST(UsersOf, NamesWhoHasAFileOpenOrMapped) {
  std::string folder = std::filesystem::temp_directory_path() / "zed-users-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  EXPECT_EQ(users_of(folder), "");
  std::string pid = "(pid " + std::to_string(::getpid()) + ")";
  int file = ::open((folder + "/f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::ftruncate(file, 4096), 0);
  EXPECT_NE(users_of(folder).find(pid), std::string::npos);
  void* mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0);
  ::close(file);
  EXPECT_NE(users_of(folder).find(pid), std::string::npos);
  ::munmap(mapped, 4096);
  EXPECT_EQ(users_of(folder), "");
  EXPECT_EQ(users_of(folder.substr(0, folder.size() - 1)), "");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace zed::store::zfs
