#pragma once
// Words that the contract's tests are written in.

#include <cstdint>
#include <gtest/gtest.h>

#include "contract/subject.hpp"
#include "core/dataset.hpp"

namespace zed::contract {

inline DatasetName ds(const std::string& text) {
  return DatasetName::parse(text).value();
}
inline SnapshotName snap(const std::string& text) {
  return SnapshotName::parse(text).value();
}
/// 128 bits that are easy to tell apart in a failure's text.
template <class Id> Id id(std::uint8_t n) {
  Id made;
  made.bytes.fill(n);
  return made;
}
inline CheckpointId checkpoint_id(std::uint8_t n) {
  return id<CheckpointId>(n);
}
inline DatasetId uuid(std::uint8_t n) {
  return id<DatasetId>(n);
}
inline Generation generation(std::uint64_t counter) {
  return {{1, id<ControllerId>(0xcc)}, counter};
}
inline Properties with_id(std::uint8_t n, Properties more = {}) {
  more[property::id] = checkpoint_id(n).str();
  return more;
}

/// The code of a failed call, or "ok".
template <class R> std::string code(const R& result) {
  return result ? "ok" : std::string(to_string(result.error().code));
}

/// For a test: true, or what the error says.
template <class R> testing::AssertionResult succeeded(const R& result) {
  if (result) return testing::AssertionSuccess();
  return testing::AssertionFailure() << result.error().describe();
}

#define EXPECT_OK(expression) EXPECT_TRUE(::zed::contract::succeeded(expression))
#define ASSERT_OK(expression) ASSERT_TRUE(::zed::contract::succeeded(expression))
#define EXPECT_REFUSED(expected_code, expression)                                                  \
  EXPECT_EQ(::zed::contract::code(expression), expected_code)

/// All suites of one store.
class StoreContract : public testing::TestWithParam<Factory> {
protected:
  void SetUp() override {
    subject_ = GetParam().make();
    if (!subject_) GTEST_SKIP() << GetParam().name << " is not to be had on this machine";
  }
  Subject& subject() { return *subject_; }
  env::Store& store() { return subject_->store(); }

  /// A job's dataset as dispatch makes it.
  void make_job(const std::string& name, std::uint8_t n = 1) {
    ASSERT_OK(store().create(ds(name), {{property::uuid, uuid(n).str()},
                                        {property::type, "job"},
                                        {property::generation, generation(1).str()},
                                        {property::timeline, generation(1).str()}}));
  }
  /// Commits `epoch-N` with id N and seq N on parent N-1 (none for 1).
  env::CommitRequest checkpoint(const std::string& name, std::uint8_t n, std::uint8_t u = 1) {
    env::CommitRequest request;
    request.dataset = ds(name);
    request.uuid = uuid(u);
    request.generation = generation(1);
    request.timeline = generation(1);
    if (n > 1) request.parent = checkpoint_id(static_cast<std::uint8_t>(n - 1));
    request.snapshot = "epoch-" + std::to_string(n);
    request.snapshot_properties =
        with_id(n, {{property::seq, std::to_string(n)}, {property::epoch, std::to_string(n)}});
    request.dataset_changes = {{property::checkpoint, "@" + request.snapshot}};
    return request;
  }
  std::vector<std::string> snapshots_of(const std::string& name) {
    std::vector<std::string> names;
    auto dataset = store().inspect(ds(name));
    if (!dataset) return {code(dataset)};
    for (const Snapshot& snapshot : dataset->snapshots)
      names.push_back(snapshot.name);
    return names;
  }

private:
  std::unique_ptr<Subject> subject_;
};

/// Two looks at one snapshot, but for the space that it takes, which may change with its
/// neighbours.
inline void expect_same(Snapshot a, const Snapshot& b) {
  a.used = b.used;
  EXPECT_EQ(a, b);
}

/// Sends a snapshot from one store to another, at most `limit` bytes of it. Ok, or the first error
/// of either end.
struct Moved {
  Result<Snapshot> snapshot = fail(ErrorCode::cancelled, "cut");
  std::uint64_t bytes = 0;    ///< that travelled
  std::uint64_t total = 0;    ///< of the whole stream
  std::uint64_t resumed = 0;  ///< skipped
};
Moved move(env::Store& from, const env::SendRequest& send, env::Store& to,
           const env::ReceiveRequest& receive, std::uint64_t limit = UINT64_MAX);

using Words = std::vector<std::string>;

}  // namespace zed::contract
