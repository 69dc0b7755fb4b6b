#include "sim/disk.hpp"

#include "sim/random.hpp"

namespace zed::sim {

std::string Disk::read_live(const DatasetName& dataset, const std::string& file) const {
  auto files = store.live_files(dataset);
  auto found = files.find(file);
  return found == files.end() ? std::string() : found->second;
}

bool Disk::write_live(const DatasetName& dataset, const std::string& file,
                      const std::string& text) {
  return store.write_file(dataset, file, text).has_value();
}

bool Disk::remove_live(const DatasetName& dataset, const std::string& file) {
  return store.remove_file(dataset, file).has_value();
}

std::map<std::string, std::string> Disk::live_files(const DatasetName& dataset) const {
  return store.live_files(dataset);
}

std::map<std::string, std::string> Disk::snapshot_files(const SnapshotName& snapshot) const {
  auto files = store.snapshot_files(snapshot);
  return files ? std::move(*files) : std::map<std::string, std::string>{};
}

void Disk::fail_at_random(std::uint64_t seed) {
  auto random = std::make_shared<Random>(seed, "store errors");
  store.set_fault_hook([this, random](std::string_view,
                                      const DatasetName&) -> std::optional<StoreFault> {
    if (observed_ || !random->chance(100)) return std::nullopt;
    return StoreFault{random->chance(500) ? ErrorCode::busy : ErrorCode::io, random->chance(500)};
  });
}

std::vector<Dataset> Disk::look_at_all() {
  observed_ = true;
  auto all = store.list();
  observed_ = false;
  return all ? std::move(*all) : std::vector<Dataset>{};
}

std::optional<Dataset> Disk::look_at(const DatasetName& dataset) {
  observed_ = true;
  auto found = store.inspect(dataset);
  observed_ = false;
  if (!found) return std::nullopt;
  return std::move(*found);
}

void Disk::fail_no_more() {
  store.set_fault_hook(nullptr);
}

void Disk::be_full(bool is_full) {
  full = is_full;
  store.set_full(is_full);
}

}  // namespace zed::sim
