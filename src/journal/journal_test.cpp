#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <sstream>

#include "journal/journal.hpp"

namespace zed::journal {
namespace {

namespace fs = std::filesystem;

class JournalTest : public testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "zed-journal-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path path() const { return folder_ / "zed" / "journal"; }
  std::string text() const {
    std::ifstream file(path(), std::ios::binary);
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
  }
  void write(const std::string& text) const { std::ofstream(path(), std::ios::binary) << text; }
  std::vector<std::string> records() const { return Journal::open(path()).value().records; }

  fs::path folder_;
};

TEST_F(JournalTest, KeepsRecordsAcrossOpens) {
  {
    auto opened = Journal::open(path()).value();
    std::vector<std::string> batch{"{\"a\":1}", "{\"b\":2}"};
    ASSERT_TRUE(opened.journal.append(1, batch));
    ASSERT_TRUE(opened.journal.append(3, std::vector<std::string>{"{}"}));
  }
  auto opened = Journal::open(path()).value();
  EXPECT_EQ(opened.journal.last_seq(), 3u);
  EXPECT_EQ(opened.records, (std::vector<std::string>{"{\"a\":1}", "{\"b\":2}", "{}"}));
}

TEST_F(JournalTest, ATornTailOfAnyLengthIsDroppedAndNothingElse) {
  std::vector<std::string> batch{"first record", "second record"};
  ASSERT_TRUE(Journal::open(path()).value().journal.append(1, batch));
  std::string whole = text();
  std::size_t second = whole.find("second record") - 18;
  for (std::size_t cut = second; cut < whole.size(); ++cut) {
    write(whole.substr(0, cut));
    EXPECT_EQ(records(), (std::vector<std::string>{"first record"})) << cut;
    // The tail is gone from the disk too: an append goes on from a clean end.
    ASSERT_TRUE(Journal::open(path()).value().journal.append(2, std::vector<std::string>{"next"}));
    EXPECT_EQ(records(), (std::vector<std::string>{"first record", "next"}));
  }
}

TEST_F(JournalTest, DamageBeforeAWholeRecordIsReportedNotSkipped) {
  std::vector<std::string> batch{"first record", "second record"};
  ASSERT_TRUE(Journal::open(path()).value().journal.append(1, batch));
  std::string damaged = text();
  const std::size_t first = damaged.find("first record");
  for (std::size_t at = first - 18; at <= first + std::string("first record").size(); ++at) {
    const char whole = std::exchange(damaged[at], '\x7f');
    write(damaged);
    auto opened = Journal::open(path());
    ASSERT_FALSE(opened) << at;
    EXPECT_EQ(opened.error().code, ErrorCode::corrupt);
    EXPECT_EQ(text(), damaged);
    damaged[at] = whole;
  }
}

TEST_F(JournalTest, IsLockedAgainstASecondController) {
  auto first = Journal::open(path()).value();
  auto second = Journal::open(path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::busy);
}

TEST_F(JournalTest, ReplaceCountsOn) {
  {
    auto opened = Journal::open(path()).value();
    ASSERT_TRUE(opened.journal.append(1, std::vector<std::string>{"a", "b", "c"}));
    ASSERT_TRUE(opened.journal.replace(3, {"abc"}));
    ASSERT_TRUE(opened.journal.append(4, std::vector<std::string>{"d"}));
  }
  auto opened = Journal::open(path()).value();
  EXPECT_EQ(opened.records, (std::vector<std::string>{"abc", "d"}));
  EXPECT_EQ(opened.journal.last_seq(), 4u);
}

TEST_F(JournalTest, RefusesARecordThatWouldForgeAnother) {
  auto opened = Journal::open(path()).value();
  EXPECT_FALSE(opened.journal.append(1, std::vector<std::string>{"a\nb"}));
}

RC_GTEST_PROP(Journal, AnyTextIsReadOrRefusedNeverMore, (const std::string& junk)) {
  std::string text = format_journal(1, {"{}"}) + junk;
  auto contents = parse_journal(text);
  if (contents) RC_ASSERT(contents->records.size() >= 1u);
}

}  // namespace
}  // namespace zed::journal
