// Datasets, properties, readonly, rename, destroy, changes.

#include <chrono>
#include <thread>

#include "contract/stores.hpp"

namespace zed::contract {
namespace {

class Datasets : public StoreContract {};

TEST_P(Datasets, AreMadeWithTheirParentsAndListed) {
  EXPECT_OK(store().create(ds("jobs/train-001"), {{property::type, "job"}}));
  std::vector<std::string> names;
  auto listed = store().list().value();
  for (const Dataset& dataset : listed)
    names.push_back(dataset.name.str());
  EXPECT_EQ(names, (Words{"jobs", "jobs/train-001"}));
  EXPECT_REFUSED("exists", store().create(ds("jobs/train-001"), {}));
  EXPECT_REFUSED("not_found", store().inspect(ds("jobs/train-002")));
}

TEST_P(Datasets, HaveOnlyTheirOwnProperties) {
  EXPECT_OK(store().create(ds("jobs"), {{property::status, "running"}}));
  EXPECT_OK(store().create(ds("jobs/a"), {{property::type, "job"}}));
  EXPECT_OK(store().snapshot(snap("jobs/a@one"), {}));
  auto dataset = store().inspect(ds("jobs/a")).value();
  // Nothing is inherited from the parent, nor by the snapshot.
  EXPECT_EQ(dataset.properties, (Properties{{property::type, "job"}}));
  EXPECT_EQ(dataset.snapshots.at(0).properties, Properties{});
}

TEST_P(Datasets, KeepAnyTextAsAValue) {
  const std::string odd = "tab\t newline\n percent % quote \" zed \xC3\xA9 \x01 end";
  EXPECT_OK(store().create(ds("a"), {{"x", odd}, {"empty", ""}}));
  subject().restart();
  auto dataset = store().inspect(ds("a")).value();
  EXPECT_EQ(dataset.properties.at("x"), odd);
  EXPECT_EQ(dataset.properties.at("empty"), "");
}

TEST_P(Datasets, RefuseIllegalProperties) {
  EXPECT_REFUSED("invalid", store().create(ds("a"), {{"Upper", "x"}}));
  EXPECT_REFUSED("invalid", store().create(ds("a"), {{"", "x"}}));
  EXPECT_REFUSED("invalid", store().create(ds("a"), {{"long", std::string(8192, 'x')}}));
  EXPECT_REFUSED("invalid", store().create(ds("a"), {{property::uuid, "not an id"}}));
  EXPECT_REFUSED("not_found", store().inspect(ds("a")));
  EXPECT_OK(store().create(ds("a"), {{"long", std::string(8191, 'x')}}));
}

TEST_P(Datasets, ChangePropertiesAllAtOnceOrNotAtAll) {
  EXPECT_OK(store().create(ds("a"), {{"keep", "1"}, {"drop", "1"}, {"change", "1"}}));
  EXPECT_REFUSED("invalid",
                 store().set(ds("a"), {{"change", "2"}, {"drop", std::nullopt}, {"Bad", "x"}}));
  EXPECT_EQ(store().inspect(ds("a"))->property("change"), "1");
  EXPECT_OK(store().set(
      ds("a"), {{"change", "2"}, {"drop", std::nullopt}, {"new", "3"}, {"absent", std::nullopt}}));
  EXPECT_EQ(store().inspect(ds("a"))->properties,
            (Properties{{"keep", "1"}, {"change", "2"}, {"new", "3"}}));
  EXPECT_REFUSED("not_found", store().set(ds("b"), {{"x", "1"}}));
}

TEST_P(Datasets, ShowTheirUuid) {
  EXPECT_OK(store().create(ds("a"), {{property::uuid, uuid(7).str()}}));
  EXPECT_EQ(store().inspect(ds("a"))->uuid, uuid(7));
  EXPECT_OK(store().set(ds("a"), {{property::uuid, uuid(8).str()}}));
  EXPECT_EQ(store().inspect(ds("a"))->uuid, uuid(8));
  EXPECT_OK(store().set(ds("a"), {{property::uuid, std::nullopt}}));
  EXPECT_TRUE(store().inspect(ds("a"))->uuid.is_nil());
}

TEST_P(Datasets, AreReadonlyOrNot) {
  EXPECT_OK(store().create(ds("a"), {}));
  EXPECT_FALSE(store().inspect(ds("a"))->readonly);
  subject().write(ds("a"), "f", "1");
  EXPECT_OK(store().set_readonly(ds("a"), true));
  EXPECT_OK(store().set_readonly(ds("a"), true));
  EXPECT_TRUE(store().inspect(ds("a"))->readonly);
  subject().restart();
  EXPECT_TRUE(store().inspect(ds("a"))->readonly);
  EXPECT_OK(store().set_readonly(ds("a"), false));
  subject().write(ds("a"), "f", "2");
  EXPECT_EQ(subject().live(ds("a")), (Files{{"f", "2"}}));
}

TEST_P(Datasets, ChangePropertiesAndReadonlyTogether) {
  make_job("jobs/a");
  subject().write(ds("jobs/a"), "w", "1");
  EXPECT_OK(store().change(ds("jobs/a"), {{"status", "ended"}}, true));
  auto shown = store().inspect(ds("jobs/a")).value();
  EXPECT_TRUE(shown.readonly);
  EXPECT_EQ(shown.property("status"), "ended");
  EXPECT_EQ(subject().live(ds("jobs/a")), (Files{{"w", "1"}}));
  EXPECT_OK(store().change(ds("jobs/a"), {{"status", std::nullopt}, {"node", "b"}}, false));
  shown = store().inspect(ds("jobs/a")).value();
  EXPECT_FALSE(shown.readonly);
  EXPECT_EQ(shown.properties.count("status"), 0U);
  EXPECT_EQ(shown.property("node"), "b");
  subject().write(ds("jobs/a"), "w", "2");
  EXPECT_EQ(subject().live(ds("jobs/a")), (Files{{"w", "2"}}));
  EXPECT_REFUSED("not_found", store().change(ds("jobs/b"), {}, true));
  EXPECT_REFUSED("invalid", store().change(ds("jobs/a"), {{"Illegal name", "1"}}, false));
}

TEST_P(Datasets, AreSealedWithALastSnapshot) {
  make_job("jobs/a");
  subject().write(ds("jobs/a"), "w", "1");
  auto sealed = store().seal(snap("jobs/a@closed"), with_id(1), {{"status", "succeeded"}});
  ASSERT_OK(sealed);
  EXPECT_EQ(sealed->id, checkpoint_id(1));
  auto shown = store().inspect(ds("jobs/a")).value();
  EXPECT_TRUE(shown.readonly);
  EXPECT_FALSE(shown.changed);
  EXPECT_EQ(shown.property("status"), "succeeded");
  EXPECT_EQ(subject().snapshot(snap("jobs/a@closed")), (Files{{"w", "1"}}));
  EXPECT_REFUSED("exists", store().seal(snap("jobs/a@closed"), with_id(2), {{"status", "again"}}));
  EXPECT_EQ(store().inspect(ds("jobs/a"))->property("status"), "succeeded");
  subject().restart();
  EXPECT_TRUE(store().inspect(ds("jobs/a"))->readonly);
  EXPECT_EQ(snapshots_of("jobs/a"), (Words{"closed"}));
}

TEST_P(Datasets, KnowWhetherTheirFilesChanged) {
  make_job("jobs/a");
  EXPECT_FALSE(store().inspect(ds("jobs/a"))->changed);
  subject().write(ds("jobs/a"), "w", "1");
  EXPECT_TRUE(store().inspect(ds("jobs/a"))->changed);
  EXPECT_OK(store().commit_checkpoint(checkpoint("jobs/a", 1)));
  EXPECT_FALSE(store().inspect(ds("jobs/a"))->changed);
  subject().write(ds("jobs/a"), "w", "2");
  EXPECT_TRUE(store().inspect(ds("jobs/a"))->changed);
  EXPECT_OK(store().revert_live(ds("jobs/a")));
  EXPECT_FALSE(store().inspect(ds("jobs/a"))->changed);
  subject().remove(ds("jobs/a"), "w");
  EXPECT_TRUE(store().inspect(ds("jobs/a"))->changed);
}

TEST_P(Datasets, AreRenamedWithEverythingInThem) {
  make_job("jobs/a");
  subject().write(ds("jobs/a"), "w", "1");
  EXPECT_OK(store().snapshot(snap("jobs/a@one"), with_id(1)));
  EXPECT_OK(store().hold(snap("jobs/a@one"), "tag"));
  EXPECT_OK(store().create(ds("jobs/a/child"), {{"x", "y"}}));
  EXPECT_OK(store().create(ds("jobs/taken"), {}));
  EXPECT_REFUSED("exists", store().rename(ds("jobs/a"), ds("jobs/taken")));
  EXPECT_REFUSED("not_found", store().rename(ds("jobs/none"), ds("jobs/b")));
  EXPECT_REFUSED("invalid", store().rename(ds("jobs/a"), ds("jobs/a/deep")));

  EXPECT_OK(store().rename(ds("jobs/a"), ds("old/b")));
  EXPECT_REFUSED("not_found", store().inspect(ds("jobs/a")));
  EXPECT_REFUSED("not_found", store().inspect(ds("jobs/a/child")));
  EXPECT_EQ(store().inspect(ds("old/b/child"))->property("x"), "y");
  EXPECT_EQ(store().inspect(ds("old/b"))->uuid, uuid(1));
  EXPECT_EQ(snapshots_of("old/b"), (Words{"one"}));
  EXPECT_EQ(subject().live(ds("old/b")), (Files{{"w", "1"}}));
  EXPECT_REFUSED("busy", store().destroy_snapshot(snap("old/b@one")));
}

TEST_P(Datasets, AreDestroyedUnlessSomethingNeedsThem) {
  EXPECT_OK(store().create(ds("a/child"), {}));
  EXPECT_REFUSED("busy", store().destroy(ds("a")));
  EXPECT_OK(store().destroy(ds("a/child")));
  subject().write(ds("a"), "w", "1");
  EXPECT_OK(store().snapshot(snap("a@one"), {}));
  EXPECT_OK(store().hold(snap("a@one"), "tag"));
  EXPECT_REFUSED("busy", store().destroy(ds("a")));
  EXPECT_OK(store().release(snap("a@one"), "tag"));
  EXPECT_OK(store().clone(snap("a@one"), ds("b"), {}));
  EXPECT_REFUSED("busy", store().destroy(ds("a")));
  EXPECT_REFUSED("busy", store().destroy_snapshot(snap("a@one")));
  EXPECT_OK(store().destroy(ds("b")));
  EXPECT_OK(store().destroy(ds("a")));
  EXPECT_REFUSED("not_found", store().destroy(ds("a")));
  EXPECT_TRUE(store().list()->empty());
}

TEST_P(Datasets, TellWhatChanged) {
  EXPECT_OK(store().create(ds("a"), {}));
  EXPECT_OK(store().create(ds("b"), {}));
  auto first = store().changes_since("").value();
  EXPECT_EQ(first.datasets, (std::vector{ds("a"), ds("b")}));
  auto none = store().changes_since(first.cursor).value();
  EXPECT_TRUE(none.datasets.empty());
  EXPECT_OK(store().set(ds("b"), {{"x", "1"}}));
  auto second = store().changes_since(none.cursor).value();
  EXPECT_EQ(second.datasets, (std::vector{ds("b")}));
  EXPECT_OK(store().snapshot(snap("a@one"), {}));
  EXPECT_OK(store().destroy(ds("b")));
  EXPECT_EQ(store().changes_since(second.cursor)->datasets, (std::vector{ds("a"), ds("b")}));
  EXPECT_EQ(store().changes_since("a cursor of another store")->datasets.front(), ds("a"));
}

TEST_P(Datasets, NoticeASnapshotThatAPersonRemoved) {
  make_job("jobs/a");
  subject().write(ds("jobs/a"), "w", "1");
  EXPECT_OK(store().commit_checkpoint(checkpoint("jobs/a", 1)));
  EXPECT_OK(store().commit_checkpoint(checkpoint("jobs/a", 2)));
  auto cursor = store().changes_since("")->cursor;
  subject().lose(snap("jobs/a@epoch-2"));
  std::vector<DatasetName> changed;
  for (int i = 0; i < 1000 && changed.empty(); ++i) {  // the news may take a moment
    changed = store().changes_since(cursor)->datasets;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(changed, (std::vector{ds("jobs/a")}));
  EXPECT_EQ(snapshots_of("jobs/a"), (Words{"epoch-1"}));
}

TEST_P(Datasets, HaveSpace) {
  auto space = store().space().value();
  EXPECT_GT(space.total.value, 0);
  EXPECT_LE(space.free, space.total);
}

INSTANTIATE_TEST_SUITE_P(Stores, Datasets, testing::ValuesIn(all_stores()), store_name);

}  // namespace
}  // namespace zed::contract
