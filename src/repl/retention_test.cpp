#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "repl/retention.hpp"
#include "repl/testing.hpp"

namespace zed::repl {
namespace {

using testing::history;
using testing::id;

Retention keep(std::optional<std::int64_t> last, std::optional<std::int64_t> best = {},
               std::optional<std::int64_t> every = {}) {
  Retention retention;
  retention.last = last;
  retention.best = best;
  retention.every = every;
  return retention;
}

std::string doomed(const Dataset& dataset, const Retention& retention,
                   const std::set<CheckpointId>& protected_ids = {}) {
  std::vector<std::string> names;
  for (const Doomed& one : to_destroy(dataset, retention, protected_ids))
    names.push_back(one.name);
  return join(names, " ");
}

TEST(Retention, KeepsAllWithoutAClause) {
  EXPECT_EQ(doomed(history("a=1 b=2 x^ c=3"), {}), "");
  EXPECT_EQ(doomed(history(""), keep(1)), "");
}

TEST(Retention, TheUnionOfItsClauses) {
  Dataset dataset = history("a=1 b=2 c=3 d=4 e=5 f=6");
  EXPECT_EQ(doomed(dataset, keep(2)), "a b c d");
  EXPECT_EQ(doomed(dataset, keep({}, {}, 2)), "a c e");
  EXPECT_EQ(doomed(dataset, keep(1, {}, 3)), "a b d e");
  dataset.snapshots[1].properties["loss"] = "0.1";
  dataset.snapshots[3].properties["metrics"] = R"({"loss": 0.2, "acc": 1})";
  dataset.snapshots[4].properties["loss"] = "nan";
  EXPECT_EQ(doomed(dataset, keep({}, 1)), "a c d e");
  EXPECT_EQ(doomed(dataset, keep({}, 2)), "a c e");
  Retention largest = keep({}, 1);
  largest.mode = Retention::Mode::max;
  EXPECT_EQ(doomed(dataset, largest), "a b c e");
  largest.metric = "acc";
  EXPECT_EQ(doomed(dataset, largest), "a b c e");
}

TEST(Retention, SomeAlwaysStay) {
  Dataset dataset = history("a=1 h b=2 x^ c=3 y^ d=4 e=5 z");
  EXPECT_EQ(doomed(dataset, keep(1)), "a b x c d") << "hand snapshots, the newest closing one, e";
  EXPECT_EQ(doomed(dataset, keep(1), {id("a"), id("x")}), "b c d");
  dataset.snapshots[2].properties["pinned"] = "for the paper";
  EXPECT_EQ(doomed(dataset, keep(1)), "a x c d");
  dataset.properties[property::lineage] =
      "1-00000000000000000000000000000001-1@" + id("c").str() + ",rubbish,@,x@y";
  EXPECT_EQ(doomed(dataset, keep(1)), "a x d");
  EXPECT_EQ(doomed(dataset, keep(0)), "a x d");
}

TEST(Retention, WhereATimelineBeganStays) {
  Dataset dataset = history("a=1 b=2 c=3 d=4");
  const std::string controller = "00000000000000000000000000000001";
  for (std::size_t i = 0; i < 4; ++i) {
    auto& properties = dataset.snapshots[i].properties;
    properties[property::timeline] = "1-" + controller + (i < 2 ? "-1" : "-7");
    if (i > 0) properties[property::parent] = dataset.snapshots[i - 1].id.str();
  }
  EXPECT_EQ(doomed(dataset, keep(1)), "a c");
}

TEST(Retention, SaysWhatItFrees) {
  Dataset dataset = history("a=1 b=2");
  dataset.snapshots[0].used = mebibytes(7);
  auto gone = to_destroy(dataset, keep(1), {});
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].frees, mebibytes(7));
}

RC_GTEST_PROP(Retention, NeverTheNewestNorWhatIsProtected,
              (const std::vector<std::uint8_t>& kinds)) {
  std::string text;
  for (std::size_t i = 0; i < kinds.size() && i < 40; ++i) {
    std::string name = "s" + std::to_string(i);
    text += name +
            (kinds[i] % 3 == 0   ? "^"
             : kinds[i] % 3 == 1 ? "=" + std::to_string(i)
                                 : "") +
            " ";
  }
  Dataset dataset = history(text);
  Retention retention = keep(*rc::gen::inRange(0, 5), *rc::gen::inRange(0, 3));
  std::set<CheckpointId> protected_ids;
  for (const Snapshot& snapshot : dataset.snapshots)
    if (*rc::gen::inRange(0, 5) == 0) protected_ids.insert(snapshot.id);
  auto gone = to_destroy(dataset, retention, protected_ids);
  for (const Doomed& one : gone) {
    RC_ASSERT(!protected_ids.contains(one.id));
    RC_ASSERT(one.id != dataset.newest()->id);
    const Snapshot* checkpoint = dataset.newest_checkpoint();
    bool is_newest = checkpoint != nullptr && one.id == checkpoint->id;
    RC_ASSERT(!is_newest);
    auto& snapshots = dataset.snapshots;
    snapshots.erase(std::find_if(snapshots.begin(), snapshots.end(),
                                 [&](const Snapshot& s) { return s.id == one.id; }));
  }
  RC_ASSERT(to_destroy(dataset, retention, protected_ids).empty());
}

}  // namespace
}  // namespace zed::repl
