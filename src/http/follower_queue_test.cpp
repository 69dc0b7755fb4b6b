#include "http/follower_queue.hpp"

#include <gtest/gtest.h>

namespace zed::http {
namespace {

FollowerQueue::Text text(const std::string& words) {
  return std::make_shared<const std::string>(words);
}

/// Writes everything: what a client would read.
std::string written(FollowerQueue& queue) {
  std::string all;
  for (; !queue.is_empty(); queue.pop())
    all += *queue.front() + " ";
  return all;
}

TEST(FollowerQueue, EachEventOnceAndInOrder) {
  FollowerQueue queue(Bytes{100});
  EXPECT_TRUE(queue.push(1, text("one")));
  EXPECT_TRUE(queue.push(2, text("two")));
  EXPECT_TRUE(queue.push(2, text("two again")));
  EXPECT_EQ(queue.last_number(), 2U);
  EXPECT_EQ(written(queue), "one two ");
}

TEST(FollowerQueue, WhatHappensWhileTheBacklogIsFetchedComesAfterIt) {
  FollowerQueue queue(Bytes{100});
  queue.expect_backlog(4);
  queue.say(text("head"));
  EXPECT_TRUE(queue.push(7, text("seven")));
  EXPECT_TRUE(queue.push(8, text("eight")));
  EXPECT_EQ(written(queue), "head ");
  for (std::uint64_t number : {4, 5, 6, 7})
    EXPECT_TRUE(queue.push_backlog(number, text("b" + std::to_string(number))));
  EXPECT_TRUE(queue.backlog_ends());
  EXPECT_EQ(written(queue), "b5 b6 b7 eight ");
}

TEST(FollowerQueue, WhatWaitedForTheBacklogCountsOnce) {
  FollowerQueue queue(Bytes{10});
  queue.expect_backlog(0);
  EXPECT_TRUE(queue.push(1, text("123456")));
  EXPECT_TRUE(queue.backlog_ends());
  EXPECT_EQ(written(queue), "123456 ");
  EXPECT_TRUE(queue.push(2, text("1234567890"))) << "the room is all there again";
}

TEST(FollowerQueue, IsBounded) {
  FollowerQueue queue(Bytes{10});
  EXPECT_TRUE(queue.push(1, text("12345")));
  EXPECT_FALSE(queue.push(2, text("123456")));
  EXPECT_EQ(queue.last_number(), 1U) << "where to follow again from";
  FollowerQueue early(Bytes{10});
  early.expect_backlog(0);
  EXPECT_TRUE(early.push(5, text("12345")));
  EXPECT_FALSE(early.push(6, text("123456"))) << "a backlog that never comes makes no room";
  EXPECT_FALSE(early.push_backlog(1, text("123456")));
}

TEST(FollowerQueue, LastWordsWaitForWhatIsBeingWrittenAlone) {
  FollowerQueue queue(Bytes{10});
  EXPECT_TRUE(queue.push(1, text("12")));
  EXPECT_TRUE(queue.push(2, text("34")));
  EXPECT_FALSE(queue.is_ending());
  queue.end_with(text("you are too slow"));
  EXPECT_TRUE(queue.is_ending());
  EXPECT_EQ(written(queue), "12 you are too slow ");
}

}  // namespace
}  // namespace zed::http
