// Two agents' data planes on loopback sockets, over simulated stores.

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

#include "net/connection.hpp"
#include "sim/memory_store.hpp"
#include "stream/frame.hpp"
#include "stream/throttle.hpp"
#include "stream/transfers.hpp"

namespace zed::stream {
namespace {

StepId step_id(std::uint8_t n) {
  StepId id;
  id.bytes[0] = n;
  return id;
}

DatasetName dataset_name(const char* text) {
  return DatasetName::parse(text).value();
}

/// One machine: a store and its end of the data plane.
struct Machine {
  Machine(net::Loop& loop, std::uint64_t seed, Millis meeting, Millis second_dials_after)
      : store(seed) {
    TransferOptions options;
    options.meeting = meeting;
    options.second_dials_after = second_dials_after;
    TransferHandlers handlers;
    handlers.progressed = [](const StepId&, Bytes, Bytes, Bytes) {};
    handlers.ended = [this](const StepId& step, Result<Outcome> result) {
      ended.emplace(step, std::move(result));
    };
    transfers = Transfers::open(loop, store, options, std::move(handlers)).value();
  }
  sim::MemoryStore store;
  std::unique_ptr<Transfers> transfers;
  std::map<StepId, Result<Outcome>> ended;
};

class TransfersTest : public testing::Test {
protected:
  void SetUp() override {
    Properties properties{{property::uuid, uuid.str()}, {property::type, "model"}};
    ASSERT_TRUE(source.store.create(dataset, properties));
    ASSERT_TRUE(source.store.write_file(dataset, "weights", std::string(3'000'000, 'w')));
    snapshot = take("v1", 1);
  }

  Snapshot take(const char* name, std::uint8_t id) {
    CheckpointId snapshot_id;
    snapshot_id.bytes[15] = id;
    return source.store
        .snapshot(SnapshotName::of(dataset, name).value(),
                  {{property::id, snapshot_id.str()}, {"loss", "0.5"}})
        .value();
  }

  Ticket ticket(const Snapshot& what, std::optional<CheckpointId> base = {}) {
    Ticket t;
    t.id.bytes[0] = ++tickets;
    t.dataset = t.target_dataset = dataset;
    t.uuid = uuid;
    t.source = NodeName::parse("server").value();
    t.target = NodeName::parse("workstation").value();
    t.source_address = source.transfers->endpoint().str();
    t.target_address = target.transfers->endpoint().str();
    t.base = base;
    t.snapshot = what.id;
    t.snapshot_name = what.name;
    return t;
  }

  PropertyChanges replica_properties() const {
    return {{property::uuid, uuid.str()}, {property::type, "model"}};
  }

  static void must_drop(Machine& machine, const Ticket& t) {
    ASSERT_TRUE(
        machine.store.destroy_snapshot(SnapshotName::of(t.dataset, t.snapshot_name).value()));
    ASSERT_TRUE(machine.store.destroy(t.dataset));
  }

  void start(const Ticket& t) {
    target.transfers->start({step_id(2), false, t, replica_properties()});
    source.transfers->start({step_id(1), true, t, {}});
  }

  void wait() {
    ASSERT_TRUE(loop.run_until(
        [&] { return source.ended.count(step_id(1)) > 0 && target.ended.count(step_id(2)) > 0; },
        seconds(20)));
  }

  Result<Outcome> received() { return target.ended.at(step_id(2)); }
  Result<Outcome> sent() { return source.ended.at(step_id(1)); }

  explicit TransfersTest(Millis second_dials_after = seconds(5))
      : source(loop, 1, seconds(3), second_dials_after),
        target(loop, 2, seconds(3), second_dials_after) {}

  net::Loop loop;
  Machine source;
  Machine target;
  DatasetName dataset = dataset_name("models/llama");
  DatasetId uuid{{9}};
  Snapshot snapshot;
  std::uint8_t tickets = 0;
};

/// Either end dials at once.
class EagerTest : public TransfersTest {
protected:
  EagerTest() : TransfersTest(Millis{0}) {}
};

TEST_F(TransfersTest, ASnapshotTakenByHandArrivesWithTheIdThatItsGuidGivesIt) {
  const Snapshot by_hand =
      source.store.snapshot(SnapshotName::of(dataset, "by-hand").value(), {}).value();
  start(ticket(by_hand));
  wait();
  ASSERT_TRUE(received()) << received().error().describe();
  const Snapshot there = *target.store.inspect(dataset).value().find(by_hand.id);
  EXPECT_EQ(there.properties.at(property::id), by_hand.id.str());
}

TEST_F(TransfersTest, ASnapshotArrivesWithItsProperties) {
  start(ticket(snapshot));
  wait();
  ASSERT_TRUE(received()) << received().error().describe();
  ASSERT_TRUE(sent()) << sent().error().describe();
  EXPECT_GE(received()->moved.value, 3'000'000);
  Dataset replica = target.store.inspect(dataset).value();
  ASSERT_EQ(replica.snapshots.size(), 1u);
  EXPECT_EQ(replica.snapshots[0].id, snapshot.id);
  EXPECT_EQ(replica.snapshots[0].properties.at("loss"), "0.5");
  EXPECT_EQ(replica.uuid, uuid);
  EXPECT_TRUE(replica.readonly);
}

TEST_F(TransfersTest, WhatAPersonSnapshottedTravelsUnderTheIdOfItsGuid) {
  start(ticket(snapshot));
  wait();
  source.ended.clear();
  target.ended.clear();
  const Snapshot by_hand =
      source.store.snapshot(SnapshotName::of(dataset, "by-hand").value(), {}).value();
  ASSERT_EQ(by_hand.id, id_from_guid(by_hand.guid));
  start(ticket(by_hand, snapshot.id));
  wait();
  ASSERT_TRUE(received()) << received().error().describe();
  EXPECT_EQ(received()->snapshot->id, by_hand.id);
  EXPECT_EQ(received()->snapshot->properties.at(property::id), by_hand.id.str());
}

TEST_F(TransfersTest, AnIncrementMovesOnlyWhatChanged) {
  start(ticket(snapshot));
  wait();
  ASSERT_TRUE(source.store.write_file(dataset, "notes", "short"));
  Snapshot second = take("v2", 2);
  source.ended.clear();
  target.ended.clear();
  start(ticket(second, snapshot.id));
  wait();
  ASSERT_TRUE(received()) << received().error().describe();
  EXPECT_LT(received()->moved.value, 10'000);
  EXPECT_EQ(target.store.live_files(dataset), source.store.live_files(dataset));
}

TEST_F(TransfersTest, TheOtherEndDialsWhenTheFirstCannot) {
  Ticket t = ticket(snapshot);
  t.target_address = "127.0.0.1:1";  // a laptop that cannot be dialled
  source.transfers->start({step_id(1), true, t, {}});
  target.transfers->start({step_id(2), false, t, replica_properties()});
  // The other end dials after five seconds; the meeting is bounded by three here.
  wait();
  EXPECT_FALSE(received());
  EXPECT_EQ(received().error().code, ErrorCode::unavailable);

  t.source_dials = false;
  source.ended.clear();
  target.ended.clear();
  start(t);
  wait();
  EXPECT_TRUE(received()) << received().error().describe();
}

TEST_F(TransfersTest, TheEndThatIsToldLaterIsWaitedFor) {
  for (bool source_dials : {true, false}) {
    Ticket t = ticket(snapshot);
    t.source_dials = source_dials;
    source.ended.clear();
    target.ended.clear();
    Machine& early = source_dials ? source : target;
    // It dials at once; the other one does not know the ticket yet.
    if (source_dials)
      source.transfers->start({step_id(1), true, t, {}});
    else
      target.transfers->start({step_id(2), false, t, replica_properties()});
    EXPECT_FALSE(loop.run_until([&] { return !early.ended.empty(); }, Millis{300}));
    if (source_dials)
      target.transfers->start({step_id(2), false, t, replica_properties()});
    else
      source.transfers->start({step_id(1), true, t, {}});
    wait();
    ASSERT_TRUE(received()) << received().error().describe();
    ASSERT_TRUE(sent()) << sent().error().describe();
    if (source_dials) must_drop(target, t);
  }
}

/// On a machine that is short of time the second end dials before it has read the first one's
/// words: each would wait on its own connection for the other.
TEST_F(EagerTest, BothEndsDialAtOnce) {
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    Ticket t = ticket(snapshot);
    t.source_dials = i % 2 == 0;
    source.ended.clear();
    target.ended.clear();
    start(t);
    wait();
    ASSERT_TRUE(received()) << received().error().describe();
    ASSERT_TRUE(sent()) << sent().error().describe();
    must_drop(target, t);
  }
}

TEST_F(TransfersTest, AWrongTicketStoresNothing) {
  Ticket at_target = ticket(snapshot);
  Ticket at_source = ticket(snapshot);
  target.transfers->start({step_id(2), false, at_target, replica_properties()});
  source.transfers->start({step_id(1), true, at_source, {}});
  wait();
  EXPECT_FALSE(received());
  EXPECT_FALSE(sent());
  EXPECT_TRUE(target.store.list().value().empty());
}

TEST_F(TransfersTest, GarbageAndSilenceDoNotDisturbATransfer) {
  std::vector<net::Fd> strangers;
  for (int i = 0; i < 20; ++i)
    net::connect_tcp(loop, target.transfers->endpoint(), {}, [&](Result<net::Fd> fd) {
      if (!fd) return;
      if (strangers.size() % 2 == 0)
        (void)!::write(fd->get(), "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27);
      strangers.push_back(std::move(*fd));
    });
  start(ticket(snapshot));
  wait();
  EXPECT_TRUE(received()) << received().error().describe();
}

TEST_F(TransfersTest, ACancelledTransferSaysSoAtBothEnds) {
  Ticket t = ticket(snapshot);
  t.max_rate = kibibytes(100);  // 30 s for the whole
  start(t);
  loop.run_until([] { return false; }, Millis{500});
  target.transfers->cancel(step_id(2));
  wait();
  EXPECT_EQ(received().error().code, ErrorCode::cancelled);
  EXPECT_FALSE(sent());
}

TEST_F(TransfersTest, ABrokenTransferResumesAndMovesOnlyTheRest) {
  Ticket t = ticket(snapshot);
  t.max_rate = mebibytes(2);
  start(t);
  loop.run_until([] { return false; }, Millis{800});
  source.transfers->cancel(step_id(1));
  wait();
  ASSERT_FALSE(received());
  source.ended.clear();
  target.ended.clear();
  start(ticket(snapshot));
  wait();
  ASSERT_TRUE(received()) << received().error().describe();
  EXPECT_LT(received()->moved.value, 2'900'000);
  EXPECT_EQ(target.store.live_files(dataset), source.store.live_files(dataset));
}

TEST_F(TransfersTest, AFullDiskIsSaidToBothEnds) {
  target.store.set_full(true);
  start(ticket(snapshot));
  wait();
  EXPECT_EQ(received().error().code, ErrorCode::no_space);
  EXPECT_EQ(sent().error().code, ErrorCode::no_space);
}

TEST(Throttle, KeepsTheRate) {
  Instant now{0};
  Throttle throttle(Bytes{1000}, now);
  std::int64_t sent = 0;
  while (now.ms < 10'000) {
    sent += 50;
    now = now + throttle.take({50}, now);
    if (throttle.take({0}, now).value == 0) now = now + Millis{1};
  }
  EXPECT_NEAR(static_cast<double>(sent), 10'000, 300);
}

TEST(Hello, RoundTripsAndRefusesAnythingElse) {
  StreamHello hello{End::receiver, {{1, 2, 3}}};
  std::string bytes = encode_hello(hello);
  auto as_bytes = [](const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
  };
  EXPECT_EQ(decode_hello(as_bytes(bytes)).value().ticket, hello.ticket);
  for (std::size_t i : {std::size_t{0}, std::size_t{4}, std::size_t{5}}) {
    std::string broken = bytes;
    broken[i] = '?';
    EXPECT_FALSE(decode_hello(as_bytes(broken)));
  }
  EXPECT_FALSE(decode_hello(as_bytes(bytes.substr(1))));
}

}  // namespace
}  // namespace zed::stream
