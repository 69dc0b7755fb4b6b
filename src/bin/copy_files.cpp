#include "bin/copy_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <system_error>

#include "net/fd.hpp"
#include "net/stat_times.hpp"
#include "store/dir/disk.hpp"
#include "store/files/sha256.hpp"

namespace zed::bin {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t block = std::size_t{4} << 20;
constexpr Millis report_every = seconds(1);

/// What a person sees of a long copy.
class Meter {
public:
  Meter(const ReportCopied& report, Bytes total) : report_(report), total_(total) {}

  void add(std::size_t bytes) {
    done_ += Bytes{static_cast<std::int64_t>(bytes)};
    if (!report_) return;
    const auto now = std::chrono::steady_clock::now();
    const auto passed =
        std::chrono::duration_cast<std::chrono::milliseconds>(now - last_time_).count();
    if (passed < report_every.value) return;
    report_(done_, std::max(done_, total_), Bytes{(done_ - last_done_).value * 1000 / passed});
    last_time_ = now;
    last_done_ = done_;
  }

private:
  const ReportCopied& report_;
  Bytes total_;
  Bytes done_;
  Bytes last_done_;
  std::chrono::steady_clock::time_point last_time_ = std::chrono::steady_clock::now();
};

/// What tells that a file stayed as it was.
struct Seen {
  off_t size = 0;
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  mode_t mode = 0;
  friend bool operator==(const Seen&, const Seen&) = default;
};
Result<Seen> look_at(int fd, const fs::path& path) {
  struct stat now {};
  if (::fstat(fd, &now) != 0) return fail(net::system_error(errno, "look at " + path.string()));
  const timespec& modified = net::modified_at(now);
  return Seen{now.st_size, modified.tv_sec, modified.tv_nsec, now.st_mode};
}

/// Copies one file, hashing on the way.
class FileCopy {
public:
  FileCopy(const modelio::SourceEntry& entry, fs::path target, Meter& meter)
      : entry_(entry), target_(std::move(target)), meter_(meter) {}

  Result<std::string> run(bool hash) {
    from_.reset(::open(entry_.path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!from_) return error("open");
    ZED_TRY(const Seen before, look_at(from_.get(), entry_.path));
    std::error_code gone;
    fs::remove(target_, gone);  // never write through a link that is there
    auto made =
        store::disk::create_sharing(from_.get(), AT_FDCWD, target_.string(), before.mode & 0777);
    if (!made) return fail(std::move(made).error().with("copy " + entry_.path.string()));
    to_ = std::move(made->file);
    const bool shared = made->shares;
    if (hash) sum_.emplace();
    if (!shared || hash) ZED_CHECK(read_all(!shared));
    ZED_TRY(const Seen after, look_at(from_.get(), entry_.path));
    if (after != before)
      return fail(ErrorCode::busy, entry_.path.string() + " changed while it was copied",
                  "try again when nothing writes to it");
    return hash ? store::hex_of(sum_->finish()) : std::string();
  }

private:
  tl::unexpected<Error> error(const char* what) const {
    return fail(net::system_error(errno, std::string(what) + " " + entry_.path.string()));
  }

  Status read_all(bool writes) {
    const auto buffer = std::make_unique<std::byte[]>(block);
    for (;;) {
      const ssize_t n = ::read(from_.get(), buffer.get(), block);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return error("read");
      if (n == 0) return {};
      const std::span bytes(buffer.get(), static_cast<std::size_t>(n));
      if (sum_) sum_->update(bytes);
      if (writes) ZED_CHECK(write_all(bytes));
      meter_.add(bytes.size());
    }
  }

  Status write_all(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::write(to_.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return error("copy");
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return {};
  }

  const modelio::SourceEntry& entry_;
  fs::path target_;
  Meter& meter_;
  net::Fd from_;
  net::Fd to_;
  std::optional<store::Sha256> sum_;
};

Status make_folder_or_link(const modelio::SourceEntry& entry, const fs::path& target) {
  std::error_code error;
  if (entry.kind == modelio::SourceEntry::Kind::folder) {
    fs::create_directories(target, error);
  } else {
    fs::remove(target, error);
    fs::copy_symlink(entry.path, target, error);
  }
  if (!error) return {};
  const bool full = error == std::errc::no_space_on_device;
  return fail(full ? ErrorCode::no_space : ErrorCode::io,
              "copy " + entry.path.string() + ": " + error.message());
}

}  // namespace

Result<std::string> digest_of_file(const fs::path& path) {
  net::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail(net::system_error(errno, "open " + path.string()));
  const auto buffer = std::make_unique<std::byte[]>(block);
  store::Sha256 sum;
  for (;;) {
    const ssize_t n = ::read(file.get(), buffer.get(), block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(net::system_error(errno, "read " + path.string()));
    if (n == 0) return store::hex_of(sum.finish());
    sum.update(std::span(buffer.get(), static_cast<std::size_t>(n)));
  }
}

Result<std::string> copy_files(const std::vector<modelio::SourceEntry>& entries,
                               const fs::path& target, const CopyOptions& options) {
  Bytes total;
  std::size_t files = 0;
  for (const modelio::SourceEntry& entry : entries) {
    total += Bytes{static_cast<std::int64_t>(entry.size)};
    if (entry.kind == modelio::SourceEntry::Kind::file) ++files;
  }
  Meter meter(options.report, total);
  std::string lines;
  std::string only;
  for (const modelio::SourceEntry& entry : entries) {
    if (entry.kind != modelio::SourceEntry::Kind::file) {
      ZED_CHECK(make_folder_or_link(entry, target / entry.name));
      continue;
    }
    ZED_TRY(only, FileCopy(entry, target / entry.name, meter).run(options.hash));
    lines += only + "  " + entry.name + "\n";
  }
  if (!options.hash || files == 1) return only;
  return store::hex_of(store::sha256(std::as_bytes(std::span(lines))));
}

}  // namespace zed::bin
