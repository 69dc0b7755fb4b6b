// Who may ask an agent what, and that each question is answered once.

#include <gtest/gtest.h>

#include "agent/bench_test.hpp"

namespace zed::agent::test {
namespace {

AskNode list(std::uint64_t request) {
  return {request, ListFiles{ds("jobs/train"), "", "", Bytes{}, ""}};
}

TEST(Questions, AreAnsweredUnderTheNumberOfWhoAsked) {
  Bench b;
  b.start();
  b.say(list(42));
  ASSERT_EQ(b.questions.size(), 1u);
  FileList files;
  files.entries.push_back({"train.py", FileKind::file, Bytes{3}, 0644, {}, "", ""});
  b.feed(QuestionAnswered{b.questions.front().id, NodeReply(files)});
  b.feed(QuestionAnswered{b.questions.front().id, NodeReply(files)});  // nobody waits any more
  auto answers = b.said<NodeAnswer>();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers.front().request, 42u);
  EXPECT_EQ(std::get<FileList>(*answers.front().reply), files);
}

TEST(Questions, AnErrorIsAnAnswer) {
  Bench b;
  b.start();
  b.say(list(7));
  b.feed(QuestionAnswered{b.questions.front().id, fail(ErrorCode::not_found, "no such file")});
  ASSERT_EQ(b.said<NodeAnswer>().size(), 1u);
  EXPECT_EQ(b.said<NodeAnswer>().front().error->code, ErrorCode::not_found);
  EXPECT_FALSE(b.said<NodeAnswer>().front().reply);
}

TEST(Questions, HaveABound) {
  Bench b;
  b.start();
  for (std::uint64_t i = 0; i < 65; ++i)
    b.say(list(i));
  EXPECT_EQ(b.questions.size(), 64u);
  ASSERT_EQ(b.said<NodeAnswer>().size(), 1u);
  EXPECT_EQ(b.said<NodeAnswer>().front().error->code, ErrorCode::busy);
}

TEST(Questions, ACommandNeedsTheAttemptThatRuns) {
  Bench b;
  b.start();
  b.run_job();
  StartCommand start;
  start.job = b.job_id();
  start.generation = gen(1);
  start.argv = {"nvidia-smi"};
  b.say(AskNode{1, start});
  EXPECT_EQ(b.questions.size(), 1u);
  start.generation = gen(2);
  b.say(AskNode{2, start});
  EXPECT_EQ(b.questions.size(), 1u);
  ASSERT_EQ(b.said<NodeAnswer>().size(), 1u);
  EXPECT_EQ(b.said<NodeAnswer>().front().error->code, ErrorCode::refused);
}

}  // namespace
}  // namespace zed::agent::test
