#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "beam/outbox.hpp"

namespace zed::beam {
namespace {

TEST(Outbox, ReceiversTakeTurnsAndEachKeepsItsOrder) {
  Outbox box;
  box.add("large", {"L1 ", "L2 ", "L3 "});
  box.add("small", {"s1 "});
  box.add("large", {"M1 "});
  EXPECT_EQ(box.size(), 15U);
  EXPECT_EQ(box.take(1), "L1 ");
  EXPECT_EQ(box.take(1), "s1 ") << "it waits for one fragment, not for three";
  EXPECT_EQ(box.take(100), "L2 L3 M1 ");
  EXPECT_TRUE(box.empty());
  EXPECT_EQ(box.take(100), "");
}

TEST(Outbox, TakesWholeFramesUpToALimit) {
  Outbox box;
  box.add("a", {"1234", "1234", "1234"});
  EXPECT_EQ(box.take(9), "12341234");
  EXPECT_EQ(box.size(), 4U);
  EXPECT_EQ(box.take(0), "1234") << "at least one frame, or nobody would get on";
}

/// A letter a receiver, ascending digits a receiver's frames.
RC_GTEST_PROP(Outbox, LosesNothingAndReordersNothingOfOneReceiver, ()) {
  Outbox box;
  std::map<char, int> put;
  std::map<char, int> got;
  std::size_t bytes = 0;
  const auto take = [&](std::size_t most) {
    const std::string out = box.take(most);
    bytes -= out.size();
    for (std::size_t i = 0; i + 1 < out.size(); i += 2)
      RC_ASSERT(out[i + 1] == static_cast<char>('0' + got[out[i]]++ % 10));
  };
  for (const auto& [receiver, count] : *rc::gen::container<std::vector<std::pair<int, int>>>(
           rc::gen::pair(rc::gen::inRange(0, 4), rc::gen::inRange(0, 5)))) {
    const char letter = static_cast<char>('a' + receiver);
    std::vector<std::string> frames;
    for (int i = 0; i < count; ++i)
      frames.push_back({letter, static_cast<char>('0' + put[letter]++ % 10)});
    bytes += 2 * frames.size();
    box.add(std::string(1, letter), std::move(frames));
    if (*rc::gen::arbitrary<bool>()) take(*rc::gen::inRange<std::size_t>(0, 8));
    RC_ASSERT(box.size() == bytes);
  }
  take(SIZE_MAX);
  RC_ASSERT(box.empty());
  RC_ASSERT(put == got || std::all_of(put.begin(), put.end(), [&](const auto& entry) {
              return got[entry.first] == entry.second;
            }));
}

}  // namespace
}  // namespace zed::beam
