#pragma once
// What both daemons share: their folder, their identity on disk, their secrets.

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/id.hpp"
#include "base/result.hpp"
#include "net/private_folder.hpp"

namespace zed::bin {

/// Identities from the operating system's random source.
class SystemIds final : public IdSource {
public:
  std::array<std::uint8_t, 16> next() override;
};

using net::make_private_folder;

/// The cluster's cookie: the first line of a file of mode 0600. With `make_if_missing`, a random
/// one is made. Errors: `not_found`, `refused` if others may read it, `invalid` if it is empty or
/// longer than 255 bytes.
Result<std::string> read_cookie(const std::filesystem::path& file, bool make_if_missing);

/// Fewer open files than this, and a flood of strangers (net/lobby.hpp keeps up to 1,344 of them
/// waiting) or some hundred machines leave none for who comes next.
inline constexpr std::uint64_t enough_open_files = 4'096;

/// Lets this process have as many files open as the machine permits it, its hard limit: a login's
/// soft one is often 1,024, and each agent takes one. Returns what it may have now.
std::uint64_t raise_open_files();

/// <folder>/pid.json: who runs here, removed at the end. Errors: `busy` if a live process owns it;
/// a stale one is replaced.
class PidFile {
public:
  static Result<PidFile> take(const std::filesystem::path& folder);
  ~PidFile();
  PidFile(PidFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  PidFile& operator=(PidFile&&) = delete;

private:
  explicit PidFile(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace zed::bin
