// Programs that misbehave.

#include "net/scripts_test.hpp"
#include "net/tool.hpp"

namespace zed::net {
namespace {

using Tool = Scripts;

TEST_F(Tool, OutputStatusAndLocale) {
  auto answer = run_tool({script("echo out $LC_ALL; echo err >&2; exit 9")}, seconds(20));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->out, "out C\n");
  EXPECT_EQ(answer->err, "err\n");
  EXPECT_EQ(answer->status, 9);
}

TEST_F(Tool, OneThatHangsIsGivenUpWithItsChildren) {
  auto answer = run_tool({script("sleep 600 & wait")}, Millis{200});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::timeout);
}

TEST_F(Tool, OneThatPrintsForeverIsStopped) {
  auto answer = run_tool({script("yes")}, seconds(20));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::corrupt);
}

TEST_F(Tool, OneThatIsMissingIsSaidToBe) {
  auto answer = run_tool({"no-such-tool-anywhere"}, seconds(1));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace zed::net
