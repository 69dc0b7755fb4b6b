#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/base64.hpp"

namespace zed {
namespace {

TEST(Base64, EncodesTheVectorsOfRfc4648) {
  EXPECT_EQ(to_base64(""), "");
  EXPECT_EQ(to_base64("f"), "Zg==");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(to_base64("foo"), "Zm9v");
  EXPECT_EQ(to_base64("foobar"), "Zm9vYmFy");
}

RC_GTEST_PROP(Base64, ReadsWhatItWrote, (const std::string& bytes)) {
  auto back = from_base64(to_base64(bytes), bytes.size());
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == bytes);
}

TEST(Base64, RefusesWhatNoEncoderWrites) {
  for (const char* text : {"Zg", "Zg=", "Z===", "Zm9v!mFy", "Zh==", "=Zg=", "Zm9\n"})
    EXPECT_FALSE(from_base64(text, 100)) << text;
}

TEST(Base64, RefusesMoreThanIsWanted) {
  EXPECT_TRUE(from_base64("Zm9v", 3));
  auto more = from_base64("Zm9v", 2);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::invalid);
}

}  // namespace
}  // namespace zed
