// The data plane beneath TLS: snapshots arrive, and only from and at the machines of the ticket.

#include <gtest/gtest.h>

#include "net/connection.hpp"
#include "pki/testing.hpp"
#include "sim/memory_store.hpp"
#include "stream/frame.hpp"
#include "stream/transfers.hpp"

namespace zed::stream {
namespace {

using pki::Role;
using pki::TestFleet;

StepId step_id(std::uint8_t n) {
  StepId id;
  id.bytes[0] = n;
  return id;
}

struct Machine {
  Machine(net::Loop& owner, std::uint64_t seed, std::shared_ptr<const net::Tls> tls)
      : loop(owner), store(seed) {
    TransferOptions options;
    options.meeting = seconds(2);
    options.tls = std::move(tls);
    TransferHandlers handlers;
    handlers.progressed = [](const StepId&, Bytes, Bytes, Bytes) {};
    handlers.ended = [this](const StepId&, Result<Outcome> result) { ended = std::move(result); };
    transfers = Transfers::open(loop, store, options, std::move(handlers)).value();
  }
  net::Loop& loop;
  sim::MemoryStore store;
  std::optional<Result<Outcome>> ended;
  std::unique_ptr<Transfers> transfers;
};

struct Plane {
  Plane(std::shared_ptr<const net::Tls> source_tls, std::shared_ptr<const net::Tls> target_tls)
      : source(loop, 1, std::move(source_tls)), target(loop, 2, std::move(target_tls)) {
    Properties properties{{property::uuid, uuid.str()}, {property::type, "model"}};
    EXPECT_TRUE(source.store.create(dataset, properties));
    EXPECT_TRUE(source.store.write_file(dataset, "weights", std::string(5'000'000, 'w')));
    CheckpointId id;
    id.bytes[15] = 1;
    snapshot =
        source.store.snapshot(SnapshotName::of(dataset, "v1").value(), {{property::id, id.str()}})
            .value();
  }

  Ticket ticket(bool source_dials) {
    Ticket t;
    t.id.bytes[0] = 7;
    t.dataset = t.target_dataset = dataset;
    t.uuid = uuid;
    t.source = NodeName::parse("server").value();
    t.target = NodeName::parse("workstation").value();
    t.source_address = source.transfers->endpoint().str();
    t.target_address = target.transfers->endpoint().str();
    t.source_dials = source_dials;
    t.snapshot = snapshot.id;
    t.snapshot_name = snapshot.name;
    return t;
  }

  void run(const Ticket& t) {
    target.transfers->start(
        {step_id(2), false, t, {{property::uuid, uuid.str()}, {property::type, "model"}}});
    source.transfers->start({step_id(1), true, t, {}});
    EXPECT_TRUE(loop.run_until([&] { return source.ended && target.ended; }, seconds(20)));
  }

  bool arrived() { return target.ended && *target.ended; }

  net::Loop loop;
  Machine source, target;
  DatasetName dataset = DatasetName::parse("models/llama").value();
  DatasetId uuid{{9}};
  Snapshot snapshot;
};

TEST(TlsTransfers, ASnapshotArrivesWhoeverDials) {
  const TestFleet fleet;
  for (const bool source_dials : {true, false}) {
    Plane plane(fleet.tls("server", Role::agent), fleet.tls("workstation", Role::agent));
    plane.run(plane.ticket(source_dials));
    ASSERT_TRUE(plane.arrived()) << (*plane.target.ended).error().describe();
    ASSERT_TRUE(*plane.source.ended) << (*plane.source.ended).error().describe();
    EXPECT_GE((*plane.target.ended)->moved.value, 5'000'000);
    EXPECT_NE(plane.target.store.inspect(plane.dataset)->find(plane.snapshot.id), nullptr);
  }
}

TEST(TlsTransfers, AnErrorOfTheOtherEndArrivesBeneathTlsToo) {
  const TestFleet fleet;
  Plane plane(fleet.tls("server", Role::agent), fleet.tls("workstation", Role::agent));
  Ticket t = plane.ticket(true);
  t.snapshot.bytes[3] = 99;
  plane.run(t);
  ASSERT_FALSE(plane.arrived());
  EXPECT_NE((*plane.target.ended).error().describe().find("is not here any more"),
            std::string::npos)
      << (*plane.target.ended).error().describe();
}

TEST(TlsTransfers, AnotherMachineOfTheFleetWithTheTicketGetsNothing) {
  const TestFleet fleet;
  for (const bool source_dials : {true, false}) {
    Plane plane(fleet.tls("server", Role::agent), fleet.tls("laptop", Role::agent));
    plane.run(plane.ticket(source_dials));
    EXPECT_FALSE(plane.arrived());
    EXPECT_FALSE(*plane.source.ended);
    EXPECT_FALSE(plane.target.store.inspect(plane.dataset));
  }
}

TEST(TlsTransfers, AnotherFleetAndPlainConnectionsGetNothing) {
  const TestFleet fleet;
  const TestFleet rogue;
  for (const auto& tls :
       {rogue.tls("workstation", Role::agent),
        fleet.with_chain_of(rogue, "workstation", Role::agent), std::shared_ptr<net::Tls>()}) {
    Plane plane(fleet.tls("server", Role::agent), tls);
    plane.run(plane.ticket(true));
    EXPECT_FALSE(plane.arrived());
    EXPECT_FALSE(*plane.source.ended);
  }
}

TEST(TlsTransfers, SilentConnectionsMakeRoomForOneWithATicket) {
  const TestFleet fleet;
  Plane plane(fleet.tls("server", Role::agent), fleet.tls("workstation", Role::agent));
  std::vector<net::Fd> silent;
  for (int i = 0; i < 200; ++i)
    net::connect_tcp(plane.loop, plane.target.transfers->endpoint(), {},
                     [&](Result<net::Fd> fd) { silent.push_back(std::move(*fd)); });
  ASSERT_TRUE(plane.loop.run_until([&] { return silent.size() == 200; }, seconds(20)));
  plane.run(plane.ticket(true));
  EXPECT_TRUE(plane.arrived());
}

}  // namespace
}  // namespace zed::stream
