#pragma once
// What a model or a job needs (hard), and what it would like (soft).

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace zed {

/// A size as a person wrote it. "24" and "24GB" are nominal (what is printed on the box); "24GiB"
/// and "24564MiB" are exact bytes.
struct MemorySize {
  enum class Kind { nominal_gb, exact };
  Kind kind = Kind::nominal_gb;
  std::int64_t amount = 0;  ///< GB if nominal, bytes if exact

  /// "24" | "24GB" | "24GiB" | "512MiB": how `requires` properties and diagnostics write it.
  std::string str() const;
  static std::optional<MemorySize> parse(std::string_view text);
  /// Nominal sizes count as GiB where bytes are wanted.
  Bytes bytes() const;
  friend bool operator==(const MemorySize&, const MemorySize&) = default;
};

/// Every clause must hold. Numbers and versions: at least; names: equal by the GPU name rules;
/// lists: any of; labels: all of.
struct Requirement {
  std::optional<MemorySize> vram;        ///< per GPU
  std::optional<MemorySize> vram_total;  ///< summed over GPUs of one vendor on one node
  std::optional<std::int64_t> gpus;      ///< how many; see gpu_count() in sched/
  std::vector<std::string> gpu;          ///< any of these models
  std::vector<std::string> arch;         ///< any of: "8.0" (at least), "gfx1100" (equal)
  std::optional<std::string> driver;     ///< at least
  std::optional<std::string> cuda;       ///< at least
  std::optional<MemorySize> memory;      ///< RAM of the machine
  std::optional<MemorySize> disk;        ///< free space of the pool
  std::vector<std::string> os;           ///< any of: "linux", "macos", "freebsd"
  std::vector<std::string> labels;       ///< all of
  bool share = false;                    ///< several jobs may share one GPU by declared vram

  bool empty() const { return *this == Requirement{}; }
  /// Clauses of `own` replace this one's of the same key (a job's over its model's).
  Requirement overridden_by(const Requirement& own) const;
  /// "vram:48,gpus:2": the form of the com.zed:requires property.
  std::string str() const;
  /// Nothing for an unknown key, a repeated one or a value that does not read.
  static std::optional<Requirement> parse(std::string_view text);

  friend bool operator==(const Requirement&, const Requirement&) = default;
};

/// One wish: a GPU model, a node or a label.
struct Wish {
  enum class Kind { gpu, node, label };
  Kind kind = Kind::gpu;
  std::string value;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("kind", self.kind);
    visit("value", self.value);
  }
  friend bool operator==(const Wish&, const Wish&) = default;
};
constexpr auto enum_names(Wish::Kind) {
  return std::array<std::string_view, 3>{"gpu", "node", "label"};
}

/// A ranking, best first. Soft: never blocks.
using Preference = std::vector<Wish>;

/// When a running job should commit.
struct CheckpointPolicy {
  enum class Unit { explicit_only, epochs, steps, time };
  Unit unit = Unit::explicit_only;
  std::int64_t count = 0;  ///< epochs or steps
  Millis every;            ///< if unit is time
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("unit", self.unit);
    visit("count", self.count);
    visit("every", self.every);
  }
  friend bool operator==(const CheckpointPolicy&, const CheckpointPolicy&) = default;
};
constexpr auto enum_names(CheckpointPolicy::Unit) {
  return std::array<std::string_view, 4>{"explicit", "epochs", "steps", "time"};
}

/// Which checkpoints are kept: the union of the clauses. The newest, fork points and what a model
/// needs always stay.
struct Retention {
  std::optional<std::int64_t> last;
  std::optional<std::int64_t> best;  ///< by `metric`
  std::string metric = "loss";
  enum class Mode { min, max };
  Mode mode = Mode::min;
  std::optional<std::int64_t> every;  ///< seq divisible by it

  bool keeps_all() const { return !last && !best && !every; }
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("last", self.last);
    visit("best", self.best);
    visit("metric", self.metric);
    visit("mode", self.mode);
    visit("every", self.every);
  }
  friend bool operator==(const Retention&, const Retention&) = default;
};
constexpr auto enum_names(Retention::Mode) {
  return std::array<std::string_view, 2>{"min", "max"};
}

}  // namespace zed
