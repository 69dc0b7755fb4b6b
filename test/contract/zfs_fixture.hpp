#pragma once
// Two OpenZFS stores and a model that travels between them.

#include "contract/contract.hpp"
#include "contract/zfs_subject.hpp"

namespace zed::contract {

#define EXPECT_CUT(moved) EXPECT_REFUSED("cancelled", (moved).snapshot)

/// Bytes that do not compress.
std::string noise(std::size_t size, std::uint32_t seed);

/// Skipped where there is no OpenZFS.
class ZfsPair : public testing::Test {
protected:
  void SetUp() override;
  void take(std::uint8_t n);
  /// Another version of the model, about 4 MB of it new, as snapshot v<n>.
  void change(std::uint8_t n);
  env::Store& from() { return from_->store(); }
  env::Store& to() { return to_->store(); }
  /// Both sides have the same files in snapshot v<n>.
  void expect_equal(std::uint8_t n);
  /// All of v1 to v<n>, into `other`, as a dataset of that name.
  void replicate_to(ZfsSubject& other, const DatasetName& as, std::uint8_t n);
  static env::SendRequest sending(std::uint8_t snapshot, std::optional<std::uint8_t> base = {},
                                  std::string token = {}, const DatasetName& dataset = model());
  static env::ReceiveRequest receiving(std::uint8_t snapshot, std::optional<std::uint8_t> base = {},
                                       const DatasetName& dataset = model());
  static const DatasetName& model();

  std::unique_ptr<ZfsSubject> from_;
  std::unique_ptr<ZfsSubject> to_;
};

}  // namespace zed::contract
