#pragma once
// The dir store under contract.

#include <filesystem>
#include <memory>

#include "contract/subject.hpp"

namespace zed::contract {

std::filesystem::path make_temporary_folder(const std::filesystem::path& in);
Files files_below(const std::filesystem::path& top);
void write_below(const std::filesystem::path& top, const std::string& path,
                 const std::string& bytes);

/// Owns the folder `root` and removes it at the end.
class DirSubject final : public Subject {
public:
  explicit DirSubject(std::filesystem::path root);
  ~DirSubject() override;
  env::Store& store() override { return *store_; }
  void write(const DatasetName& dataset, const std::string& path,
             const std::string& bytes) override;
  void remove(const DatasetName& dataset, const std::string& path) override;
  Files live(const DatasetName& dataset) override;
  Files snapshot(const SnapshotName& snapshot) override;
  void lose(const SnapshotName& snapshot) override;
  void restart() override;

  std::filesystem::path live_path(const DatasetName& dataset);
  const std::filesystem::path& root() const { return root_; }

private:
  std::filesystem::path root_;
  std::unique_ptr<env::Store> store_;
};

}  // namespace zed::contract
