#include "store/transfers.hpp"

#include <algorithm>

namespace zed::store {
namespace {

bool collide(const Claim& a, const Claim& b) {
  return a.dataset == b.dataset || (a.tree && b.dataset.is_under(a.dataset.str())) ||
         (b.tree && a.dataset.is_under(b.dataset.str()));
}

tl::unexpected<Error> busy(const std::string& what) {
  return fail(ErrorCode::busy, what, "wait for the transfer, or end it first");
}

}  // namespace

Turns::Turn::Turn(Turns& turns, std::vector<Claim> claims)
    : turns_(turns), claims_(std::move(claims)) {
  std::unique_lock lock(turns_.mutex_);
  turns_.freed_.wait(lock, [this] { return turns_.is_free(claims_); });
  turns_.taken_.insert(turns_.taken_.end(), claims_.begin(), claims_.end());
}

Turns::Turn::~Turn() {
  std::lock_guard lock(turns_.mutex_);
  for (const Claim& claim : claims_) {
    auto mine = std::find_if(turns_.taken_.begin(), turns_.taken_.end(), [&](const Claim& taken) {
      return taken.dataset == claim.dataset && taken.tree == claim.tree;
    });
    turns_.taken_.erase(mine);
  }
  turns_.freed_.notify_all();
}

bool Turns::is_free(const std::vector<Claim>& claims) const {
  return std::none_of(claims.begin(), claims.end(), [this](const Claim& wanted) {
    return std::any_of(taken_.begin(), taken_.end(),
                       [&](const Claim& taken) { return collide(wanted, taken); });
  });
}

Status Transfers::begin_receive(const DatasetName& dataset) {
  std::lock_guard lock(mutex_);
  if (!receiving_.insert(dataset).second)
    return busy("another receive into " + dataset.str() + " is under way");
  return {};
}

void Transfers::end_receive(const DatasetName& dataset) {
  std::lock_guard lock(mutex_);
  receiving_.erase(dataset);
}

void Transfers::begin_send(const std::vector<std::uint64_t>& guids) {
  std::lock_guard lock(mutex_);
  for (std::uint64_t guid : guids)
    ++sending_[guid];
}

void Transfers::end_send(const std::vector<std::uint64_t>& guids) {
  std::lock_guard lock(mutex_);
  for (std::uint64_t guid : guids)
    if (--sending_[guid] == 0) sending_.erase(guid);
}

Status Transfers::none_into(const DatasetName& dataset) const {
  std::lock_guard lock(mutex_);
  if (receiving_.contains(dataset))
    return busy("a receive into " + dataset.str() + " is under way");
  return {};
}

Status Transfers::none_of(const DatasetName& dataset, const DatasetRecord& record) const {
  ZED_CHECK(none_into(dataset));
  for (const SnapshotRef& snapshot : record.snapshots)
    ZED_CHECK(none_of(SnapshotName{dataset, snapshot->snapshot.name}, *snapshot));
  return {};
}

Status Transfers::none_of(const SnapshotName& name, const SnapshotRecord& record) const {
  return none_of(name, record.snapshot.guid);
}

Status Transfers::none_of(const SnapshotName& name, std::uint64_t guid) const {
  std::lock_guard lock(mutex_);
  if (sending_.contains(guid)) return busy(name.str() + " is being sent");
  return {};
}

}  // namespace zed::store
