#include "store/zfs/transactions.hpp"

#include <cerrno>

#include "store/zfs/errors.hpp"
#include "store/zfs/programs.hpp"

namespace zed::store::zfs {
namespace {

/// A channel program shows numbers signed.
std::string as_signed(std::uint64_t number) {
  return std::to_string(static_cast<std::int64_t>(number));
}

void add_pairs(Arguments& arguments, const Properties& properties) {
  arguments.push_back(std::to_string(properties.size()));
  for (const auto& [name, value] : properties) {
    arguments.push_back(std::string(prefix) + name);
    arguments.push_back(encode_value(value));
  }
}

struct SplitChanges {
  Properties set;
  std::vector<std::string> removed;
};
SplitChanges split_changes(const Transaction& transaction) {
  SplitChanges changes;
  changes.removed = transaction.also_removed;
  for (const auto& [name, value] : transaction.changes) {
    if (value)
      changes.set[name] = *value;
    else
      changes.removed.push_back(name);
  }
  return changes;
}

}  // namespace

Status Transactions::apply(const std::string& what, const Transaction& transaction) const {
  if (!privileged_) return apply_step_by_step(transaction);
  using Snapshots = Transaction::Snapshots;
  std::string full = zfs_.full(transaction.dataset);
  auto changes = split_changes(transaction);
  Arguments arguments{full};
  switch (transaction.snapshots) {
  case Snapshots::none: arguments.push_back("none"); break;
  case Snapshots::take: arguments.push_back("take"); break;
  case Snapshots::dress: arguments.push_back("dress"); break;
  }
  arguments.push_back(full + "@" + transaction.snapshot);
  arguments.push_back(transaction.parent.empty() ? "" : full + "@" + transaction.parent);
  arguments.push_back(as_signed(transaction.parent_guid));
  add_pairs(arguments, transaction.expected);
  add_pairs(arguments, transaction.snapshot_properties);
  add_pairs(arguments, changes.set);
  arguments.push_back(std::to_string(changes.removed.size()));
  for (const std::string& name : changes.removed)
    arguments.push_back(std::string(prefix) + name);

  ZED_TRY(auto answer, zfs_.program(what, apply_program, std::move(arguments)));
  std::string outcome = answer.text("what");
  if (outcome == "done") return {};
  const std::string& name = transaction.dataset.str();
  if (outcome == "gone") return fail(ErrorCode::not_found, "there is no dataset " + name);
  if (outcome == "parent")
    return fail(ErrorCode::stale, name + ": @" + transaction.parent + " is not there any more");
  if (outcome == "stale")
    return fail(ErrorCode::stale, name + ": its " + answer.text("property") + " is \"" +
                                      decode_value(answer.text("found")) + "\" now");
  return fail(error_of_errno(what + ": " + answer.text("at"), answer.error_number()));
}

Status Transactions::apply_step_by_step(const Transaction& transaction) const {
  std::string full = zfs_.full(transaction.dataset);
  auto changes = split_changes(transaction);
  if (transaction.snapshots == Transaction::Snapshots::take || !transaction.expected.empty())
    return fail(ErrorCode::unsupported, "checkpoints of " + full + " need root",
                "this agent can hold replicas only");
  auto assign = [&](const std::string& on, const Properties& properties) -> Status {
    if (properties.empty()) return {};
    Arguments arguments{"set"};
    for (const auto& [name, value] : properties)
      arguments.push_back(std::string(prefix) + name + "=" + encode_value(value));
    arguments.push_back(on);
    ZED_CHECK(zfs_.run("set properties of " + on, std::move(arguments)));
    return {};
  };
  if (transaction.snapshots == Transaction::Snapshots::dress)
    ZED_CHECK(assign(full + "@" + transaction.snapshot, transaction.snapshot_properties));
  ZED_CHECK(assign(full, changes.set));
  // What says that the work is unfinished goes last.
  for (const std::string& name : changes.removed)
    ZED_CHECK(
        zfs_.run("remove a property of " + full, {"inherit", std::string(prefix) + name, full}));
  return {};
}

Status Transactions::destroy_whole(const std::string& what, const DatasetName& dataset) const {
  ZED_TRY(auto answer, zfs_.program(what, destroy_program, {zfs_.full(dataset)}));
  std::string outcome = answer.text("what");
  if (outcome == "done") return {};
  if (outcome == "gone") return fail(ErrorCode::not_found, "there is no dataset " + dataset.str());
  int number = answer.error_number();
  std::string at = answer.text("at");
  if (number == EEXIST)
    return fail(ErrorCode::busy, what + ": a clone of " + at + " needs it",
                "promote or destroy the clone first");
  if (number == EBUSY)
    return fail(ErrorCode::busy, what + ": " + at + " is held or in use", "release the hold first");
  return fail(error_of_errno(what + ": " + at, number));
}

}  // namespace zed::store::zfs
