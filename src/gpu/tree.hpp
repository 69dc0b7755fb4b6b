#pragma once
// Inside the room: reading a machine's /sys, /proc and device tree below some root, with bounds.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace zed::gpu {

class Tree {
public:
  /// `root` stands for "/".
  explicit Tree(std::filesystem::path root) : root_(std::move(root)) {}

  /// The path below the root: at("/sys/bus/pci").
  std::filesystem::path at(const std::string& path) const;
  /// A small file's text without blanks at its ends; none if it cannot be read. At most 64 KiB; a
  /// pipe or device is never opened.
  std::optional<std::string> text(const std::string& path) const;
  /// The same, with its state: denied if it is there and may not be read.
  bool is_denied(const std::string& path) const;
  std::optional<std::int64_t> number(const std::string& path) const;
  std::optional<std::uint64_t> hex(const std::string& path) const;
  /// The last component of what a link names (a file that holds "-> …" stands for one); empty if
  /// there is none.
  std::string link_name(const std::string& path) const;
  /// Names in a folder, sorted, at most 4,096.
  std::vector<std::string> names(const std::string& folder) const;
  bool exists(const std::string& path) const;

private:
  std::filesystem::path root_;
};

/// MemTotal and MemAvailable of /proc/meminfo, in bytes.
struct HostMemory {
  std::optional<std::int64_t> total;
  std::optional<std::int64_t> available;
};
HostMemory host_memory(const Tree& tree);

}  // namespace zed::gpu
