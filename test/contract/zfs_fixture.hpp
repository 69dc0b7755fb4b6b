#pragma once
// Two OpenZFS stores and a model that travels between them.

#include "contract/contract.hpp"
#include "contract/zfs_subject.hpp"

namespace zed::contract {

#define EXPECT_CUT(moved) EXPECT_REFUSED("cancelled", (moved).snapshot)

/// Bytes that do not compress.
std::string noise(std::size_t size, std::uint32_t seed);

// The model's sizes: small, since emulated machines move them many times, and large enough to be
// cut in the middle.
inline constexpr std::size_t full_size = 3'000'000;       ///< the first version
inline constexpr std::size_t full_cut = 2'000'000;        ///< where its stream is cut
inline constexpr std::size_t increment_size = 2'000'000;  ///< what each later one adds
inline constexpr std::size_t increment_cut = 1'200'000;

/// Skipped where there is no OpenZFS.
class ZfsPair : public testing::Test {
protected:
  void SetUp() override;
  void take(std::uint8_t n);
  /// Another version of the model, `increment_size` of it new, as snapshot v<n>.
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
