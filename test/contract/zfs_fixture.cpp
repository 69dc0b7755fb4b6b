#include "contract/zfs_fixture.hpp"

namespace zed::contract {

std::string noise(std::size_t size, std::uint32_t seed) {
  std::string text(size, '\0');
  for (char& c : text) {
    seed = seed * 1664525 + 1013904223;
    c = static_cast<char>(seed >> 24);
  }
  return text;
}

const DatasetName& ZfsPair::model() {
  static const DatasetName name = ds("models/llama");
  return name;
}

void ZfsPair::SetUp() {
  from_ = make_zfs();
  to_ = make_zfs();
  if (!from_ || !to_) GTEST_SKIP() << "ZED_TEST_ZFS_ROOT names no pool";
  ASSERT_OK(from().create(model(), {{property::uuid, uuid(5).str()}}));
  from_->write(model(), "weights.bin", noise(full_size, 1));
  from_->write(model(), "config.json", "{}");
  take(1);
}

void ZfsPair::take(std::uint8_t n) {
  ASSERT_OK(from().snapshot({model(), "v" + std::to_string(n)}, with_id(n)));
}

void ZfsPair::change(std::uint8_t n) {
  from_->write(model(), "more.bin", noise(increment_size, n));
  take(n);
}

void ZfsPair::expect_equal(std::uint8_t n) {
  SnapshotName name{model(), "v" + std::to_string(n)};
  EXPECT_TRUE(from_->snapshot(name) == to_->snapshot(name)) << name.str();
}

void ZfsPair::replicate_to(ZfsSubject& other, const DatasetName& as, std::uint8_t n) {
  std::optional<std::uint8_t> base;
  for (std::uint8_t i = 1; i <= n; ++i) {
    ASSERT_OK(move(from(), sending(i, base), other.store(), receiving(i, base, as)).snapshot);
    base = i;
  }
}

env::SendRequest ZfsPair::sending(std::uint8_t snapshot, std::optional<std::uint8_t> base,
                                  std::string token, const DatasetName& dataset) {
  env::SendRequest request{dataset, checkpoint_id(snapshot), {}, StreamKind::zfs, std::move(token)};
  if (base) request.base = checkpoint_id(*base);
  return request;
}

env::ReceiveRequest ZfsPair::receiving(std::uint8_t snapshot, std::optional<std::uint8_t> base,
                                       const DatasetName& dataset) {
  env::ReceiveRequest request;
  request.dataset = dataset;
  if (base) request.base = checkpoint_id(*base);
  request.snapshot = "v" + std::to_string(snapshot);
  request.snapshot_properties =
      with_id(snapshot, {{"note", "tab\tand " + std::to_string(snapshot)}, {"empty", ""}});
  request.dataset_changes = {
      {property::uuid, uuid(5).str()}, {property::type, "model"}, {"old", std::nullopt}};
  request.kind = StreamKind::zfs;
  return request;
}

}  // namespace zed::contract
