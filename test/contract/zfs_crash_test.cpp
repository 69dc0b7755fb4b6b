// kill -9 of the agent before each of its changes to a pool, and while a stream is under way.
// Skipped where there is no OpenZFS.

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "agent/fork_plan.hpp"
#include "contract/zfs_crash.hpp"
#include "contract/zfs_fixture.hpp"

namespace zed::contract {
namespace {

/// More than any operation has changes.
constexpr int most_changes = 40;

/// Two stores, and a small model in the first.
class ZfsCrash : public testing::Test {
protected:
  void SetUp() override {
    from_ = make_zfs();
    to_ = make_zfs();
    if (!from_ || !to_) GTEST_SKIP() << "ZED_TEST_ZFS_ROOT names no pool";
    ASSERT_OK(from().create(model, {{property::uuid, uuid(5).str()}}));
    from_->write(model, "weights.bin", noise(300'000, 1));
    from_->write(model, "config.json", "{}");
    ASSERT_OK(from().snapshot({model, "v1"}, with_id(1)));
    from_->write(model, "weights.bin", noise(300'000, 2));
    from_->remove(model, "config.json");
    ASSERT_OK(from().snapshot({model, "v2"}, with_id(2)));
  }
  env::Store& from() { return from_->store(); }
  env::Store& to() { return to_->store(); }

  static env::SendRequest sending(std::uint8_t n, StreamKind kind, std::string token = {}) {
    env::SendRequest request{model, checkpoint_id(n), {}, kind, std::move(token)};
    if (n > 1) request.base = checkpoint_id(static_cast<std::uint8_t>(n - 1));
    return request;
  }
  static env::ReceiveRequest receiving(std::uint8_t n, StreamKind kind) {
    env::ReceiveRequest request;
    request.dataset = model;
    if (n > 1) request.base = checkpoint_id(static_cast<std::uint8_t>(n - 1));
    request.snapshot = "v" + std::to_string(n);
    request.snapshot_properties = with_id(n, {{"note", "tab\tand " + std::to_string(n)}});
    request.dataset_changes = {{property::uuid, uuid(5).str()}, {property::type, "model"}};
    request.kind = kind;
    return request;
  }
  Status bring(env::Store& to, std::uint8_t n, StreamKind kind, std::string token = {}) {
    auto moved = move(from(), sending(n, kind, std::move(token)), to, receiving(n, kind));
    return moved.snapshot ? Status() : Status(fail(moved.snapshot.error()));
  }
  /// Snapshot n is there with all that was promised.
  void expect_whole(std::uint8_t n, StreamKind kind) {
    auto replica = to().inspect(model);
    ASSERT_OK(replica);
    EXPECT_FALSE(replica->receiving);
    EXPECT_TRUE(replica->readonly);
    EXPECT_FALSE(replica->changed);
    EXPECT_EQ(replica->properties,
              (Properties{{property::uuid, uuid(5).str()}, {"type", "model"}}));
    ASSERT_EQ(replica->snapshots.size(), n);
    EXPECT_EQ(replica->snapshots.back().properties, receiving(n, kind).snapshot_properties);
    SnapshotName name{model, "v" + std::to_string(n)};
    EXPECT_TRUE(from_->snapshot(name) == to_->snapshot(name)) << name.str();
  }
  bool counts(std::uint8_t n) {
    auto replica = to().inspect(model);
    return replica && replica->find(checkpoint_id(n)) != nullptr;
  }
  /// Kills the receiver of snapshot n before each of its changes. After each time the snapshot
  /// counts wholly or not at all, and a new stream brings it without anything being cleared away.
  void kill_at_each_change(std::uint8_t n, StreamKind kind) {
    int before_the_end = 0;
    for (int allowed = 0; allowed < most_changes; ++allowed) {
      SCOPED_TRACE("killed before change " + std::to_string(allowed));
      auto ending = until_killed(
          *to_, allowed, [&](env::Store& store) -> Status { return bring(store, n, kind); });
      if (!counts(n)) {
        ++before_the_end;
        auto token = to().resume_token(model, checkpoint_id(n));
        ASSERT_OK(token);
        ASSERT_OK(bring(to(), n, kind, *token));
      }
      ASSERT_NO_FATAL_FAILURE(expect_whole(n, kind));
      if (ending == Ending::done) {
        EXPECT_GE(before_the_end, 1);
        return;
      }
      ASSERT_NO_FATAL_FAILURE(take_back(n));
    }
    ADD_FAILURE() << "it has more than " << most_changes << " changes";
  }

  void take_back(std::uint8_t n) {
    if (n == 1) {
      ASSERT_OK(to().destroy(model));
    } else {
      ASSERT_OK(to().destroy_snapshot({model, "v" + std::to_string(n)}));
      ASSERT_OK(to().revert_live(model));
    }
  }

  inline static const DatasetName model = ds("models/llama");
  std::unique_ptr<ZfsSubject> from_;
  std::unique_ptr<ZfsSubject> to_;
};

TEST_F(ZfsCrash, BeforeEachChangeOfAFullZfsStream) {
  kill_at_each_change(1, StreamKind::zfs);
}

TEST_F(ZfsCrash, BeforeEachChangeOfAnIncrementAsAZfsStream) {
  ASSERT_OK(bring(to(), 1, StreamKind::zfs));
  kill_at_each_change(2, StreamKind::zfs);
}

TEST_F(ZfsCrash, BeforeEachChangeOfAFullFilesStream) {
  kill_at_each_change(1, StreamKind::files);
}

TEST_F(ZfsCrash, BeforeEachChangeOfAnIncrementAsAFilesStream) {
  ASSERT_OK(bring(to(), 1, StreamKind::files));
  kill_at_each_change(2, StreamKind::files);
}

/// An agent that dies in the middle of a stream leaves `zfs receive` behind, which ends by itself
/// and keeps what it got; the next agent goes on.
TEST_F(ZfsCrash, S814_AReceiveWhoseAgentWasKilledGoesOn) {
  constexpr StreamKind kind = StreamKind::zfs;
  auto ending = until_killed(*to_, most_changes, [&](env::Store& store) -> Status {
    ZED_TRY(auto sender, from().send(sending(1, kind)));
    ZED_TRY(auto receiver, store.receive(receiving(1, kind)));
    std::vector<std::byte> buffer(200'000);
    for (std::size_t got = 0; got < buffer.size();) {
      ZED_TRY(std::size_t n, sender->read(std::span(buffer).subspan(got)));
      if (n == 0) break;
      got += n;
    }
    ZED_CHECK(receiver->write(buffer));
    ::kill(::getpid(), SIGKILL);
    return {};
  });
  ASSERT_EQ(ending, Ending::killed);
  std::string token;
  for (int i = 0; i < 3000 && token.empty(); ++i) {
    auto asked = to().resume_token(model, checkpoint_id(1));
    if (asked) token = *asked;
    if (token.empty()) ::usleep(20'000);
  }
  ASSERT_NE(token, "");
  ASSERT_OK(bring(to(), 1, kind, token));
  expect_whole(1, kind);
}

// ---- a frozen sender ----------------------------------------------------------------------------

/// Processes of ours that run `zfs send`.
std::vector<pid_t> our_senders() {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& process : std::filesystem::directory_iterator("/proc", error)) {
    std::string name = process.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream stat(process.path() / "stat");
    std::string pid;
    std::string comm;
    std::string state;
    pid_t parent = 0;
    stat >> pid >> comm >> state >> parent;
    std::string words;
    std::getline(std::ifstream(process.path() / "cmdline"), words, '\n');
    bool sends = words.find("send") != std::string::npos;
    if (parent == ::getpid() && comm == "(zfs)" && sends) found.push_back(std::stoi(name));
  }
  return found;
}

TEST_F(ZfsCrash, S814_AFrozenSenderBlocksNeitherEnd) {
  constexpr StreamKind kind = StreamKind::zfs;
  auto sender = from().send(sending(1, kind)).value();
  auto receiver = to().receive(receiving(1, kind)).value();
  std::vector<std::byte> buffer(150'000);
  for (std::size_t got = 0; got < buffer.size();) {
    auto n = sender->read(std::span(buffer).subspan(got)).value();
    ASSERT_NE(n, 0U);
    got += n;
  }
  auto senders = our_senders();
  ASSERT_EQ(senders.size(), 1U);
  ASSERT_EQ(::kill(senders[0], SIGSTOP), 0);
  ASSERT_OK(receiver->write(buffer));
  // The receiver's agent has waited long enough.
  receiver.reset();
  auto token = to().resume_token(model, checkpoint_id(1)).value();
  ASSERT_NE(token, "");
  ASSERT_OK(bring(to(), 1, kind, token));
  expect_whole(1, kind);
  // So has the sender's: what is frozen does not outlive its stream.
  sender.reset();
  EXPECT_TRUE(our_senders().empty());
}

// ---- a fork -------------------------------------------------------------------------------------

agent::Intent fork_at_two(const DatasetName& job) {
  agent::Intent intent;
  intent.dataset = job;
  intent.uuid = uuid(1);
  intent.base = checkpoint_id(2);
  intent.base_name = "epoch-2";
  intent.branch = ds("jobs/train-001.left");
  intent.branch_uuid = uuid(9);
  intent.changes = {{property::uuid, uuid(1).str()},
                    {property::type, "job"},
                    {property::timeline, generation(2).str()},
                    {property::generation, generation(2).str()}};
  return intent;
}

std::optional<Dataset> seen(env::Store& store, const DatasetName& name) {
  auto dataset = store.inspect(name);
  return dataset ? std::optional(std::move(*dataset)) : std::nullopt;
}

/// As the agent does it: each move follows from what is there.
Status go_on(env::Store& store, const agent::Intent& intent) {
  for (int moves = 0; moves < most_changes; ++moves) {
    agent::ForkSight sight{seen(store, intent.dataset), seen(store, intent.branch)};
    ZED_TRY(auto move, agent::next_move(intent, sight));
    if (!move.request) return {};
    ZED_CHECK(env::perform(store, *move.request));
  }
  return fail(ErrorCode::internal, "a fork without an end");
}

class ZfsForkCrash : public testing::Test {
protected:
  void SetUp() override {
    zfs_ = make_zfs();
    if (!zfs_) GTEST_SKIP() << "ZED_TEST_ZFS_ROOT names no pool";
    ASSERT_OK(store().create(job, {{property::uuid, uuid(1).str()}, {property::type, "job"}}));
    for (std::uint8_t n = 1; n <= 3; ++n) {
      zfs_->write(job, "w", std::to_string(n));
      ASSERT_OK(store().snapshot({job, "epoch-" + std::to_string(n)}, with_id(n)));
    }
    for (const Snapshot& snapshot : store().inspect(job)->snapshots)
      guids_.push_back(snapshot.guid);
  }
  env::Store& store() { return zfs_->store(); }

  const DatasetName job = ds("jobs/train-001");
  std::unique_ptr<ZfsSubject> zfs_;
  std::vector<std::uint64_t> guids_;
};

/// One change an agent: each is killed before its second.
TEST_F(ZfsForkCrash, AForkWhoseAgentIsKilledAfterEachChangeIsFinished) {
  auto intent = fork_at_two(job);
  ASSERT_OK(store().set(job, {{property::intent, agent::intent_text(intent)}}));
  int killed = 0;
  while (killed < most_changes && until_killed(*zfs_, 1, [&](env::Store& store) {
                                    return go_on(store, intent);
                                  }) == Ending::killed)
    ++killed;
  EXPECT_GE(killed, 5);
  EXPECT_LT(killed, most_changes);
  auto main = store().inspect(job).value();
  EXPECT_EQ(main.uuid, uuid(1));
  EXPECT_EQ(main.timeline(), generation(2));
  EXPECT_TRUE(main.readonly);
  ASSERT_EQ(main.snapshots.size(), 2U);
  EXPECT_EQ(main.snapshots[0].guid, guids_.at(0));
  EXPECT_EQ(main.snapshots[1].guid, guids_.at(1));
  EXPECT_EQ(main.snapshots[1].id, checkpoint_id(2));
  EXPECT_EQ(zfs_->live(job), (Files{{"w", "2"}}));
  auto branch = store().inspect(intent.branch).value();
  EXPECT_EQ(branch.uuid, uuid(9));
  EXPECT_TRUE(branch.readonly);
  EXPECT_EQ(branch.property(property::intent), "");
  ASSERT_EQ(branch.snapshots.size(), 1U);
  EXPECT_EQ(branch.snapshots[0].guid, guids_.at(2));
  EXPECT_EQ(zfs_->snapshot({intent.branch, "epoch-3"}), (Files{{"w", "3"}}));
}

}  // namespace
}  // namespace zed::contract
