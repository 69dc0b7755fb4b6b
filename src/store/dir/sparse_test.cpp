// Files with holes on the way to another store: what arrives has the bytes and the holes.

#include <algorithm>
#include <cstdint>

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "store/dir/dir_staging.hpp"
#include "store/dir/folder_source.hpp"
#include "store/dir/test_folder.hpp"
#include "store/files/receiver.hpp"

namespace zed::store {
namespace {

disk::Fd open_path(const fs::path& path) {
  fs::create_directories(path);
  return disk::Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/// Bytes of the file that are no holes. Not st_blocks: ZFS counts those seconds later.
std::uint64_t data_in(const fs::path& file) {
  const disk::Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(fd);
  const std::uint64_t size = fs::file_size(file);
  std::uint64_t sum = 0;
  for (std::uint64_t at = 0; at < size;) {
    const auto data = disk::data_from(fd.get(), at, size);
    sum += data.end - data.begin;
    at = data.end;
  }
  return sum;
}
/// A system may round the ends of what is written differently in one order and the other.
constexpr std::uint64_t slack = std::uint64_t{32} << 10;

/// A file with `size` bytes, data where `writes` (offsets) say.
void make_sparse(const fs::path& file, std::uint64_t size, const std::vector<std::uint64_t>& writes,
                 char byte) {
  disk::Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  ASSERT_TRUE(fd);
  const std::string data(5000, byte);
  for (std::uint64_t at : writes)
    ASSERT_TRUE(disk::write_at(fd.get(), at, std::as_bytes(std::span(data.data(), data.size()))));
  ASSERT_TRUE(disk::set_size(fd.get(), size));
}

class Way {
public:
  explicit Way(const fs::path& folder)
      : from_(folder / "from"), to_(folder / "to"), source_(open_path(from_)) {
    disk::set_syncing(false);
    open_path(to_);
    snapshot_.bytes.fill(7);
  }
  const fs::path& from() const { return from_; }
  const fs::path& to() const { return to_; }

  Manifest manifest(const std::vector<std::string>& names) const {
    std::vector<Entry> entries;
    for (const std::string& name : names) {
      Entry entry;
      entry.path = name;
      entry.mode = 0644;
      entry.size = fs::file_size(from_ / name);
      entry.digest = digest_of(source_.get(), entry).value();
      entries.push_back(entry);
    }
    return Manifest::of(std::move(entries)).value();
  }
  /// Sends up to `limit` bytes of the stream, goes on from where the receiver says it can.
  bool send(const Manifest& manifest, std::uint64_t limit) const {
    auto staging = make_dir_staging(open_path(to_));
    SendPlan plan;
    plan.snapshot = snapshot_;
    plan.manifest = manifest;
    plan.resume_token = Receiver::token(*staging).value();
    auto sender = make_sender(std::move(plan), make_folder_source(open_path(from_))).value();
    Receiver receiver({snapshot_, std::nullopt, {}}, *staging);
    std::vector<std::byte> buffer(std::size_t{64} << 10);
    while (limit != 0) {
      const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), limit));
      const std::size_t got = sender->read(std::span(buffer).first(most)).value();
      if (got == 0) break;
      auto written = receiver.write(std::span(buffer).first(got));
      EXPECT_TRUE(written) << written.error().describe();
      limit -= got;
    }
    return receiver.finish().has_value();
  }

private:
  fs::path from_;
  fs::path to_;
  disk::Fd source_;
  CheckpointId snapshot_;
};

/// What an interrupted receive may have written beyond what it kept, and must not show in a hole.
void write_beyond(const fs::path& staged, std::uint64_t size) {
  if (!fs::exists(staged) || fs::file_size(staged) >= size) return;
  const std::uint64_t end = fs::file_size(staged);
  const std::string rest(static_cast<std::size_t>(std::min<std::uint64_t>(9000, size - end)), 'r');
  disk::Fd fd(::open(staged.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(disk::write_at(fd.get(), end, std::as_bytes(std::span(rest.data(), rest.size()))));
}

RC_GTEST_PROP(Sparse, InterruptedAnywhereItArrivesWithItsHoles, ()) {
  TestFolder folder;
  Way way(folder.path());
  constexpr std::uint64_t most = std::uint64_t{5} << 20;
  const auto size = *rc::gen::inRange<std::uint64_t>(20'000, most);
  const auto writes = *rc::gen::container<std::vector<std::uint64_t>>(
      rc::gen::inRange<std::uint64_t>(0, size - 6'000));
  make_sparse(way.from() / "a", size, writes, 'x');
  make_sparse(way.from() / "b", size / 2 + 1, {}, 'x');
  const auto manifest = way.manifest({"a", "b"});
  const auto cuts = *rc::gen::container<std::vector<std::uint64_t>>(
      3, rc::gen::inRange<std::uint64_t>(1, 2 * most));
  bool whole = false;
  for (std::uint64_t cut : cuts) {
    if (whole) break;
    whole = way.send(manifest, cut);
    if (!whole) write_beyond(way.to() / "0", size);
  }
  if (!whole) RC_ASSERT(way.send(manifest, UINT64_MAX));
  RC_ASSERT(text_of(way.to() / "0") == text_of(way.from() / "a"));
  RC_ASSERT(text_of(way.to() / "1") == text_of(way.from() / "b"));
  RC_ASSERT(data_in(way.to() / "0") <= data_in(way.from() / "a") + slack);
  RC_ASSERT(data_in(way.to() / "1") <= data_in(way.from() / "b") + slack);
}

TEST(Sparse, TheHashIsOfAllBytesHolesIncluded) {
  TestFolder folder;
  const disk::Fd files = open_path(folder.path() / "f");
  for (const std::vector<std::uint64_t>& writes :
       {std::vector<std::uint64_t>{}, {0}, {3'000'000}, {1'048'570}, {0, 2'000'000, 3'994'999}}) {
    make_sparse(folder.path() / "f/x", 4'000'001, writes, 'y');
    const std::string text = text_of(folder.path() / "f/x");
    Entry entry;
    entry.path = "x";
    entry.size = text.size();
    auto digest = digest_of(files.get(), entry);
    ASSERT_TRUE(digest);
    EXPECT_EQ(*digest, sha256(std::as_bytes(std::span(text.data(), text.size()))));
    // Shorter than it was, if only by a part of a hole.
    entry.size += 1;
    EXPECT_EQ(digest_of(files.get(), entry).error().code, ErrorCode::corrupt);
  }
}

TEST(Sparse, ACheckpointAndALiveCopyKeepHoles) {
  TestFolder folder;
  auto store = folder.open();
  ASSERT_TRUE(store->create(ds("a"), {}));
  auto live = store->open_live(ds("a")).value();
  make_sparse(live / "x", std::uint64_t{64} << 20, {10'000'000}, 'z');
  const std::string text = text_of(live / "x");
  ASSERT_TRUE(store->snapshot(snap("a@one"), {}));
  auto taken = store->snapshot_path(snap("a@one")).value() / "x";
  EXPECT_LE(data_in(taken), data_in(live / "x") + slack);
  EXPECT_EQ(text_of(taken), text);
  const std::uint64_t data = data_in(taken);
  ASSERT_TRUE(store->revert_live(ds("a")));
  auto again = store->open_live(ds("a")).value() / "x";
  EXPECT_LE(data_in(again), data + slack);
  EXPECT_EQ(text_of(again), text);
}

}  // namespace
}  // namespace zed::store
