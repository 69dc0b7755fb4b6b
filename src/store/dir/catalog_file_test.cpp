// The catalog's file: what it says after a crash at any byte, damage anywhere, a disk that fails.

#include <algorithm>
#include <map>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/frame.hpp"
#include "store/dir/catalog_file.hpp"
#include "store/dir/edits.hpp"
#include "store/dir/test_folder.hpp"

namespace zed::store {
namespace {

std::string show(const Catalog& catalog) {
  return render_catalog("test", catalog);
}

NewSnapshot made(std::uint64_t n) {
  NewSnapshot snapshot;
  snapshot.files = "snapshots/" + std::to_string(n) + "-x";
  snapshot.guid = n;
  return snapshot;
}

/// What a person could do to the catalog, by number.
void change_somehow(Catalog& catalog, std::uint64_t dice, std::uint64_t n) {
  const auto name = ds("d/" + std::to_string(dice % 5));
  const auto other = ds("d/" + std::to_string((dice / 5) % 5));
  const auto word = "s" + std::to_string((dice / 25) % 4);
  const SnapshotName snapshot{name, word};
  const std::string bytes = "\x01\n\"%" + std::to_string(n);
  // Refusals are as welcome as changes.
  switch ((dice / 100) % 9) {
  case 0: (void)catalog.create(name, {{"n", bytes}}, "live/" + std::to_string(n) + "-x"); break;
  case 1: (void)catalog.set(name, {{{"n", bytes}}, n % 2 == 0}); break;
  case 2: (void)catalog.add_snapshot(snapshot, {}, made(n)); break;
  case 3: (void)catalog.hold(snapshot, "tag"); break;
  case 4: (void)catalog.destroy(snapshot); break;
  case 5: (void)catalog.clone(snapshot, other, {}); break;
  case 6: (void)catalog.promote(name); break;
  case 7: (void)catalog.rename(name, other); break;
  case 8: (void)catalog.destroy(name); break;
  }
}

RC_GTEST_PROP(Edits, SayWhatTheWholeCatalogWould, ()) {
  Catalog catalog;
  std::string text = show(catalog);
  const auto dice =
      *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 900));
  std::uint64_t n = 0;
  for (std::size_t at = 0; at < dice.size();) {
    Catalog next = catalog;
    // Up to three changes in one edit.
    const std::size_t end = std::min<std::size_t>(at + 1 + dice[at] % 3, dice.size());
    while (at < end)
      change_somehow(next, dice[at++], ++n);
    auto touched = next.take_touched();
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    if (next.counter() == catalog.counter()) continue;
    text += render_edit({catalog, next, touched});
    catalog = next;
    auto read = parse_metadata(text);
    RC_ASSERT(read);
    RC_ASSERT(read->size == text.size());
    RC_ASSERT(show(read->catalog) == show(catalog));
  }
}

/// A file of a whole catalog and three edits, and what it says up to each.
class CatalogFileTest : public testing::Test {
protected:
  CatalogFileTest() : root_(::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    disk::set_syncing(false);
  }
  ~CatalogFileTest() override { disk::set_fault(disk::Fault::die, 0); }

  fs::path path() const { return folder_.path() / "catalog"; }
  CatalogFile opened() const {
    CatalogFile file(root_.get());
    EXPECT_TRUE(file.load());
    EXPECT_TRUE(file.cut_torn_end());
    return file;
  }
  static Status put(CatalogFile& file, Catalog& catalog, const std::string& value) {
    Catalog next = catalog;
    const bool is_new = !next.datasets().contains(ds("a"));
    Status done =
        is_new ? next.create(ds("a"), {{"p", value}}) : next.set(ds("a"), {{{"p", value}}, {}});
    EXPECT_TRUE(done);
    auto touched = next.take_touched();
    ZED_CHECK(file.append("test", {catalog, next, touched}));
    catalog = next;
    return {};
  }
  std::string loaded() const {
    CatalogFile file(root_.get());
    auto metadata = file.load();
    return metadata ? show(metadata->catalog) : std::string(to_string(metadata.error().code));
  }
  /// Text of the file by what it says, in the order written.
  std::vector<std::pair<std::string, std::string>> write_history() {
    CatalogFile file(root_.get());
    Catalog catalog;
    EXPECT_TRUE(file.replace("test", catalog));
    std::vector<std::pair<std::string, std::string>> history{{text_of(path()), show(catalog)}};
    for (const char* value : {"1", "2", "3"}) {
      EXPECT_TRUE(put(file, catalog, value));
      history.emplace_back(text_of(path()), show(catalog));
    }
    return history;
  }

  TestFolder folder_;
  disk::Fd root_;
};

TEST_F(CatalogFileTest, CutAtAnyByteItSaysWhatWasLastWhole) {
  const auto history = write_history();
  const std::string& whole = history.back().first;
  std::size_t said = 0;
  for (std::size_t size = history.front().first.size(); size <= whole.size(); ++size) {
    while (said + 1 < history.size() && history[said + 1].first.size() <= size)
      ++said;
    auto read = parse_metadata(std::string_view(whole).substr(0, size));
    ASSERT_TRUE(read) << size;
    ASSERT_EQ(show(read->catalog), history[said].second) << size;
    ASSERT_EQ(read->size, history[said].first.size());
  }
  for (std::size_t size = 0; size < history.front().first.size(); ++size)
    ASSERT_FALSE(parse_metadata(std::string_view(whole).substr(0, size))) << size;
}

TEST_F(CatalogFileTest, ADamagedByteIsNeverTakenForATornEnd) {
  const auto history = write_history();
  const std::string& whole = history.back().first;
  const std::size_t last = history[2].first.size();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    // The whole catalog at the beginning is without checksums.
    const bool is_checked = at >= history.front().first.size();
    damaged[at] = is_checked ? static_cast<char>(damaged[at] ^ 1) : '\0';
    auto read = parse_metadata(damaged);
    // A length that became longer than what is there is what a cut would look like.
    if (read && at >= last && at < last + 8) continue;
    ASSERT_FALSE(read) << at;
    EXPECT_EQ(read.error().code, ErrorCode::corrupt);
    EXPECT_NE(read.error().describe().find("catalog"), std::string::npos);
  }
}

/// A file's size may be on the disk before all that was written: then sectors read as zeros.
TEST_F(CatalogFileTest, SectorsThatWereNotWrittenAreATornEnd) {
  CatalogFile file(root_.get());
  Catalog catalog;
  ASSERT_TRUE(file.replace("test", catalog));
  ASSERT_TRUE(put(file, catalog, "1"));
  const std::string before = show(catalog);
  const std::size_t last = text_of(path()).size();
  ASSERT_TRUE(put(file, catalog, std::string(3000, 'x')));
  const std::string whole = text_of(path());
  constexpr std::size_t sector = 512;
  for (std::size_t at = last; at < whole.size(); at = (at / sector + 1) * sector) {
    const std::size_t end = std::min((at / sector + 1) * sector, whole.size());
    for (const std::size_t until : {end, whole.size()}) {
      std::string torn = whole;
      std::fill(torn.begin() + static_cast<std::ptrdiff_t>(at),
                torn.begin() + static_cast<std::ptrdiff_t>(until), '\0');
      auto read = parse_metadata(torn);
      ASSERT_TRUE(read) << at << " " << read.error().describe();
      EXPECT_EQ(show(read->catalog), before);
      EXPECT_EQ(read->size, last);
    }
  }
  std::string damaged = whole;
  damaged[last + 40] = '\0';
  EXPECT_FALSE(parse_metadata(damaged)) << "one byte is no sector";
}

TEST_F(CatalogFileTest, ADamagedEndSaysWhereToCut) {
  const auto history = write_history();
  std::string damaged = history.back().first;
  damaged[damaged.size() - 10] ^= 1;
  auto read = parse_metadata(damaged);
  ASSERT_FALSE(read);
  const std::size_t end = history[2].first.size();
  EXPECT_NE(read.error().describe().find("truncate -s " + std::to_string(end) + " catalog"),
            std::string::npos)
      << read.error().describe();
  EXPECT_TRUE(parse_metadata(std::string_view(damaged).substr(0, end)));
}

TEST_F(CatalogFileTest, ATornEndIsCutOffBeforeAnythingFollows) {
  const auto history = write_history();
  // As long as the next record will be, so that what is not cut off would show behind it.
  const std::string torn = framed(std::string(800, '{')).substr(0, 400);
  store::put(path(), history.back().first + torn);
  auto file = opened();
  EXPECT_EQ(text_of(path()), history.back().first);
  Catalog catalog = parse_metadata(history.back().first)->catalog;
  ASSERT_TRUE(put(file, catalog, "4"));
  EXPECT_EQ(loaded(), show(catalog));
  // Whoever does not cut it off gets another file.
  store::put(path(), text_of(path()) + torn);
  CatalogFile uncut(root_.get());
  ASSERT_TRUE(uncut.load());
  ASSERT_TRUE(put(uncut, catalog, "5"));
  EXPECT_EQ(loaded(), show(catalog));
}

TEST_F(CatalogFileTest, AFormatWithoutEditsIsReadAndANewerOneRefused) {
  auto text = write_history().front().first;
  const std::string mark = "{\"format\":2";
  ASSERT_TRUE(text.starts_with(mark));
  EXPECT_TRUE(parse_metadata("{\"format\":1" + text.substr(mark.size())));
  EXPECT_EQ(parse_metadata("{\"format\":3" + text.substr(mark.size())).error().code,
            ErrorCode::unsupported);
}

TEST_F(CatalogFileTest, StaysInProportion) {
  CatalogFile file(root_.get());
  Catalog catalog;
  ASSERT_TRUE(file.replace("test", catalog));
  const std::string large(8000, 'x');
  std::uintmax_t longest = 0;
  for (int i = 0; i < 600; ++i) {
    ASSERT_TRUE(put(file, catalog, large + std::to_string(i)));
    longest = std::max(longest, fs::file_size(path()));
  }
  EXPECT_LT(longest, 1'200'000U) << "600 edits are 5 MB";
  EXPECT_GT(longest, 900'000U) << "it is not made anew each time";
  EXPECT_EQ(loaded(), show(catalog));
}

TEST_F(CatalogFileTest, KilledAnywhereWhileItIsMadeShorterItLosesNothing) {
  CatalogFile file(root_.get());
  Catalog catalog;
  ASSERT_TRUE(file.replace("test", catalog));
  // Until the next large one makes the file shorter.
  while (fs::file_size(path()) < (std::size_t{1} << 20) - 8'170)
    ASSERT_TRUE(put(file, catalog, std::string(4000, 'x')));
  const std::string full = text_of(path());
  const std::string before = show(catalog);
  bool finished = false;
  std::size_t deaths = 0;
  for (std::uint64_t n = 1; !finished; ++n) {
    ASSERT_LT(n, 50U);
    store::put(path(), full);
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto again = opened();
      disk::set_fault(disk::Fault::die, n);
      _exit(put(again, catalog, std::string(8100, 'y')) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    finished = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    deaths += finished ? 0 : 1;
    const std::string now = loaded();
    const bool is_new = now.find("yyy") != std::string::npos;
    EXPECT_TRUE(is_new || now == before) << n;
    if (finished) {
      EXPECT_TRUE(is_new);
      EXPECT_LT(fs::file_size(path()), 20'000U);
    }
  }
  EXPECT_EQ(deaths, 5U) << "open, write, fsync, rename, fsync of the folder";
}

TEST_F(CatalogFileTest, AfterAFailedSyncTheNextChangeIsWrittenElsewhere) {
  auto history = write_history();
  auto file = opened();
  Catalog catalog = parse_metadata(history.back().first)->catalog;
  disk::set_fault(disk::Fault::sync, 1);
  EXPECT_EQ(put(file, catalog, "lost").error().code, ErrorCode::io);
  EXPECT_EQ(put(file, catalog, "lost too").error().code, ErrorCode::io) << "the other file as well";
  disk::set_fault(disk::Fault::sync, 0);
  struct stat old {};
  ASSERT_EQ(::stat(path().c_str(), &old), 0);
  ASSERT_TRUE(put(file, catalog, "kept"));
  EXPECT_EQ(loaded(), show(catalog));
  struct stat now {};
  ASSERT_EQ(::stat(path().c_str(), &now), 0);
  EXPECT_NE(now.st_ino, old.st_ino);
  ASSERT_TRUE(put(file, catalog, "and more"));
  EXPECT_EQ(loaded(), show(catalog));
}

TEST_F(CatalogFileTest, OnAFullDiskWhatDidNotFitLeavesNothingBehind) {
  auto history = write_history();
  auto file = opened();
  Catalog catalog = parse_metadata(history.back().first)->catalog;
  disk::set_fault(disk::Fault::full, 1);
  EXPECT_EQ(put(file, catalog, "lost").error().code, ErrorCode::no_space);
  disk::set_fault(disk::Fault::full, 0);
  EXPECT_EQ(text_of(path()), history.back().first);
  ASSERT_TRUE(put(file, catalog, "kept"));
  EXPECT_EQ(loaded(), show(catalog));
}

}  // namespace
}  // namespace zed::store
