#include <gtest/gtest.h>

#include "contract/subject.hpp"
#include "sim/memory_store.hpp"

namespace zed::contract {
namespace {

class MemorySubject final : public Subject {
public:
  explicit MemorySubject(std::uint64_t seed) : store_(seed) {}
  env::Store& store() override { return store_; }
  void write(const DatasetName& dataset, const std::string& path,
             const std::string& bytes) override {
    auto written = store_.write_file(dataset, path, bytes);
    EXPECT_TRUE(written) << written.error().describe();
  }
  void remove(const DatasetName& dataset, const std::string& path) override {
    EXPECT_TRUE(store_.remove_file(dataset, path));
  }
  Files live(const DatasetName& dataset) override { return store_.live_files(dataset); }
  Files snapshot(const SnapshotName& snapshot) override {
    return store_.snapshot_files(snapshot).value_or(Files{});
  }
  void lose(const SnapshotName& snapshot) override { store_.lose_snapshot_files(snapshot); }
  void restart() override { store_.crash(); }

private:
  sim::MemoryStore store_;
};

}  // namespace

std::unique_ptr<Subject> make_memory_subject() {
  static std::uint64_t seed = 0;
  return std::make_unique<MemorySubject>(++seed);
}

}  // namespace zed::contract
