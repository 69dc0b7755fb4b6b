#include "sim/disk.hpp"

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

void Disk::be_full(bool is_full) {
  full = is_full;
  store.set_full(is_full);
}

}  // namespace zed::sim
