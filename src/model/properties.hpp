#pragma once
// A model's facts as properties of its dataset, and back.

#include <optional>

#include "core/dataset.hpp"
#include "core/requirement.hpp"
#include "model/estimate.hpp"
#include "model/facts.hpp"

namespace zed::model {

/// size_gb, quantized ("none" if it is not), format, requires, architecture, parameters, context,
/// licence, dtype, bits_per_weight, geometry; what is not known is left out. `requires` is what
/// answering with the usual context takes (context_of()).
Properties properties_of(const Facts& facts);

/// What a GPU needs to run it at that workload, rounded up to whole GiB: `vram` up to the largest
/// GPU there is, `vram_total` beyond.
Requirement requirement_of(const Geometry& geometry, const Workload& workload);

/// The geometry that properties_of() wrote; nothing if it is not there or absurd.
std::optional<Geometry> geometry_of(const Properties& properties);

/// Three significant digits, powers of 1000: "140", "4.92", "0.0909".
std::string size_gb(Bytes bytes);

}  // namespace zed::model
