#pragma once
// A folder of model files in memory, and what must hold of whatever facts are read from one.

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "model/estimate.hpp"
#include "model/fit.hpp"
#include "model/properties.hpp"

namespace zed::model {

class FuzzFolder : public ModelFiles {
public:
  void add(std::string name, std::span<const std::byte> bytes) {
    list_.push_back({std::move(name), bytes.size()});
    bytes_.push_back(bytes);
  }
  const std::vector<FileEntry>& list() const override { return list_; }
  Result<std::unique_ptr<ByteSource>> open(const std::string& name) override {
    for (std::size_t i = 0; i < list_.size(); ++i)
      if (list_[i].name == name)
        return std::unique_ptr<ByteSource>(std::make_unique<BytesInMemory>(bytes_[i]));
    return fail(ErrorCode::not_found, "there is no " + name);
  }

private:
  std::vector<FileEntry> list_;
  std::vector<std::span<const std::byte>> bytes_;
};

/// Facts are sane, become properties and come back, and every estimate is finite.
inline void hold(const Facts& facts) {
  if (!facts.geometry.is_sane()) std::abort();
  const Properties properties = properties_of(facts);
  for (const auto& [name, value] : properties)
    if (value.size() > 4096) std::abort();
  const auto back = geometry_of(properties);
  if (properties.contains("geometry") && (!back || *back != facts.geometry)) std::abort();
  Workload heavy;
  heavy.context = longest_context;
  heavy.parallel = 4096;
  heavy.gpus = 64;
  heavy.flash_attention = false;
  for (const Workload& workload : {Workload{}, heavy})
    if (estimate(facts.geometry, workload).total().value < 0 ||
        largest_share(facts.geometry, workload).value < 0)
      std::abort();
  const Fit found = fit(facts.geometry, {}, {gibibytes(24), gibibytes(24)});
  if (found.gpus > 0 && found.need > found.have) std::abort();
}

}  // namespace zed::model
