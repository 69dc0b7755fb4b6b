#include <gtest/gtest.h>

#include "controller/journal.hpp"

namespace zed::controller {
namespace {

const ControllerTerm reign{2, {}};

/// What was sent to the second node: "3+2" is two records from number 3 on, "!1+2" a new beginning.
std::string sent(const std::vector<Effect>& effects) {
  std::string text;
  for (const Effect& effect : effects) {
    auto* said = std::get_if<SayToAgent>(&effect);
    if (said == nullptr) continue;
    const auto& records = std::get<JournalRecords>(said->message);
    text += (text.empty() ? "" : " ") + std::string(records.reset ? "!" : "") +
            std::to_string(records.first_seq) + "+" + std::to_string(records.records.size());
  }
  return text;
}

std::string send(Journal& journal) {
  std::vector<Effect> out;
  journal.send(reign, out);
  return sent(out);
}

Journal with_records(std::uint64_t count) {
  Journal journal;
  std::vector<Effect> out;
  for (std::uint64_t i = 0; i < count; ++i)
    journal.append("record", out);
  journal.written(count);
  return journal;
}

TEST(Journal, SendsOnlyWhatIsDurableHere) {
  Journal journal = with_records(2);
  std::vector<Effect> out;
  journal.append("record", out);
  journal.second_connected(1, reign, {}, 0);
  EXPECT_EQ(send(journal), "!1+2");
  EXPECT_EQ(send(journal), "") << "once";
  journal.written(3);
  EXPECT_EQ(send(journal), "3+1");
}

TEST(Journal, ContinuesACopyOfItsOwnTermOnly) {
  Journal journal = with_records(5);
  journal.second_connected(1, reign, reign, 3);
  EXPECT_EQ(send(journal), "4+2");
  journal.second_connected(2, reign, ControllerTerm{1, {}}, 3);
  EXPECT_EQ(send(journal), "!1+5");
}

TEST(Journal, KnowsACopyThatHasWhatThisDiskLost) {
  Journal journal;
  journal.start({"a", "b", "c"}, 3, 0);
  EXPECT_FALSE(journal.has_lost(reign, reign, 3));
  EXPECT_TRUE(journal.has_lost(reign, reign, 4));
  EXPECT_FALSE(journal.has_lost(reign, ControllerTerm{1, {}}, 4)) << "of another controller";
  std::vector<Effect> out;
  journal.append("other", out);
  journal.written(4);
  EXPECT_TRUE(journal.has_lost(reign, reign, 4)) << "its fourth is not ours";
  journal.second_connected(1, reign, reign, 3);
  EXPECT_EQ(send(journal), "4+1");
  EXPECT_FALSE(journal.has_lost(reign, reign, 4)) << "it came from here";
}

TEST(Journal, ACopyFromBeforeACompactionBeginsAnew) {
  Journal journal = with_records(5);
  std::vector<Effect> out;
  journal.compact({"a", "b"}, out);
  journal.second_connected(1, reign, reign, 4);
  EXPECT_EQ(send(journal), "!4+2");
  journal.second_connected(2, reign, reign, 5);
  EXPECT_EQ(send(journal), "") << "it had all before";
}

TEST(Journal, IsSafeOnlyByWhatWasSent) {
  Journal journal = with_records(5);
  journal.second_connected(1, reign, {}, 0);
  journal.stored(5);
  EXPECT_FALSE(journal.is_stored(1)) << "nothing was sent yet";
  send(journal);
  journal.stored(99);
  EXPECT_EQ(journal.stored_seq(), 5U);
  journal.second_gone();
  EXPECT_FALSE(journal.is_stored(1));
}

TEST(Journal, RepeatsWhatTheSecondNodeDidNotStore) {
  Journal journal = with_records(3);
  journal.second_connected(1, reign, reign, 1);
  EXPECT_EQ(send(journal), "2+2");
  journal.repeat(Instant{0});
  journal.repeat(Instant{9'999});
  EXPECT_EQ(send(journal), "") << "it may just be slow";
  journal.stored(2);
  journal.repeat(Instant{10'000});
  EXPECT_EQ(send(journal), "") << "it gets on";
  journal.repeat(Instant{20'000});
  EXPECT_EQ(send(journal), "3+1");
  journal.stored(3);
  journal.repeat(Instant{60'000});
  EXPECT_EQ(send(journal), "");
}

TEST(Journal, RepeatsABeginningThatWasRefused) {
  Journal journal = with_records(3);
  journal.second_connected(1, reign, {}, 0);
  EXPECT_EQ(send(journal), "!1+3");
  journal.repeat(Instant{0});
  journal.repeat(Instant{10'000});
  EXPECT_EQ(send(journal), "!1+3");
}

TEST(Journal, RepeatsWhatCouldNotBeWritten) {
  Journal journal = with_records(1);
  std::vector<Effect> out;
  journal.append("two", out);
  journal.failed(Error{ErrorCode::no_space, "full", {}, {}}, Instant{0});
  out.clear();
  journal.append("three", out);
  EXPECT_TRUE(out.empty()) << "it waits behind the one that failed";
  journal.retry(Instant{500}, out);
  EXPECT_TRUE(out.empty());
  journal.retry(Instant{1000}, out);
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(std::get<WriteJournal>(out[0]).record, "two");
  journal.written(3);
  EXPECT_FALSE(journal.broken());
}

TEST(Journal, LargeBacklogsGoInBoundedMessages) {
  Journal journal;
  std::vector<Effect> out;
  for (int i = 0; i < 100; ++i)
    journal.append(std::string(50'000, 'x'), out);
  journal.written(100);
  journal.second_connected(1, reign, {}, 0);
  out.clear();
  journal.send(reign, out);
  std::size_t bytes = 0;
  for (const Effect& effect : out) {
    std::size_t message = 0;
    for (const std::string& record :
         std::get<JournalRecords>(std::get<SayToAgent>(effect).message).records)
      message += record.size();
    EXPECT_LT(message, message_limit);
    bytes += message;
  }
  EXPECT_LT(bytes, std::size_t{2} << 20) << "the rest follows when these are stored";
}

}  // namespace
}  // namespace zed::controller
