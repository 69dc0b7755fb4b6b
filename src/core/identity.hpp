#pragma once
// Identities and the two orders that fence the fleet: controller terms and generations.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/id.hpp"

namespace zed {

using NodeId = Id128<struct NodeIdTag>;
using ControllerId = Id128<struct ControllerIdTag>;
using DatasetId = Id128<struct DatasetIdTag>;        ///< com.zed:uuid of a dataset, on every node
using JobId = Id128<struct JobIdTag>;                ///< com.zed:uuid of a job (and its dataset)
using CheckpointId = Id128<struct CheckpointIdTag>;  ///< com.zed:id of any snapshot
using StepId = Id128<struct StepIdTag>;              ///< one plan step
using TransferId = Id128<struct TransferIdTag>;      ///< one transfer; also its one-time ticket

/// One reign of one controller. A higher number wins; two takeovers of one number are ordered by
/// the controller's identity, so the order is total.
struct ControllerTerm {
  std::uint64_t number = 0;
  ControllerId controller;

  /// "3-<32 hex>".
  std::string str() const;
  static std::optional<ControllerTerm> parse(std::string_view text);
  friend auto operator<=>(const ControllerTerm&, const ControllerTerm&) = default;
};

/// A job's fencing number: every start of its processes gets a new, higher one. {term, 0} stands
/// for datasets without a job.
struct Generation {
  ControllerTerm term;
  std::uint64_t counter = 0;

  bool is_none() const { return *this == Generation{}; }
  /// "3-<32 hex>-17".
  std::string str() const;
  /// "3.17": for people; not unique if two controllers took over at once.
  std::string brief() const;
  static std::optional<Generation> parse(std::string_view text);
  friend auto operator<=>(const Generation&, const Generation&) = default;
};

/// A timeline is named by the generation that began it.
using Timeline = Generation;

/// The last component that the branch of `timeline` gets: "train-001.t3-17-ab12cd34". Nothing ever
/// parses it.
std::string branch_leaf(std::string_view leaf, const Timeline& timeline);

}  // namespace zed
