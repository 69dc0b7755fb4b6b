#pragma once
// Where a job goes, or why it goes nowhere: a refusal carries its evidence.

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/identity.hpp"
#include "core/names.hpp"

namespace zed {

struct Placement {
  NodeName node;
  std::vector<std::string> gpus;  ///< UUIDs
  std::int64_t tier = 0;          ///< index of the wish that it satisfies; past the lists: none
  std::string why;                ///< "prefer gpu A100; data is there; leaves 0 GiB unused"
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("gpus", self.gpus);
    visit("tier", self.tier);
    visit("why", self.why);
  }
  friend bool operator==(const Placement&, const Placement&) = default;
};

/// One constraint that refused one node.
struct Shortfall {
  std::string constraint;  ///< "vram", "gpus", "node", "dataset", "labels"
  std::string wanted;      ///< "48 GB per GPU"
  std::string had;         ///< "RTX 3080 with 10 GB"
  bool for_now = false;    ///< true: only because something is busy, silent or full at present
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("constraint", self.constraint);
    visit("wanted", self.wanted);
    visit("had", self.had);
    visit("for_now", self.for_now);
  }
  friend bool operator==(const Shortfall&, const Shortfall&) = default;
};

struct Refusal {
  NodeName node;
  std::vector<Shortfall> shortfalls;  ///< every clause that failed, not only the first
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("shortfalls", self.shortfalls);
  }
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

struct Rejection {
  std::vector<Refusal> nodes;
  NodeName nearest;  ///< the node that misses by least; empty if there are none
  /// Whether waiting cannot help: no node would do even if it were idle.
  bool is_impossible() const;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("nodes", self.nodes);
    visit("nearest", self.nearest);
  }
  friend bool operator==(const Rejection&, const Rejection&) = default;
};

using PlacementResult = std::variant<Placement, Rejection>;

}  // namespace zed
