// Looking into copies: what a page holds, and that no link of a job leads out of its folder.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/base64.hpp"
#include "store/dir/test_folder.hpp"
#include "store/look/look.hpp"

namespace zed::store {
namespace {

class Look : public testing::Test {
protected:
  void SetUp() override {
    store_ = folder_.open();
    ASSERT_TRUE(store_->create(ds("a"), {}));
    live_ = store_->open_live(ds("a")).value();
  }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((live_ / name).parent_path());
    std::ofstream(live_ / name, std::ios::binary) << text;
  }
  /// "ckpt/ ckpt/a.npz train.py -> x"
  std::string listed(const std::string& path, const std::string& after = "") {
    auto list = list_files(*store_, {ds("a"), "", path, Bytes{}, after});
    if (!list) return list.error().describe();
    std::string text;
    for (const FileEntry& entry : list->entries) {
      text += (text.empty() ? "" : " ") + entry.path;
      if (entry.kind == FileKind::folder) text += "/";
      if (entry.kind == FileKind::link) text += " -> " + entry.target;
    }
    return text;
  }

  TestFolder folder_;
  std::unique_ptr<env::Store> store_;
  fs::path live_;
};

TEST_F(Look, ListsByComponentsAndGoesOnAfterAnyOfThem) {
  write("b/1", "");
  write("b-a", "");
  write("b/2", "");
  write("a", "");
  EXPECT_EQ(listed(""), "a b/ b/1 b/2 b-a");
  EXPECT_EQ(listed("", "b"), "b/1 b/2 b-a");
  EXPECT_EQ(listed("", "b/1"), "b/2 b-a");
  EXPECT_EQ(listed("", "b/2"), "b-a");
  EXPECT_EQ(listed("b"), "b/ b/1 b/2");
  EXPECT_EQ(listed("b/2"), "b/2");
}

TEST_F(Look, PagesHoldAThousand) {
  for (int i = 0; i < 1100; ++i)
    write("f" + std::to_string(1000 + i), "");
  auto first = list_files(*store_, {ds("a"), "", "", Bytes{}, ""});
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->more);
  ASSERT_EQ(first->entries.size(), 1000u);
  auto second = list_files(*store_, {ds("a"), "", "", Bytes{}, first->entries.back().path});
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->more);
  EXPECT_EQ(second->entries.size(), 100u);
}

TEST_F(Look, NoLinkLeadsOut) {
  fs::create_symlink("/etc", live_ / "etc");
  fs::create_symlink("/etc/passwd", live_ / "passwd");
  EXPECT_EQ(listed(""), "etc -> /etc passwd -> /etc/passwd");
  EXPECT_FALSE(read_file(*store_, {ds("a"), "", "passwd", 0}));
  EXPECT_FALSE(read_file(*store_, {ds("a"), "", "etc/passwd", 0}));
  for (const char* path : {"../x", "b/../../x", "/etc/passwd"}) {
    auto read = read_file(*store_, {ds("a"), "", path, 0});
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::invalid) << path;
  }
}

TEST_F(Look, APipeIsNoFileAndDoesNotHang) {
  ASSERT_EQ(::mkfifo((live_ / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(read_file(*store_, {ds("a"), "", "pipe", 0}));
  auto list = list_files(*store_, {ds("a"), "", "", mebibytes(1), ""});
  ASSERT_TRUE(list) << list.error().describe();
  EXPECT_EQ(list->entries.at(0).kind, FileKind::other);
}

TEST_F(Look, ReadsASnapshotInPieces) {
  const std::string old(file_piece_limit + 10, 'x');
  write("big", old);
  ASSERT_TRUE(store_->snapshot(snap("a@epoch-1"), {}));
  write("big", "changed");
  auto first = read_file(*store_, {ds("a"), "epoch-1", "big", 0});
  ASSERT_TRUE(first) << first.error().describe();
  EXPECT_EQ(first->size, std::ssize(old));
  auto second = read_file(*store_, {ds("a"), "epoch-1", "big", file_piece_limit});
  ASSERT_TRUE(second);
  EXPECT_EQ(*from_base64(second->data, 100), std::string(10, 'x'));
  EXPECT_EQ(*from_base64(read_file(*store_, {ds("a"), "", "big", 0})->data, 100), "changed");
  EXPECT_EQ(read_file(*store_, {ds("a"), "", "big", 1000})->data, "");
}

TEST_F(Look, DigestsTellFilesApart) {
  write("one", "same");
  write("two", "same");
  write("three", "other");
  auto list = list_files(*store_, {ds("a"), "", "", mebibytes(1), ""});
  ASSERT_TRUE(list);
  EXPECT_EQ(list->entries[0].digest, list->entries[2].digest);
  EXPECT_NE(list->entries[0].digest, list->entries[1].digest);
}

TEST_F(Look, MetricsComeByStepAndTheLaterLineCounts) {
  write("metrics/000001.jsonl",
        "{\"s\":1,\"t\":1.0,\"loss\":3}\n{\"s\":3,\"t\":2.0,\"loss\":1}\n"
        "{\"s\":2,\"loss\":2}\n{\"s\":3,\"loss\":0.5}\n{\"s\":4,\"loss\":9");
  auto page = read_metrics(*store_, {ds("a"), "", {}, 100});
  ASSERT_TRUE(page) << page.error().describe();
  ASSERT_EQ(page->series.size(), 1u);
  EXPECT_EQ(page->series[0].name, "loss");
  EXPECT_EQ(page->series[0].steps, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(page->series[0].values, (std::vector<double>{3, 2, 0.5}));
  EXPECT_TRUE(page->complete);
}

TEST_F(Look, MetricsThatAreNotFiniteAreCountedAndPlaced) {
  write("metrics/000001.jsonl",
        "{\"s\":1,\"loss\":1}\n{\"s\":2,\"loss\":\"NaN\"}\n{\"s\":3,\"loss\":\"Infinity\"}\n");
  auto page = read_metrics(*store_, {ds("a"), "", {}, 100});
  ASSERT_TRUE(page);
  EXPECT_EQ(page->series.at(0).count, 3);
  EXPECT_EQ(page->series.at(0).not_finite, 2);
  EXPECT_EQ(page->series.at(0).first_not_finite, 2.0);
  EXPECT_EQ(page->series.at(0).values, std::vector<double>{1});
}

TEST_F(Look, NoMetricsAreAnEmptyPage) {
  auto page = read_metrics(*store_, {ds("a"), "", {}, 100});
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->series.empty());
}

TEST_F(Look, OnlyTheMetricsThatWereAskedFor) {
  write("metrics/000002.jsonl", "{\"s\":2,\"loss\":1,\"accuracy\":0.5}\n");
  write("metrics/000001.jsonl", "{\"s\":1,\"loss\":2,\"accuracy\":0.4}\n");
  auto page = read_metrics(*store_, {ds("a"), "", {"accuracy"}, 100});
  ASSERT_TRUE(page);
  ASSERT_EQ(page->series.size(), 1u);
  EXPECT_EQ(page->series[0].values, (std::vector<double>{0.4, 0.5}));
  EXPECT_EQ(page->other_names, std::vector<std::string>{"loss"});
}

TEST(Thinned, KeepsEndsAndExtremes) {
  std::vector<double> values(10'000);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<double>(i) / 100);
  values[4321] = 50;
  values[7777] = -50;
  auto kept = thinned(values, 100);
  EXPECT_LE(kept.size(), 100u);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  EXPECT_EQ(kept.front(), 0u);
  EXPECT_EQ(kept.back(), 9'999u);
  for (std::size_t extreme : {4321u, 7777u})
    EXPECT_TRUE(std::binary_search(kept.begin(), kept.end(), extreme));
  EXPECT_EQ(thinned({1, 2, 3}, 2), (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(thinned({1, 2}, 10).size(), 2u);
}

}  // namespace
}  // namespace zed::store
