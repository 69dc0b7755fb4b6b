// The `files` stream and what a hostile one can do: nothing.

#include <array>
#include <cstring>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "store/files/receiver.hpp"
#include "store/files/sender.hpp"

namespace zed::store {
namespace {

Entry file(const std::string& path, const std::string& content) {
  Entry entry;
  entry.path = path;
  entry.mode = 0644;
  entry.size = content.size();
  entry.digest = sha256(std::as_bytes(std::span(content.data(), content.size())));
  return entry;
}
Entry folder(const std::string& path) {
  Entry entry;
  entry.path = path;
  entry.kind = EntryKind::folder;
  entry.mode = 0755;
  return entry;
}
Entry symlink(const std::string& path, const std::string& target) {
  Entry entry;
  entry.path = path;
  entry.kind = EntryKind::symlink;
  entry.target = target;
  return entry;
}
CheckpointId id(std::uint8_t n) {
  CheckpointId made;
  made.bytes.fill(n);
  return made;
}

std::string code(const Status& status) {
  return status ? "ok" : std::string(to_string(status.error().code));
}

/// Counts what reaches the staging area.
class CountingStaging final : public Staging {
public:
  Result<std::optional<Found>> find() override { return std::optional<Found>(); }
  Status clear() override { return {}; }
  Status keep_plan(std::span<const std::byte>) override {
    ++plans;
    return {};
  }
  Status append(std::size_t number, std::uint64_t offset,
                std::span<const std::byte> bytes) override {
    std::string& content = contents[number];
    content.resize(static_cast<std::size_t>(offset) + bytes.size());
    if (!bytes.empty()) std::memcpy(content.data() + offset, bytes.data(), bytes.size());
    return {};
  }
  Status read(std::size_t, std::uint64_t, std::span<std::byte>) override { return {}; }
  Status keep_offset(std::uint64_t offset) override {
    ++keeps;
    kept = offset;
    return {};
  }

  int plans = 0;
  int keeps = 0;
  std::uint64_t kept = 0;
  std::map<std::size_t, std::string> contents;
};

/// A stream that a sender without scruples makes: the hash fits the list, whatever is in it.
ByteVector forge(const ByteVector& delta, const Digest& manifest,
                 std::optional<std::uint64_t> announced = {}) {
  ByteVector bytes =
      encode(Preamble{id(1), std::nullopt, manifest, announced.value_or(delta.size()), 0});
  auto header = frame_header(FrameKind::delta, delta.size());
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), delta.begin(), delta.end());
  return bytes;
}

/// The hash that a manifest of these entries would have if it were legal.
Digest unchecked_digest(const std::vector<Entry>& entries) {
  ByteVector bytes;
  ByteWriter out(bytes);
  for (const Entry& entry : entries)
    encode(entry, out);
  return sha256(bytes);
}

Status receive(const ByteVector& bytes, CountingStaging& staging) {
  Receiver receiver({id(1), std::nullopt, {}}, staging);
  return receiver.write(bytes);
}

TEST(Path, RefusesWhatCouldClimbOut) {
  for (const std::string& path :
       {std::string(), std::string("/"), std::string("/etc"), std::string(".."), std::string("."),
        std::string("a/../b"), std::string("a/./b"), std::string("a//b"), std::string("a/"),
        std::string("a\0b", 3), std::string(256, 'x'), std::string(4096, '/')})
    EXPECT_FALSE(check_path(path)) << path;
  for (const char* path : {"a", "a/b", "...", "a..b", ".hidden", "with space", "\xff\xfe", "a\nb"})
    EXPECT_TRUE(check_path(path)) << path;
}

TEST(HostileStream, IsRefusedBeforeAnythingIsKept) {
  std::string x = "x";
  Entry set_id = file("a", x);
  set_id.mode = 04755;
  Entry huge = file("a", x);
  huge.size = largest_file + 1;
  const std::vector<std::vector<Entry>> lists = {
      {file("../escape", x)},
      {file("/etc/passwd", x)},
      {file("a/../../b", x)},
      {file("orphan/file", x)},
      {file("a", x), file("a", x)},
      {file("a", x), file("a/b", x)},
      {symlink("a", "/etc"), file("a/passwd", x)},
      {file("b", x), file("a", x)},
      {symlink("a", "")},
      {symlink("a", std::string("x\0y", 3))},
      {set_id},
      {huge},
  };
  for (const auto& entries : lists) {
    CountingStaging staging;
    auto received = receive(forge(encode(Delta{{}, entries}), unchecked_digest(entries)), staging);
    EXPECT_EQ(code(received), "corrupt") << entries.front().path;
    EXPECT_EQ(staging.plans, 0);
  }
  for (const std::string& path : {std::string("../x"), std::string("not-there")}) {
    CountingStaging staging;
    EXPECT_EQ(code(receive(forge(encode(Delta{{path}, {}}), unchecked_digest({})), staging)),
              "corrupt");
    EXPECT_EQ(staging.plans, 0);
  }
}

TEST(HostileStream, CannotMakeUsBufferMoreThanItSends) {
  CountingStaging staging;
  ByteVector nothing;
  EXPECT_EQ(code(receive(forge(nothing, {}, delta_limit + 1), staging)), "corrupt");
  EXPECT_EQ(code(receive(forge(nothing, {}, UINT64_MAX), staging)), "corrupt");
  EXPECT_EQ(code(receive(forge(nothing, {}, 0), staging)), "corrupt");
  ByteVector bytes = encode(Preamble{id(1), std::nullopt, {}, 100, 0});
  ByteVector oversized = bytes;
  auto header = frame_header(FrameKind::delta, frame_limit + 1);
  oversized.insert(oversized.end(), header.begin(), header.end());
  EXPECT_EQ(code(receive(oversized, staging)), "corrupt");
  ByteVector wrong_kind = bytes;
  header = frame_header(FrameKind::content, 100);
  wrong_kind.insert(wrong_kind.end(), header.begin(), header.end());
  EXPECT_EQ(code(receive(wrong_kind, staging)), "corrupt");
  EXPECT_EQ(staging.plans, 0);
}

TEST(HostileStream, CannotPassOffOneFileAsAnother) {
  Entry lying = file("b", "xy");
  lying.digest = file("a", "x").digest;
  std::vector<Entry> entries{file("a", "x"), lying};
  CountingStaging staging;
  EXPECT_EQ(code(receive(forge(encode(Delta{{}, entries}), unchecked_digest(entries)), staging)),
            "corrupt");
  Entry empty = file("a", "");
  empty.digest = file("a", "x").digest;
  EXPECT_EQ(code(receive(forge(encode(Delta{{}, {empty}}), unchecked_digest({empty})), staging)),
            "corrupt");
  EXPECT_EQ(staging.plans, 0);
}

TEST(HostileStream, OfAnotherVersionOrSnapshotIsNamed) {
  CountingStaging staging;
  ByteVector bytes = encode(Preamble{id(1), std::nullopt, {}, 4, 0});
  bytes[8] = std::byte{2};
  EXPECT_EQ(code(receive(bytes, staging)), "unsupported");
  EXPECT_EQ(code(receive(encode(Preamble{id(2), std::nullopt, {}, 4, 0}), staging)), "stale");
  EXPECT_EQ(code(receive(encode(Preamble{id(1), id(3), {}, 4, 0}), staging)), "stale");
  EXPECT_EQ(code(receive(encode(Preamble{id(1), std::nullopt, {}, 4, 99}), staging)), "stale");
  EXPECT_EQ(code(receive(ByteVector(preamble_size, std::byte{'x'}), staging)), "corrupt");
}

// ---- properties ---------------------------------------------------------------------------------

using Tree = std::map<std::string, std::string>;

/// A tree of up to three levels, files of up to three frames.
rc::Gen<Tree> any_tree() {
  auto name = rc::gen::map(rc::gen::inRange(0, 6),
                           [](int n) { return std::string(1, static_cast<char>('a' + n)); });
  auto path = rc::gen::map(
      rc::gen::container<std::vector<std::string>>(2, name),
      [](const std::vector<std::string>& parts) { return "d" + parts[0] + "/" + parts[1]; });
  // Empty, small, exactly one frame, and a little more.
  constexpr std::array<std::size_t, 6> sizes{0, 1, 1000, 2000, frame_limit, frame_limit + 1};
  auto content = rc::gen::map(
      rc::gen::pair(rc::gen::inRange('a', 'd'), rc::gen::inRange(std::size_t{0}, sizes.size())),
      [sizes](const std::pair<char, std::size_t>& p) {
        return std::string(sizes[p.second], p.first);
      });
  return rc::gen::container<Tree>(path, content);
}

Manifest manifest_of(const Tree& tree) {
  std::map<std::string, Entry> entries;
  for (const auto& [path, content] : tree) {
    entries[path] = file(path, content);
    std::string parent = path.substr(0, path.find('/'));
    entries[parent] = folder(parent);
  }
  std::vector<Entry> list;
  for (auto& [path, entry] : entries)
    list.push_back(entry);
  return Manifest::of(std::move(list)).value();
}

class TreeSource final : public ContentSource {
public:
  explicit TreeSource(Tree tree) : tree_(std::move(tree)) {}
  Status read(const Entry& entry, std::uint64_t offset, std::span<std::byte> buffer) override {
    const std::string& text = tree_.at(entry.path);
    std::memcpy(buffer.data(), text.data() + offset, buffer.size());
    return {};
  }

private:
  Tree tree_;
};

RC_GTEST_PROP(Stream, BringsEveryTreeToEveryOther, ()) {
  Tree base = *rc::gen::resize(8, any_tree());
  Tree target = *rc::gen::resize(8, any_tree());
  Manifest from = manifest_of(base);
  Manifest to = manifest_of(target);
  RC_ASSERT(apply(from, difference(from, to)).value() == to);
  RC_ASSERT(decode_delta(encode(difference(from, to))).value() == difference(from, to));

  auto sender =
      make_sender({id(1), id(2), from, to, ""}, std::make_unique<TreeSource>(target)).value();
  CountingStaging staging;
  Receiver receiver({id(1), id(2), from}, staging);
  std::vector<std::byte> buffer(3'333'333);
  std::int64_t moved = 0;
  while (std::size_t got = sender->read(buffer).value()) {
    moved += static_cast<std::int64_t>(got);
    RC_ASSERT(receiver.write(std::span(buffer).first(got)).has_value());
  }
  RC_ASSERT(moved == sender->total().value);
  auto arrival = receiver.finish().value();
  RC_ASSERT(arrival.manifest == to);
  for (std::size_t i = 0; i < arrival.delta.put.size(); ++i) {
    const Entry& entry = arrival.delta.put[i];
    if (entry.kind != EntryKind::file) continue;
    const ContentPlace& place = *arrival.places[i];
    std::string content = place.from == ContentPlace::From::base ? base.at(place.path)
                          : place.from == ContentPlace::From::earlier
                              ? target.at(place.path)
                              : staging.contents[place.staged_file];
    RC_ASSERT(content == target.at(entry.path));
  }
}

TEST(Stream, KeepsAllButAnEighthOfWhatHasArrived) {
  const Tree target{{"weights", std::string(std::size_t{40} << 20, 'w')}};
  const Manifest to = manifest_of(target);
  auto sender =
      make_sender({id(1), id(2), Manifest(), to, ""}, std::make_unique<TreeSource>(target)).value();
  CountingStaging staging;
  Receiver receiver({id(1), id(2), Manifest()}, staging);
  std::vector<std::byte> buffer(frame_limit);
  std::uint64_t arrived = 0;
  while (std::size_t got = sender->read(buffer).value()) {
    ASSERT_TRUE(receiver.write(std::span(buffer).first(got)));
    arrived += got;
    EXPECT_LE(arrived - staging.kept, arrived / 8 + 3 * frame_limit) << "after " << arrived;
  }
  ASSERT_TRUE(receiver.finish());
  EXPECT_LE(staging.keeps, 25) << "each costs a sync";
}

RC_GTEST_PROP(Layout, EveryFrameBorderHasOneOffset, (std::vector<std::uint16_t> sizes)) {
  std::vector<std::uint64_t> scaled;
  for (std::uint16_t size : sizes)
    scaled.push_back(std::uint64_t{size} * 100);
  BodyLayout layout(1234, scaled);
  for (std::size_t i = 0; i < scaled.size(); ++i)
    for (std::uint64_t done = 0; done < scaled[i]; done += frame_limit) {
      Position position{i, done};
      RC_ASSERT(layout.position_of(layout.offset_of(position)) == layout.normal(position));
    }
  RC_ASSERT(!layout.position_of(3).has_value());
  RC_ASSERT(!layout.position_of(layout.total()).has_value());
}

TEST(Token, RoundTripsAndRefusesTheRest) {
  ResumeToken token{id(1), id(2), sha256({}), 12345};
  auto back = ResumeToken::parse(token.str()).value();
  EXPECT_EQ(back.str(), token.str());
  token.base.reset();
  EXPECT_EQ(ResumeToken::parse(token.str())->base, std::nullopt);
  for (const std::string& text : {std::string(), std::string("files-2/"), token.str() + "x",
                                  token.str() + "/1", std::string(300, 'x')})
    EXPECT_FALSE(ResumeToken::parse(text)) << text;
}

}  // namespace
}  // namespace zed::store
