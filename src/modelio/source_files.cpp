#include "modelio/source_files.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "base/text.hpp"
#include "model/parts.hpp"
#include "net/fd.hpp"

namespace zed::modelio {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_entries = 1'000'000;
constexpr std::int64_t most_ignore_lines = 1000;

/// What of a folder of code does not travel: `.git`, and the patterns of its `.zedignore`, one a
/// line as for a shell; '#' begins a comment, a '/' at the end is not needed for a folder.
std::vector<std::string> ignored_patterns(const fs::path& folder) {
  std::vector<std::string> patterns{".git"};
  std::ifstream file(folder / ".zedignore");
  std::string line;
  for (std::int64_t n = 0; n < most_ignore_lines && std::getline(file, line); ++n) {
    std::string pattern(trim(line.substr(0, line.find('#'))));
    while (pattern.ends_with('/'))
      pattern.pop_back();
    if (!pattern.empty()) patterns.push_back(std::move(pattern));
  }
  return patterns;
}

/// By name, or by the path from the folder on.
bool is_ignored(const fs::path& relative, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), relative.filename().c_str(), FNM_PERIOD) == 0 ||
           ::fnmatch(pattern.c_str(), relative.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0;
  });
}

tl::unexpected<Error> list_error(const fs::path& path, const std::error_code& error) {
  return fail(ErrorCode::io, "list " + path.string() + ": " + error.message());
}

/// Sockets, pipes and devices are left out in silence: they hold nothing that could be kept.
std::error_code add_entry(const fs::directory_entry& found, std::string name, SourceRules rules,
                          std::vector<SourceEntry>& entries) {
  std::error_code error;
  SourceEntry entry{SourceEntry::Kind::file, found.path(), std::move(name), 0};
  const bool is_link = found.is_symlink(error);
  if (is_link && !(rules.follow_links && found.is_regular_file(error))) {
    entry.kind = SourceEntry::Kind::link;
  } else if (!is_link && found.is_directory(error)) {
    entry.kind = SourceEntry::Kind::folder;
  } else if (found.is_regular_file(error)) {
    entry.size = found.file_size(error);
  } else {
    return {};
  }
  entries.push_back(std::move(entry));
  return is_link && entries.back().kind == SourceEntry::Kind::link ? std::error_code() : error;
}

Result<std::vector<SourceEntry>> list_folder(const fs::path& folder, SourceRules rules) {
  const std::vector<std::string> leave_out =
      rules.code ? ignored_patterns(folder) : std::vector<std::string>();
  std::vector<SourceEntry> entries;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    const fs::path relative = at->path().lexically_relative(folder);
    if (is_ignored(relative, leave_out)) {
      at.disable_recursion_pending();
      continue;
    }
    if (entries.size() >= most_entries)
      return fail(ErrorCode::invalid, folder.string() + " has more than 1000000 entries",
                  "name the folder that has only what is wanted");
    if (auto failed = add_entry(*at, relative.string(), rules, entries))
      return list_error(at->path(), failed);
  }
  if (error) return list_error(folder, error);
  // A folder's name is the beginning of the names in it, so it comes first.
  std::sort(entries.begin(), entries.end(),
            [](const SourceEntry& a, const SourceEntry& b) { return a.name < b.name; });
  return entries;
}

/// The file, and those beside it that are parts of the same model.
Result<std::vector<SourceEntry>> list_file(const fs::path& file) {
  std::vector<SourceEntry> entries;
  std::error_code error;
  const std::string named = file.filename().string();
  for (std::uint64_t part = 1; part <= model::part_count(named); ++part) {
    const std::string name = *model::part_name(named, part, model::part_count(named));
    const fs::path path = file.parent_path() / name;
    const std::uintmax_t size = fs::file_size(path, error);
    // What is missing is for the reader to tell, who knows whether it is a part at all.
    if (!error) entries.push_back({SourceEntry::Kind::file, path, name, size});
  }
  if (!entries.empty()) return entries;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error) return list_error(file, error);
  return std::vector<SourceEntry>{{SourceEntry::Kind::file, file, named, size}};
}

/// A file that is open.
class OpenFile : public model::ByteSource {
public:
  OpenFile(net::Fd fd, std::uint64_t size, std::string path)
      : fd_(std::move(fd)), size_(size), path_(std::move(path)) {}
  std::uint64_t size() const override { return size_; }
  Status read_at(std::uint64_t offset, std::span<std::byte> into) override {
    while (!into.empty()) {
      const ssize_t n = ::pread(fd_.get(), into.data(), into.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail(net::system_error(errno, "read " + path_));
      if (n == 0)
        return fail(ErrorCode::corrupt, path_ + " became shorter while it was read", "try again");
      offset += static_cast<std::uint64_t>(n);
      into = into.subspan(static_cast<std::size_t>(n));
    }
    return {};
  }

private:
  net::Fd fd_;
  std::uint64_t size_;
  std::string path_;
};

}  // namespace

Result<std::vector<SourceEntry>> list_source(const fs::path& path, SourceRules rules) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    return fail(ErrorCode::not_found, "there is no " + path.string() + " on this node",
                "name a path of the machine whose agent imports it (--node)");
  if (fs::is_directory(status)) return list_folder(path, rules);
  if (fs::is_regular_file(status)) return list_file(path);
  return fail(ErrorCode::invalid, path.string() + " is neither a file nor a folder");
}

DiskFiles::DiskFiles(const std::vector<SourceEntry>& entries) {
  for (const SourceEntry& entry : entries) {
    if (entry.kind != SourceEntry::Kind::file) continue;
    list_.push_back({entry.name, entry.size});
    paths_.push_back(entry.path);
  }
}

Result<std::unique_ptr<model::ByteSource>> DiskFiles::open(const std::string& name) {
  for (std::size_t i = 0; i < list_.size(); ++i) {
    if (list_[i].name != name) continue;
    const std::string path = paths_[i].string();
    net::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd) return fail(net::system_error(errno, "open " + path));
    struct stat now {};
    if (::fstat(fd.get(), &now) != 0) return fail(net::system_error(errno, "look at " + path));
    if (!S_ISREG(now.st_mode)) return fail(ErrorCode::invalid, path + " is no file any more");
    return std::unique_ptr<model::ByteSource>(
        std::make_unique<OpenFile>(std::move(fd), static_cast<std::uint64_t>(now.st_size), path));
  }
  return fail(ErrorCode::not_found, "there is no " + name);
}

}  // namespace zed::modelio
