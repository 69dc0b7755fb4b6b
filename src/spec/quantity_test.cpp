#include "spec/quantity.hpp"

#include <gtest/gtest.h>

#include "spec/words.hpp"

namespace zed::spec {
namespace {

TEST(Duration, IsANumberAndAUnit) {
  EXPECT_EQ(parse_duration("90 seconds").value(), seconds(90));
  EXPECT_EQ(parse_duration("1 second").value(), seconds(1));
  EXPECT_EQ(parse_duration("15 minutes").value(), minutes(15));
  EXPECT_EQ(parse_duration("12 hours").value(), minutes(720));
  EXPECT_EQ(parse_duration("2 days").value(), minutes(2880));
  EXPECT_EQ(parse_duration(" 3d ").value(), minutes(4320));
  EXPECT_EQ(parse_duration("5S").value(), seconds(5));
  EXPECT_EQ(parse_duration("3653 days").value().value, 3653LL * 86'400'000);
  for (const char* wrong : {"", " ", "5", "minutes", "-5 s", "0 s", "1.5 h", "5 weeks", "5 s s",
                            "3654 days", "99999999999999999999 s", "1e3 s"})
    EXPECT_FALSE(parse_duration(wrong)) << wrong;
}

TEST(Rate, CountsBytesOrBits) {
  EXPECT_EQ(parse_rate("200 MB/s").value().value, 200'000'000);
  EXPECT_EQ(parse_rate("50 Mbit/s").value().value, 6'250'000);
  EXPECT_EQ(parse_rate("1.5GiB/s").value().value, 1'610'612'736);
  EXPECT_EQ(parse_rate("8 bit/s").value().value, 1);
  EXPECT_EQ(parse_rate("10 gbit/s").value().value, 1'250'000'000);
  for (const char* wrong : {"", "200", "200 MB", "MB/s", "0 MB/s", "1 bit/s", "1.2.3 MB/s",
                            ".5 MB/s", "9999999999 TB/s", "-1 MB/s", "200 Mb/s/s"})
    EXPECT_FALSE(parse_rate(wrong)) << wrong;
}

TEST(CheckpointPolicy, CountsEpochsStepsOrTime) {
  using Unit = CheckpointPolicy::Unit;
  EXPECT_EQ(parse_checkpoint_policy("1 epoch").value(), (CheckpointPolicy{Unit::epochs, 1, {}}));
  EXPECT_EQ(parse_checkpoint_policy("5 epochs").value(), (CheckpointPolicy{Unit::epochs, 5, {}}));
  EXPECT_EQ(parse_checkpoint_policy("500 steps").value(), (CheckpointPolicy{Unit::steps, 500, {}}));
  EXPECT_EQ(parse_checkpoint_policy("10 minutes").value(),
            (CheckpointPolicy{Unit::time, 0, minutes(10)}));
  for (const char* wrong : {"", "epoch", "0 epochs", "1.5 epochs", "5", "5 apples", "0 minutes"})
    EXPECT_FALSE(parse_checkpoint_policy(wrong)) << wrong;
}

TEST(MemorySize, IsNominalOrExact) {
  auto show = [](const char* text) { return parse_memory_size(text).value().str(); };
  EXPECT_EQ(show("24"), "24");
  EXPECT_EQ(show("24 GB"), "24");
  EXPECT_EQ(show("24GiB"), "24GiB");
  EXPECT_EQ(show("24564 MiB"), "24564MiB");
  EXPECT_EQ(show("1.5"), "1536MiB");
  EXPECT_EQ(show("1.5TiB"), "1536GiB");
  EXPECT_EQ(show("24.0"), "24");
  for (const char* wrong : {"", "0", "0GiB", "-1", "GB", "24 pounds", "1e9 TiB", "24 GB GB"})
    EXPECT_FALSE(parse_memory_size(wrong)) << wrong;
  EXPECT_FALSE(memory_size_of(0));
  EXPECT_FALSE(memory_size_of(-3));
  EXPECT_FALSE(memory_size_of(1e300));
}

std::vector<std::string> words(std::string_view text) {
  auto split = split_words(text);
  auto* found = std::get_if<Words>(&split);
  return found != nullptr ? found->words : std::vector<std::string>{"<refused>"};
}

TEST(Words, AreSplitAsAShellWould) {
  using List = std::vector<std::string>;
  EXPECT_EQ(words(""), List{});
  EXPECT_EQ(words("  a\tb \n c "), (List{"a", "b", "c"}));
  EXPECT_EQ(words("python3 'train it.py'"), (List{"python3", "train it.py"}));
  EXPECT_EQ(words("a''b \"\" 'c'\"d\""), (List{"ab", "", "cd"}));
  EXPECT_EQ(words("a\\ b \\\"c\\\" \\\\"), (List{"a b", "\"c\"", "\\"}));
  EXPECT_EQ(words("\"a\\\"b\\$c\\d\""), (List{"a\"b$c\\d"}));
  EXPECT_EQ(words("'a\\b'"), (List{"a\\b"}));
  EXPECT_EQ(words("a \\\n b"), (List{"a", "b"}));
  EXPECT_EQ(words("\"a\\\nb\""), (List{"ab"}));
  EXPECT_EQ(words("$HOME ~ *.py"), (List{"$HOME", "~", "*.py"}));
  for (const char* wrong : {"'a", "\"a", "a \\", "\"a\\"})
    EXPECT_EQ(words(wrong), (List{"<refused>"})) << wrong;
}

TEST(Words, TellWhatOnlyAShellWouldActUpon) {
  auto sign = [](std::string_view text) {
    return std::get<Words>(split_words(text)).shell_character;
  };
  EXPECT_EQ(sign("a | b"), '|');
  EXPECT_EQ(sign("a > b"), '>');
  EXPECT_EQ(sign("echo $HOME"), '$');
  EXPECT_EQ(sign("echo '$HOME|' \"a;b\" \\> x=1"), '\0');
}

}  // namespace
}  // namespace zed::spec
