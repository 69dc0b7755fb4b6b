// Which files a snapshot shares with the one before, and that no write is ever missed by it.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "store/dir/test_folder.hpp"

namespace zed::store {
namespace {

class Sharing : public testing::Test {
protected:
  void SetUp() override {
    store_ = folder_.open();
    ASSERT_TRUE(store_->create(ds("a"), {}));
    live_ = store_->open_live(ds("a")).value();
  }
  fs::path take(const std::string& word) {
    auto taken = store_->snapshot(snap("a@" + word), {});
    EXPECT_TRUE(taken) << taken.error().describe();
    return store_->snapshot_path(snap("a@" + word)).value();
  }
  static ino_t inode(const fs::path& file) {
    struct stat status {};
    EXPECT_EQ(::lstat(file.c_str(), &status), 0) << file;
    return status.st_ino;
  }
  static void settle() { disk::wait_until_past(disk::now_nanoseconds()); }
  bool shares() const { return store_->info().version != "dir 1 (copy)"; }

  TestFolder folder_;
  std::unique_ptr<env::Store> store_;
  fs::path live_;
};

TEST_F(Sharing, UnchangedFilesAreSharedBetweenSnapshotsNeverWithTheLiveFile) {
  put(live_ / "same", "unchanged");
  put(live_ / "other", "1");
  settle();
  auto one = take("one");
  put(live_ / "other", "2");
  auto two = take("two");
  if (shares()) {
    EXPECT_EQ(inode(one / "same"), inode(two / "same"));
  }
  EXPECT_NE(inode(one / "same"), inode(live_ / "same"));
  EXPECT_NE(inode(two / "same"), inode(live_ / "same"));
  EXPECT_NE(inode(one / "other"), inode(two / "other"));
  EXPECT_EQ(text_of(one / "other"), "1");
  auto shown = store_->inspect(ds("a"))->snapshots;
  if (shares()) {
    EXPECT_EQ(shown.at(1).used, Bytes{1});
  }
  EXPECT_EQ(shown.at(1).referenced, Bytes{10});
}

TEST_F(Sharing, AFileMadeFromASnapshotIsSharedWithItInTheNext) {
  put(live_ / "w", "good");
  settle();
  auto one = take("one");
  put(live_ / "w", "bad!");
  ASSERT_TRUE(store_->revert_live(ds("a")));
  live_ = store_->open_live(ds("a")).value();
  EXPECT_FALSE(store_->inspect(ds("a"))->changed);
  auto two = take("two");
  if (shares()) {
    EXPECT_EQ(inode(one / "w"), inode(two / "w"));
  }
  put(live_ / "w", "new!");
  EXPECT_EQ(text_of(one / "w"), "good");
  EXPECT_EQ(text_of(take("three") / "w"), "new!");
}

TEST_F(Sharing, AWriteInPlaceWithItsTimeSetBackIsNoticed) {
  put(live_ / "w", "aaaa");
  settle();
  take("one");
  struct stat before {};
  ASSERT_EQ(::stat((live_ / "w").c_str(), &before), 0);
  settle();
  int fd = ::open((live_ / "w").c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(fd, "bbbb", 4, 0), 4);
  struct timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::futimens(fd, times), 0);
  ::close(fd);
  EXPECT_TRUE(store_->inspect(ds("a"))->changed);
  EXPECT_EQ(text_of(take("two") / "w"), "bbbb");
}

TEST_F(Sharing, WritesInTheSameTickAreNoticed) {
  for (int i = 0; i < 40; ++i) {
    std::string word = std::to_string(100 + i);
    put(live_ / "w", word);
    EXPECT_EQ(text_of(take("s" + word) / "w"), word);
  }
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(text_of(store_->snapshot_path(snap("a@s" + std::to_string(100 + i))).value() / "w"),
              std::to_string(100 + i));
}

TEST_F(Sharing, StoresThroughAMapAreNoticed) {
  const std::size_t size = 1 << 20;
  put(live_ / "w", std::string(size, 'a'));
  int fd = ::open((live_ / "w").c_str(), O_RDWR);
  auto* map = static_cast<char*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  ASSERT_NE(map, MAP_FAILED);
  // The page stays mapped and dirty from one snapshot to the next; no call tells anyone.
  for (char c = 'b'; c < 'j'; ++c) {
    map[4096] = c;
    auto at = take(std::string("s") + c);
    EXPECT_EQ(text_of(at / "w")[4096], c);
    settle();
  }
  auto shown = text_of(store_->snapshot_path(snap("a@sb")).value() / "w");
  EXPECT_EQ(shown[4096], 'b');
  ::munmap(map, size);
  ::close(fd);
}

TEST_F(Sharing, FilesThatWereReplacedAreNoticed) {
  put(live_ / "w", "aaaa");
  settle();
  take("one");
  put(live_ / "new", "bbbb");
  struct stat before {};
  ASSERT_EQ(::stat((live_ / "w").c_str(), &before), 0);
  struct timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, (live_ / "new").c_str(), times, 0), 0);
  fs::rename(live_ / "new", live_ / "w");
  settle();
  EXPECT_EQ(text_of(take("two") / "w"), "bbbb");
}

TEST_F(Sharing, TreesKeepTheirShape) {
  put(live_ / "run.sh", "#!/bin/sh\n");
  ::chmod((live_ / "run.sh").c_str(), 0750);
  fs::create_directories(live_ / "empty/inside");
  ::chmod((live_ / "empty").c_str(), 0711);
  fs::create_symlink("run.sh", live_ / "link");
  fs::create_symlink("/etc/passwd", live_ / "outside");
  put(live_ / "one", "linked");
  fs::create_hard_link(live_ / "one", live_ / "two");
  int fd = ::open((live_ / "sparse").c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_EQ(::pwrite(fd, "x", 1, 64 << 20), 1);
  ::close(fd);
  ASSERT_EQ(::mkfifo((live_ / "pipe").c_str(), 0600), 0);
  take("one");

  put(live_ / "run.sh", "spoilt");
  fs::remove(live_ / "link");
  ASSERT_TRUE(store_->revert_live(ds("a")));
  live_ = store_->open_live(ds("a")).value();
  struct stat status {};
  ASSERT_EQ(::stat((live_ / "run.sh").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0750U);
  ASSERT_EQ(::stat((live_ / "empty").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0711U);
  EXPECT_TRUE(fs::is_directory(live_ / "empty/inside"));
  EXPECT_EQ(fs::read_symlink(live_ / "link"), "run.sh");
  EXPECT_EQ(fs::read_symlink(live_ / "outside"), "/etc/passwd");
  EXPECT_EQ(text_of(live_ / "two"), "linked");
  EXPECT_NE(inode(live_ / "one"), inode(live_ / "two"));
  ASSERT_EQ(::stat((live_ / "sparse").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, (64 << 20) + 1);
  EXPECT_LT(status.st_blocks * 512, 1 << 20);
  EXPECT_FALSE(fs::exists(live_ / "pipe"));
}

TEST_F(Sharing, SymlinksAreNeverFollowed) {
  put(folder_.path() / "secret/file", "secret");
  put(live_ / "folder/file", "mine");
  take("one");
  fs::remove_all(live_ / "folder");
  fs::create_directory_symlink(folder_.path() / "secret", live_ / "folder");
  auto two = take("two");
  EXPECT_TRUE(fs::is_symlink(two / "folder"));
  ASSERT_TRUE(store_->revert_live(ds("a")));
  ASSERT_TRUE(store_->open_live(ds("a")));
  ASSERT_TRUE(store_->destroy(ds("a")));
  EXPECT_EQ(text_of(folder_.path() / "secret/file"), "secret");
}

TEST_F(Sharing, SnapshotsAreReadonlyAndOutsideTheJobsFolder) {
  put(live_ / "w", "1");
  auto one = take("one");
  EXPECT_NE(one.string().find("/snapshots/"), std::string::npos);
  EXPECT_EQ(one.string().find(live_.string()), std::string::npos);
  struct stat status {};
  ASSERT_EQ(::stat((one / "w").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0222, 0U);
  ASSERT_TRUE(store_->set_readonly(ds("a"), true));
  ASSERT_EQ(::stat(live_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0222, 0U);
  ASSERT_TRUE(store_->set_readonly(ds("a"), false));
  ASSERT_EQ(::stat(live_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0200, 0200U);
}

TEST_F(Sharing, LiveFilesThatAPersonRemovedCanBeBroughtBack) {
  put(live_ / "w", "1");
  take("one");
  fs::remove_all(live_);
  EXPECT_TRUE(store_->inspect(ds("a"))->changed);
  auto opened = store_->open_live(ds("a"));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::not_found);
  ASSERT_TRUE(store_->revert_live(ds("a")));
  EXPECT_EQ(text_of(store_->open_live(ds("a")).value() / "w"), "1");
}

}  // namespace
}  // namespace zed::store
