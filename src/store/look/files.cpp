#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "base/base64.hpp"
#include "base/text.hpp"
#include "net/stat_times.hpp"
#include "store/dir/disk.hpp"
#include "store/files/sha256.hpp"
#include "store/look/look.hpp"
#include "store/look/root.hpp"

namespace zed::store {
namespace {

constexpr std::size_t most_entries = 1000;
constexpr std::size_t most_names = 150 * 1024;
constexpr std::int64_t most_hashed = 256 * 1024 * 1024;
constexpr int deepest = 128;
constexpr std::size_t most_in_folder = 1'000'000;

/// Orders paths by their components: '/' before every other byte.
std::string key_of(std::string path) {
  std::replace(path.begin(), path.end(), '/', '\0');
  return path;
}

FileKind kind_of(const struct stat& status) {
  if (S_ISREG(status.st_mode)) return FileKind::file;
  if (S_ISDIR(status.st_mode)) return FileKind::folder;
  if (S_ISLNK(status.st_mode)) return FileKind::link;
  return FileKind::other;
}

std::string shown(const std::string& bytes) {
  return is_valid_utf8(bytes) ? bytes : percent_encode(bytes);
}

Result<std::string> digest_of(int file) {
  Sha256 hash;
  std::array<std::byte, 65536> buffer{};
  for (;;) {
    const ssize_t n = ::read(file, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(net::system_error(errno, "read a file for its digest"));
    if (n == 0) return hex_of(hash.finish());
    hash.update(std::span(buffer).first(static_cast<std::size_t>(n)));
  }
}

std::string target_of(int folder, const std::string& name) {
  std::array<char, 1024> target{};
  const ssize_t n = ::readlinkat(folder, name.c_str(), target.data(), target.size());
  return n > 0 ? shown(std::string(target.data(), static_cast<std::size_t>(n))) : "";
}

class Lister {
public:
  explicit Lister(const ListFiles& question)
      : question_(question), after_(key_of(question.after)) {}

  Status folder(int at, const std::string& path, int depth) {
    if (depth > deepest)
      return fail(ErrorCode::invalid,
                  shown(path) + " is nested deeper than " + std::to_string(deepest) + " folders");
    std::vector<std::string> names;
    ZED_CHECK(disk::for_each_name(at, [&names](const std::string& name) -> Status {
      if (names.size() == most_in_folder)
        return fail(ErrorCode::invalid, "a folder with more than a million names is not listed");
      names.push_back(name);
      return {};
    }));
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      if (list_.more) return {};
      ZED_CHECK(entry(at, name, path.empty() ? name : path + "/" + name, depth));
    }
    return {};
  }

  Status entry(int at, const std::string& name, const std::string& path, int depth) {
    auto status = disk::status_at(at, name);
    if (!status && status.error().code == ErrorCode::not_found) return {};  // gone meanwhile
    if (!status) return fail(std::move(status).error());
    const FileKind kind = kind_of(*status);
    if (after_.empty() || key_of(path) > after_) ZED_CHECK(add(at, name, path, *status));
    if (kind != FileKind::folder || list_.more || is_all_before(path)) return {};
    auto inner = disk::open_folder(at, name);
    if (!inner && inner.error().code == ErrorCode::not_found) return {};
    if (!inner) return fail(std::move(inner).error());
    return folder(inner->get(), path, depth + 1);
  }

  FileList take() { return std::move(list_); }

private:
  /// Whether everything in the folder was on an earlier page.
  bool is_all_before(const std::string& path) const {
    return !after_.empty() && key_of(path) < after_ &&
           after_.substr(0, path.size() + 1) != key_of(path + "/");
  }

  Status add(int at, const std::string& name, const std::string& path, const struct stat& status) {
    if (list_.entries.size() == most_entries || names_ > most_names || hashed_ > most_hashed) {
      list_.more = true;
      return {};
    }
    FileEntry entry;
    entry.path = shown(path);
    entry.kind = kind_of(status);
    entry.size = entry.kind == FileKind::file ? Bytes{status.st_size} : Bytes{};
    entry.mode = status.st_mode & 07777;
    entry.modified = {disk::nanoseconds(net::modified_at(status)) / 1'000'000};
    if (entry.kind == FileKind::link) entry.target = target_of(at, name);
    if (entry.kind == FileKind::file && question_.digest_up_to.value > 0 &&
        status.st_size <= question_.digest_up_to.value) {
      ZED_TRY(net::Fd file, disk::open_file(at, name));
      ZED_TRY(entry.digest, digest_of(file.get()));
      hashed_ += status.st_size;
    }
    names_ += path.size() + entry.target.size() + 128;
    list_.entries.push_back(std::move(entry));
    return {};
  }

  const ListFiles& question_;
  std::string after_;
  FileList list_;
  std::size_t names_ = 0;
  std::int64_t hashed_ = 0;
};

}  // namespace

Result<net::Fd> open_root(env::Store& store, const DatasetName& dataset,
                          const std::string& snapshot) {
  std::filesystem::path folder;
  if (snapshot.empty()) {
    ZED_TRY(folder, store.open_live(dataset));
  } else {
    ZED_TRY(SnapshotName name, SnapshotName::of(dataset, snapshot));
    ZED_TRY(folder, store.snapshot_path(name));
  }
  net::Fd root(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return fail(net::system_error(errno, "open the files of " + dataset.str()));
  return root;
}

Result<std::string> clean_path(const std::string& path) {
  std::vector<std::string> parts;
  if (path.find('\0') != std::string::npos || path.size() > 4096)
    return fail(ErrorCode::invalid, "\"" + percent_encode(path.substr(0, 80)) + "\" is no path");
  if (!path.empty() && path.front() == '/')
    return fail(ErrorCode::invalid, "\"" + path + "\" is absolute",
                "name it as from the job's folder, like ckpt/model.npz");
  for (std::string& part : split(path, '/')) {
    if (part == "..")
      return fail(ErrorCode::invalid, "\"" + path + "\" climbs out of the dataset",
                  "name it as from the job's folder, like ckpt/model.npz");
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
  }
  return join(parts, "/");
}

Result<FileList> list_files(env::Store& store, const ListFiles& question) {
  ZED_TRY(std::string path, clean_path(question.path));
  ZED_TRY(net::Fd root, open_root(store, question.dataset, question.snapshot));
  Lister lister(question);
  if (path.empty()) {
    ZED_CHECK(lister.folder(root.get(), "", 0));
    return lister.take();
  }
  const std::size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  net::Fd parent = std::move(root);
  if (slash != std::string::npos) {
    ZED_TRY(parent, disk::open_folder(parent.get(), path.substr(0, slash)));
  }
  ZED_TRY(struct stat status, disk::status_at(parent.get(), name));
  (void)status;  // only that it is there
  ZED_CHECK(lister.entry(parent.get(), name, path, 0));
  return lister.take();
}

Result<FilePiece> read_file(env::Store& store, const ReadFile& question) {
  ZED_TRY(std::string path, clean_path(question.path));
  if (path.empty() || question.offset < 0)
    return fail(ErrorCode::invalid, "a file's path and an offset of 0 or more are needed");
  ZED_TRY(net::Fd root, open_root(store, question.dataset, question.snapshot));
  ZED_TRY(net::Fd file, disk::open_file(root.get(), path));
  ZED_TRY(struct stat status, disk::status_of(file.get()));
  FilePiece piece;
  piece.offset = question.offset;
  piece.size = status.st_size;
  std::string bytes(static_cast<std::size_t>(
                        std::clamp(piece.size - piece.offset, std::int64_t{0}, file_piece_limit)),
                    '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n = ::pread(file.get(), bytes.data() + have, bytes.size() - have,
                              piece.offset + static_cast<std::int64_t>(have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(net::system_error(errno, "read " + path));
    if (n == 0) break;  // it became shorter
    have += static_cast<std::size_t>(n);
  }
  bytes.resize(have);
  piece.data = to_base64(bytes);
  piece.digest = hex_of(sha256(std::as_bytes(std::span(bytes.data(), bytes.size()))));
  return piece;
}

}  // namespace zed::store
