#include "net/lobby.hpp"

#include <gtest/gtest.h>

namespace zed::net {
namespace {

using Out = std::optional<Lobby::Id>;

TEST(Lobby, WhileThereIsRoomNobodyGoes) {
  Lobby lobby(3);
  EXPECT_EQ(lobby.enter(1, "10.0.0.1"), Out());
  EXPECT_EQ(lobby.enter(2, "10.0.0.1"), Out());
  lobby.leave(1);
  lobby.leave(1);
  EXPECT_EQ(lobby.enter(3, "10.0.0.1"), Out());
  EXPECT_EQ(lobby.enter(4, "10.0.0.1"), Out());
  EXPECT_EQ(lobby.size(), 3U);
}

TEST(Lobby, AFloodShowsOutItsOwnOldest) {
  Lobby lobby(3);
  lobby.enter(1, "10.0.0.7");  // honest, and slow
  lobby.enter(2, "10.0.0.1");
  lobby.enter(3, "10.0.0.1");
  for (Lobby::Id id = 4; id < 10'000; ++id)
    ASSERT_EQ(lobby.enter(id, "10.0.0.1"), Out(id - 2));
  EXPECT_EQ(lobby.enter(10'000, "10.0.0.8"), Out(9'998)) << "another honest one gets in";
  EXPECT_EQ(lobby.size(), 3U);
}

TEST(Lobby, TwoFloodsTakeFromEachOther) {
  Lobby lobby(4);
  lobby.enter(1, "10.0.0.7");
  for (Lobby::Id id = 2; id < 1'000; ++id) {
    const Out out = lobby.enter(id, id % 2 == 0 ? "10.0.0.1" : "10.0.0.2");
    ASSERT_NE(out, Out(1));
  }
}

TEST(Lobby, OfManyWithOneEachTheOldestGoes) {
  Lobby lobby(2);
  lobby.enter(1, "10.0.0.3");
  lobby.enter(2, "10.0.0.2");
  EXPECT_EQ(lobby.enter(3, "10.0.0.1"), Out(1));
  EXPECT_EQ(lobby.enter(4, "10.0.0.4"), Out(2));
}

TEST(Lobby, AnIpv6NetworkIsOneSource) {
  Lobby lobby(3);
  lobby.enter(1, "fd00:0:0:2::1");
  lobby.enter(2, "fd00:0:0:1::1");
  lobby.enter(3, "fd00:0:0:1::2");
  EXPECT_EQ(lobby.enter(4, "fd00:0:0:1:ffff::3"), Out(2));
  // Mapped IPv4 addresses share their first half and are not one.
  lobby.clear();
  lobby.enter(5, "::ffff:10.0.0.1");
  lobby.enter(6, "::ffff:10.0.0.2");
  lobby.enter(7, "::ffff:10.0.0.2");
  EXPECT_EQ(lobby.enter(8, "::ffff:10.0.0.2"), Out(6));
  // A link-local address comes with the name of its link.
  lobby.clear();
  lobby.enter(9, "fe80::1%eth0");
  lobby.enter(10, "fe80::2%eth0");
  lobby.enter(11, "10.0.0.1");
  EXPECT_EQ(lobby.enter(12, "10.0.0.2"), Out(9));
}

}  // namespace
}  // namespace zed::net
