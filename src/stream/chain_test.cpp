// A snapshot through several nodes, each passing on what it still receives: real sockets on
// loopback, simulated stores.

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <fstream>

#include "base/clock.hpp"
#include "pki/testing.hpp"
#include "sim/memory_store.hpp"
#include "store/dir/disk.hpp"
#include "store/dir/test_folder.hpp"
#include "stream/frame.hpp"
#include "stream/pipeline.hpp"
#include "stream/transfers.hpp"

namespace zed::stream {
namespace {

constexpr std::int64_t model_size = 6'000'000;

StepId step_id(std::uint8_t n) {
  StepId id;
  id.bytes[0] = n;
  return id;
}

/// One node: its end of the data plane over a store that is its own or another's.
struct Node {
  Node(net::Loop& loop, std::uint8_t number_, const TransferOptions& options,
       env::Store* other = nullptr)
      : number(number_), memory(number_), store(other != nullptr ? *other : memory),
        name(NodeName::parse("n" + std::to_string(number_)).value()) {
    TransferHandlers handlers;
    handlers.progressed = [](const StepId&, Bytes, Bytes, Bytes) {};
    handlers.ended = [this](const StepId& step, Result<Outcome> result) {
      EXPECT_TRUE(ended.emplace(step, std::move(result)).second) << "ended twice";
    };
    transfers = Transfers::open(loop, store, options, std::move(handlers)).value();
  }
  std::uint8_t number;
  sim::MemoryStore memory;
  env::Store& store;
  NodeName name;
  std::map<StepId, Result<Outcome>> ended;
  std::unique_ptr<Transfers> transfers;  // last: its threads use the others
};

/// The source and so many others. Step 2n sends into node n, step 2n+1 receives at node n.
class Chain : public testing::Test {
protected:
  void SetUp() override { options.passing.joining = seconds(5); }
  void build(std::size_t count) {
    for (std::size_t i = 0; i <= count; ++i)
      add(i < others.size() ? others[i] : nullptr, i < tls.size() ? tls[i] : nullptr);
    const Properties properties{{property::uuid, uuid.str()}, {property::type, "model"}};
    ASSERT_TRUE(nodes[0].memory.create(dataset, properties));
    write("weights", model_size);
    snapshot = take("v1", 1);
  }
  void add(env::Store* store, std::shared_ptr<const net::Tls> certificate) {
    TransferOptions own = options;
    own.tls = std::move(certificate);
    nodes.emplace_back(loop, static_cast<std::uint8_t>(nodes.size()), own, store);
  }
  void write(const char* file, std::int64_t size) {
    std::string bytes(static_cast<std::size_t>(size), 'w');
    for (std::size_t i = 0; i < bytes.size(); i += 997)
      bytes[i] = static_cast<char>(i >> 10);
    ASSERT_TRUE(nodes[0].memory.write_file(dataset, file, bytes));
  }
  Snapshot take(const char* name, std::uint8_t id) {
    CheckpointId snapshot_id;
    snapshot_id.bytes[15] = id;
    return nodes[0]
        .memory
        .snapshot(SnapshotName::of(dataset, name).value(),
                  {{property::id, snapshot_id.str()}, {"loss", "0.5"}})
        .value();
  }
  TransferId ticket_id(std::size_t target) const {
    TransferId id;
    id.bytes[0] = static_cast<std::uint8_t>(target);
    id.bytes[1] = round;
    return id;
  }
  Ticket ticket(std::size_t from, std::size_t to) const {
    Ticket t;
    t.id = ticket_id(to);
    t.dataset = t.target_dataset = dataset;
    t.uuid = uuid;
    t.source = nodes[from].name;
    t.target = nodes[to].name;
    t.source_address = nodes[from].transfers->endpoint().str();
    t.target_address = nodes[to].transfers->endpoint().str();
    t.base = base;
    t.snapshot = snapshot.id;
    t.snapshot_name = snapshot.name;
    if (from == 0) t.max_rate = max_rate;
    if (to == slow_target) t.max_rate = mebibytes(4);
    return t;
  }
  static StepId send_step(std::size_t to) { return step_id(static_cast<std::uint8_t>(2 * to)); }
  static StepId receive_step(std::size_t at) {
    return step_id(static_cast<std::uint8_t>(2 * at + 1));
  }
  void start_send(std::size_t from, std::size_t to, bool passes = true) {
    TransferRequest send{send_step(to), true, ticket(from, to), {}};
    if (from > 0 && passes) send.through = ticket_id(from);
    nodes[from].transfers->start(std::move(send));
  }
  void start_receive(std::size_t from, std::size_t at, bool passes) {
    TransferRequest receive{receive_step(at),
                            false,
                            ticket(from, at),
                            {{property::uuid, uuid.str()}, {property::type, "model"}}};
    if (passes) receive.passes_to = ticket_id(at + 1);
    nodes[at].transfers->start(std::move(receive));
  }
  /// The whole chain; orders reach the nodes in this order or in the other.
  void start(bool backwards = false) {
    const std::size_t last = nodes.size() - 1;
    for (std::size_t i = 1; i <= last; ++i) {
      const std::size_t at = backwards ? last + 1 - i : i;
      if (backwards) start_send(at - 1, at);
      start_receive(at - 1, at, at != last);
      if (!backwards) start_send(at - 1, at);
    }
  }
  void forget() {
    for (Node& node : nodes)
      node.ended.clear();
    ++round;
  }
  bool run_until(const std::function<bool()>& done) { return loop.run_until(done, seconds(30)); }
  bool is_over(std::size_t target) const {
    return nodes[target].ended.count(receive_step(target)) > 0 &&
           nodes[target - 1].ended.count(send_step(target)) > 0;
  }
  void wait() {
    ASSERT_TRUE(run_until([this] {
      for (std::size_t i = 1; i < nodes.size(); ++i)
        if (!is_over(i)) return false;
      return true;
    }));
  }
  void wait_until_some_is_at(std::size_t node) {
    ASSERT_TRUE(run_until([&] {
      auto there = nodes[node].store.inspect(dataset);
      return there && there->receiving;
    }));
  }
  void pass_time(Millis time) {
    loop.run_until([] { return false; }, time);
  }
  const Result<Outcome>& received(std::size_t at) { return nodes[at].ended.at(receive_step(at)); }
  const Result<Outcome>& sent(std::size_t from, std::size_t to) {
    return nodes[from].ended.at(send_step(to));
  }
  void expect_equal(std::size_t node) {
    ASSERT_TRUE(received(node)) << received(node).error().describe();
    const Dataset there = nodes[node].store.inspect(dataset).value();
    ASSERT_NE(there.find(snapshot.id), nullptr);
    EXPECT_EQ(there.find(snapshot.id)->properties.at("loss"), "0.5");
    EXPECT_TRUE(there.readonly);
    if (&nodes[node].store != &nodes[node].memory) return;
    const SnapshotName name = SnapshotName::of(dataset, snapshot.name).value();
    EXPECT_EQ(nodes[node].memory.snapshot_files(name).value(),
              nodes[0].memory.snapshot_files(name).value());
  }

  net::Loop loop;
  TransferOptions options;
  std::vector<env::Store*> others;
  std::vector<std::shared_ptr<const net::Tls>> tls;
  std::deque<Node> nodes;
  DatasetName dataset = DatasetName::parse("models/llama").value();
  DatasetId uuid{{9}};
  Snapshot snapshot;
  std::optional<CheckpointId> base;
  std::optional<Bytes> max_rate;
  std::optional<std::size_t> slow_target;
  std::uint8_t round = 0;
};

TEST_F(Chain, ThreeCopiesLeaveTheSourceOnce) {
  build(3);
  start();
  wait();
  for (std::size_t node : {1, 2, 3}) {
    expect_equal(node);
    EXPECT_EQ(sent(node - 1, node)->moved, received(node)->moved);
  }
  EXPECT_LT(sent(0, 1)->moved.value, model_size + 100'000);
}

TEST_F(Chain, OrdersMayReachTheNodesInAnyOrder) {
  build(3);
  start(true);
  wait();
  for (std::size_t node : {1, 2, 3})
    expect_equal(node);
}

TEST_F(Chain, ThreeTakeTheTimeOfOne) {
  build(3);
  max_rate = mebibytes(4);
  const Instant before = monotonic_now();
  start();
  wait();
  const Millis took = monotonic_now() - before;
  expect_equal(3);
  EXPECT_GE(took, Millis{1200}) << "the rate of the first hop holds";
  EXPECT_LT(took, Millis{2 * 1430 + 1000}) << "one after another would take 4290";
}

TEST_F(Chain, AnIncrementGoesThroughToo) {
  build(3);
  start();
  wait();
  base = snapshot.id;
  write("notes", 5000);
  snapshot = take("v2", 2);
  forget();
  start();
  wait();
  for (std::size_t node : {1, 2, 3})
    expect_equal(node);
  EXPECT_LT(sent(0, 1)->moved.value, 50'000);
}

TEST_F(Chain, BeneathTls) {
  const pki::TestFleet fleet;
  for (const char* name : {"n0", "n1", "n2"})
    tls.push_back(fleet.tls(name, pki::Role::agent));
  build(2);
  start();
  wait();
  expect_equal(1);
  expect_equal(2);
}

TEST_F(Chain, ThroughAStoreOfFolders) {
  store::TestFolder folder;
  const auto dir = folder.open();
  others = {nullptr, dir.get()};
  build(2);
  start();
  wait();
  expect_equal(1);
  expect_equal(2);
  const auto there = dir->snapshot_path(SnapshotName::of(dataset, "v1").value()).value();
  EXPECT_EQ(store::text_of(there / "weights"), nodes[0].memory.live_files(dataset).at("weights"));
  nodes.clear();
}

TEST_F(Chain, ABrokenNodeInTheMiddleHurtsNobodyBeforeIt) {
  build(3);
  max_rate = mebibytes(6);
  start();
  wait_until_some_is_at(3);
  pass_time(Millis{300});
  nodes[2].transfers->cancel(receive_step(2));
  wait();
  expect_equal(1);
  EXPECT_FALSE(sent(1, 2));
  EXPECT_EQ(received(2).error().code, ErrorCode::cancelled);
  EXPECT_EQ(sent(2, 3).error().code, ErrorCode::unavailable);
  EXPECT_EQ(received(3).error().code, ErrorCode::unavailable);
  EXPECT_NE(received(3).error().describe().find("stopped arriving"), std::string::npos);

  // What arrived there is gone on with, from whoever has the snapshot now.
  forget();
  start_receive(1, 3, false);
  start_send(1, 3, false);
  ASSERT_TRUE(run_until([&] { return nodes[3].ended.count(receive_step(3)) > 0; }));
  expect_equal(3);
  EXPECT_LT(received(3)->moved.value, model_size - 500'000);
}

TEST_F(Chain, ACutAtTheSourceLeavesEachWithAPart) {
  build(2);
  max_rate = mebibytes(6);
  start();
  wait_until_some_is_at(2);
  pass_time(Millis{300});
  nodes[0].transfers->cancel(send_step(1));
  wait();
  EXPECT_FALSE(received(1));
  EXPECT_EQ(received(2).error().code, ErrorCode::unavailable);
  for (std::size_t node : {1, 2}) {
    forget();
    max_rate.reset();
    start_receive(0, node, false);
    start_send(0, node);
    ASSERT_TRUE(run_until([&] { return nodes[node].ended.count(receive_step(node)) > 0; }));
    expect_equal(node);
    EXPECT_LT(received(node)->moved.value, model_size - 500'000);
  }
}

/// A disk that does not move for as long as this lives.
class StuckDisk {
public:
  explicit StuckDisk(sim::MemoryStore& store) : store_(store) {
    store.set_fault_hook([this](std::string_view operation, const DatasetName&) {
      if (operation == "write") stuck_.wait(true);
      return std::optional<sim::StoreFault>();
    });
  }
  void release() {
    stuck_ = false;
    stuck_.notify_all();
  }
  ~StuckDisk() {
    release();
    store_.set_fault_hook(nullptr);
  }

private:
  sim::MemoryStore& store_;
  std::atomic<bool> stuck_{true};
};

/// The most that this kernel lets one connection's buffer grow to.
std::int64_t most_buffered(const char* direction) {
  std::ifstream file(std::string("/proc/sys/net/ipv4/tcp_") + direction);
  std::int64_t least = 0, usual = 0, most = 8'000'000;
  file >> least >> usual >> most;
  return most;
}

/// More than can be under way from a node to the next one whose disk is stuck.
std::int64_t most_between() {
  const auto blocks = static_cast<std::int64_t>(2 * BlockPipe::most_blocks * longest_data_frame);
  return most_buffered("wmem") + most_buffered("rmem") + blocks;
}

TEST_F(Chain, ATailThatStallsIsSplicedOut) {
  options.passing.lag = Millis{400};
  build(3);
  write("more", most_between() + 8'000'000);
  snapshot = take("v2", 2);
  StuckDisk disk(nodes[3].memory);
  start();
  ASSERT_TRUE(run_until(
      [&] { return is_over(1) && is_over(2) && nodes[2].ended.count(send_step(3)) > 0; }));
  expect_equal(1);
  expect_equal(2);
  EXPECT_EQ(sent(2, 3).error().code, ErrorCode::timeout);
  EXPECT_NE(sent(2, 3).error().describe().find("fell behind"), std::string::npos);
  EXPECT_TRUE(sent(1, 2)) << "the one before it is not to blame";
  disk.release();
  wait();
  EXPECT_FALSE(received(3));
}

TEST_F(Chain, ASlowTailIsSplicedOutAndGoesOnFromWhatItHas) {
  options.passing.lag = Millis{400};
  build(3);
  write("more", 40'000'000);
  snapshot = take("v2", 2);
  slow_target = 3;  // every block is waited for, none for long
  start();
  wait();
  expect_equal(1);
  expect_equal(2);
  EXPECT_EQ(sent(2, 3).error().code, ErrorCode::timeout);
  EXPECT_EQ(received(3).error().code, ErrorCode::unavailable);
  EXPECT_TRUE(sent(1, 2)) << "the one before it is not to blame";
  slow_target.reset();
  forget();
  start_receive(0, 3, false);
  start_send(0, 3, false);
  ASSERT_TRUE(run_until([&] { return nodes[3].ended.count(receive_step(3)) > 0; }));
  expect_equal(3);
  EXPECT_LT(received(3)->moved.value, 46'000'000 - 4'000'000);
}

TEST_F(Chain, ANextNodeThatDoesNotComeIsNotWaitedForLong) {
  options.passing.joining = Millis{200};
  build(2);
  start_receive(0, 1, true);
  start_send(0, 1);
  ASSERT_TRUE(run_until([&] { return is_over(1); }));
  expect_equal(1);
  // One that comes after all is told at once, or when nothing came to pass on.
  start_receive(1, 2, false);
  start_send(1, 2);
  wait();
  EXPECT_EQ(sent(1, 2).error().code, ErrorCode::unavailable);
  EXPECT_FALSE(received(2));
}

TEST_F(Chain, APartThatIsThereAlreadyIsNoChain) {
  build(2);
  max_rate = mebibytes(6);
  start_receive(0, 1, false);
  start_send(0, 1);
  wait_until_some_is_at(1);
  pass_time(Millis{300});
  nodes[0].transfers->cancel(send_step(1));
  ASSERT_TRUE(run_until([&] { return is_over(1); }));
  forget();
  start();
  wait();
  expect_equal(1);
  EXPECT_EQ(sent(1, 2).error().code, ErrorCode::conflict);
  EXPECT_EQ(received(2).error().code, ErrorCode::conflict);
}

TEST_F(Chain, ANextNodeWithAPartGoesOnByItself) {
  build(2);
  max_rate = mebibytes(6);
  start_receive(0, 2, false);
  start_send(0, 2);
  wait_until_some_is_at(2);
  pass_time(Millis{300});
  nodes[0].transfers->cancel(send_step(2));
  ASSERT_TRUE(run_until([&] { return nodes[2].ended.size() == 1; }));
  forget();
  start();
  wait();
  expect_equal(1);
  EXPECT_EQ(sent(1, 2).error().code, ErrorCode::conflict);
}

TEST_F(Chain, ACancelledHopSaysSoAndTheReceiveGoesOn) {
  build(2);
  max_rate = mebibytes(6);
  start();
  wait_until_some_is_at(2);
  nodes[1].transfers->cancel(send_step(2));
  wait();
  expect_equal(1);
  EXPECT_EQ(sent(1, 2).error().code, ErrorCode::cancelled);
  EXPECT_FALSE(received(2));
}

TEST_F(Chain, AHopWhoseReceiveIsCancelledBeforeItBeganEndsAtOnce) {
  build(2);
  start_receive(0, 1, true);
  start_receive(1, 2, false);
  start_send(1, 2);
  pass_time(Millis{200});
  nodes[1].transfers->cancel(receive_step(1));
  ASSERT_TRUE(run_until([&] { return is_over(2); }));
  EXPECT_EQ(sent(1, 2).error().code, ErrorCode::unavailable);
}

TEST_F(Chain, AnAgentThatEndsInTheMiddleOfItWaitsForNobody) {
  build(2);
  max_rate = mebibytes(1);
  start();
  wait_until_some_is_at(2);
  const Instant before = monotonic_now();
  nodes[1].transfers.reset();
  EXPECT_LT(monotonic_now() - before, seconds(5));
}

TEST(BlockPipe, AFullPipeIsWaitedForAndNoLonger) {
  BlockPipe pipe;
  for (std::size_t i = 0; i < BlockPipe::most_blocks; ++i)
    EXPECT_EQ(pipe.put_within(Block(1), Millis{1}), BlockPipe::Put::taken);
  EXPECT_EQ(pipe.put_within(Block(1), Millis{1}), BlockPipe::Put::full);
  EXPECT_TRUE(pipe.take());
  EXPECT_EQ(pipe.put_within(Block(1), Millis{1}), BlockPipe::Put::taken);
  pipe.end();
  EXPECT_EQ(pipe.put_within(Block(1), Millis{1}), BlockPipe::Put::refused);
}

}  // namespace
}  // namespace zed::stream
