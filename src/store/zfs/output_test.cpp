// What the room reads: text that OpenZFS 2.1.11 printed in a virtual machine.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "store/zfs/errors.hpp"
#include "store/zfs/event_watch.hpp"
#include "store/zfs/output.hpp"

namespace zed::store::zfs {
namespace {

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
  const std::string id = id_from_guid(7).str();
  auto rows = parse_bookmarks("a/d#zed:laptop:" + id + "\t42\t14\n" +
                              "a/d#zed:b.lan:" + id_from_guid(8).str() + "\t43\t12\n" +
                              "a/d#mine\t1\t2\na/d#zed:x\t1\t2\na/d@zed:laptop:" + id +
                              "\t1\t2\na/d#zed:laptop:" + id + "\tx\t2\n");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].bookmark, (Bookmark{"b.lan", id_from_guid(8), 43, 12}));
  EXPECT_EQ(rows[1].bookmark, (Bookmark{"laptop", id_from_guid(7), 42, 14}));
  EXPECT_EQ(rows[1].word, bookmark_word(*NodeName::parse("laptop"), id_from_guid(7)));
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
      {"cannot destroy snapshot a/d@one: it's being held. Run 'zfs holds -r a/d@one' to see "
       "holders.\n",
       busy},
      {"cannot receive: stream is not compatible with the data in the pool.\n", unsupported},
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
  EXPECT_EQ(found[0].eid, 0x2cU);
  EXPECT_EQ(reader.last_eid(), 0x2cU);
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

/// Tells first what was before, as the command does.
class OldAndNew final : public Commands {
public:
  Result<Output> run(const Arguments&, std::string_view) override {
    Output output;
    output.ok = true;
    output.out = old_ones();
    return output;
  }
  Result<std::unique_ptr<Child>> start(const Arguments&, Pipe) override {
    std::string newer = event("tank/b/%rollback", "clone swap", "0x10");
    newer.replace(newer.find("0x2c"), 4, "0x2d");
    return std::unique_ptr<Child>(std::make_unique<Printed>(old_ones() + newer));
  }

private:
  class Printed final : public Child {
  public:
    explicit Printed(std::string text) : text_(std::move(text)) {}
    Result<std::size_t> read(std::span<std::byte> buffer) override {
      const std::size_t n = std::min(buffer.size(), text_.size());
      std::memcpy(buffer.data(), text_.data(), n);
      text_.erase(0, n);
      return n;
    }
    Status write(std::span<const std::byte>) override { return {}; }
    Result<Output> finish() override { return Output{}; }
    void kill() override {}

  private:
    std::string text_;
  };
  static std::string old_ones() { return event("tank/a/%rollback", "clone swap", "0xf"); }
};

/// An agent that starts in the second of its predecessor's rollback must not take it for a
/// person's.
TEST(ZfsEvents, OfBeforeAreNotToldAgain) {
  OldAndNew commands;
  std::vector<std::string> heard;
  {
    EventWatch watch(commands, "tank", [&](const Rollback& one) { heard.push_back(one.dataset); });
    while (watch.is_listening())
      std::this_thread::yield();
  }
  EXPECT_EQ(heard, std::vector<std::string>{"tank/b"});
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

TEST(ZfsOutput, OwnPropertiesOfManySnapshots) {
  // As OpenZFS 2.1.11 prints it.
  auto own = parse_own_properties(
      R"({"return":{"tank/j/1@epoch-1":{"com.zed:id":"1","com.zed:epoch":"%","other:x":"y"},"tank/j/1@v":{}}})"
      "\n");
  ASSERT_TRUE(own);
  EXPECT_EQ(own->at("tank/j/1@epoch-1"), (Properties{{"id", "1"}, {"epoch", ""}}));
  EXPECT_TRUE(own->at("tank/j/1@v").empty());
  EXPECT_EQ(parse_own_properties("{\"return\":{}}")->size(), 0U);
  for (const char* broken : {"", "{}", R"({"return":{"tank/a@b":{"com.zed:who":"Z)",
                             R"({"return":{"tank/a@b":"x"}})", R"({"return":1})"})
    EXPECT_FALSE(parse_own_properties(broken)) << broken;
}

}  // namespace
}  // namespace zed::store::zfs
