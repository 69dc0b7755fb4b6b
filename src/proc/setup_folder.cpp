#include "proc/setup_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/text.hpp"
#include "net/beneath.hpp"
#include "net/stat_times.hpp"

namespace zed::proc {
namespace {

namespace fs = std::filesystem;
using net::Fd;
using net::system_error;

constexpr char own[] = ".zed";
constexpr char mark_file[] = ".zed/setup";
constexpr std::size_t most_marks = 16;
constexpr std::size_t longest_mark_file = 64 * 1024;

/// A hash of what was looked at, in a fixed order. It need not withstand anybody: whoever writes
/// the files decides about nothing but their own setup.
class Fingerprint {
public:
  void add(std::string_view bytes) {
    constexpr std::uint64_t prime = 0x100000001b3;
    for (unsigned char byte : bytes)
      hash_ = (hash_ ^ byte) * prime;
    hash_ = (hash_ ^ 0xff) * prime;
  }
  void add(std::int64_t number) { add(std::to_string(number)); }
  std::uint64_t value() const { return hash_; }

private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

/// Looks at a job's folder, of which nothing is trusted.
class Walk {
public:
  std::optional<std::uint64_t> look(int folder) {
    if (!look_into(folder, 0)) return std::nullopt;
    return print_.value();
  }

private:
  static constexpr int deepest = 128;
  static constexpr std::size_t most_entries = 200'000;

  static std::optional<std::vector<std::string>> names_in(int folder) {
    const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    std::unique_ptr<DIR, int (*)(DIR*)> entries(copy >= 0 ? ::fdopendir(copy) : nullptr,
                                                ::closedir);
    if (!entries) return std::nullopt;
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(entries.get())) {
      std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(std::move(name));
      if (names.size() > most_entries) return std::nullopt;
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  bool look_into(int folder, int depth) {
    const auto names = names_in(folder);
    if (!names || depth > deepest || (seen_ += names->size()) > most_entries) return false;
    for (const std::string& name : *names)
      if ((depth > 0 || name != own) && !look_at(folder, name, depth)) return false;
    return true;
  }

  bool look_at(int folder, const std::string& name, int depth) {
    struct stat status {};
    if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
    print_.add(name);
    print_.add(std::int64_t{status.st_mode});
    print_.add(static_cast<std::int64_t>(status.st_ino));
    if (!S_ISDIR(status.st_mode)) {
      print_.add(std::int64_t{status.st_size});
      // Of all times the one that nobody sets.
      print_.add(std::int64_t{net::changed_at(status).tv_sec});
      print_.add(std::int64_t{net::changed_at(status).tv_nsec});
      return true;
    }
    // A file that came and went again leaves a trace in the folder's times, and nothing else.
    auto inside = net::open_beneath(folder, name, O_RDONLY | O_DIRECTORY);
    return inside && look_into(inside->get(), depth + 1);
  }

  Fingerprint print_;
  std::size_t seen_ = 0;
};

Result<Fd> open_lock(const fs::path& path, int flags) {
  Fd file(::open(path.c_str(), flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail(system_error(errno, "open " + path.string()));
  return file;
}

bool try_lock(const Fd& file, int how) {
  int locked = -1;
  do
    locked = ::flock(file.get(), how | LOCK_NB);
  while (locked != 0 && errno == EINTR);
  return locked == 0;
}

/// The lines of a job's mark; none if it has no mark, or one that is not ours to understand.
std::vector<std::string> marks_in(int job) {
  auto file = net::open_file_beneath(job, mark_file);
  if (!file) return {};
  std::string text(longest_mark_file, '\0');
  const ssize_t n = ::read(file->get(), text.data(), text.size());
  if (n <= 0) return {};
  text.resize(static_cast<std::size_t>(n));
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n'))
    if (!line.empty()) lines.push_back(line);
  return lines;
}

/// A folder of a key that nobody uses, and when it last was.
struct Unused {
  fs::path folder;
  std::int64_t last_used = 0;
};

std::vector<Unused> unused_in(const fs::path& setups) {
  std::vector<Unused> unused;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(setups, error)) {
    struct stat status {};
    if (::lstat((entry.path() / "use").c_str(), &status) != 0) continue;
    unused.push_back({entry.path(), net::modified_at(status).tv_sec});
  }
  return unused;
}

}  // namespace

Status make_setup_folder(const fs::path& folder, const std::optional<JobUser>& user) {
  std::error_code error;
  const fs::path files = folder / "files";
  fs::create_directories(files, error);
  if (error) return fail(ErrorCode::io, "make " + files.string() + ": " + error.message());
  // Jobs pass through to their own files and cannot look around.
  for (const fs::path& passed : {folder.parent_path(), folder})
    if (::chmod(passed.c_str(), 0711) != 0)
      return fail(system_error(errno, "let jobs through " + passed.string()));
  if (user && ::lchown(files.c_str(), user->uid, user->gid) != 0)
    return fail(system_error(errno, "give " + files.string() + " to " + user->name));
  ZED_TRY(Fd use, open_lock(folder / "use", O_CREAT));
  if (::futimens(use.get(), nullptr) != 0)
    return fail(system_error(errno, "touch " + (folder / "use").string()));
  return {};
}

std::string setup_search_path(const fs::path& folder, const std::string& path) {
  const std::string bin = (folder / "files" / "bin").string();
  return path.empty() ? bin : bin + ":" + path;
}

void drop_unused_setups(const fs::path& setups, std::size_t most_unused) {
  std::vector<Unused> unused = unused_in(setups);
  if (unused.size() <= most_unused) return;
  std::sort(unused.begin(), unused.end(),
            [](const Unused& a, const Unused& b) { return a.last_used > b.last_used; });
  for (std::size_t i = most_unused; i < unused.size(); ++i) {
    auto use = open_lock(unused[i].folder / "use", 0);
    if (!use || !try_lock(*use, LOCK_EX)) continue;
    std::error_code error;
    fs::remove_all(unused[i].folder, error);
    if (error)
      log_warning("cannot remove what setup left in " + unused[i].folder.string() + ": " +
                  error.message());
  }
}

Result<SetupTurn> SetupTurn::open(const Launch& launch) {
  SetupTurn turn;
  turn.folder_ = launch.setup_folder;
  turn.node_ = launch.request.setup ? launch.request.setup->node : std::string();
  turn.job_ = Fd(::open(launch.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!turn.job_) return fail(system_error(errno, "open the job's folder " + launch.directory));
  ZED_TRY(turn.use_, open_lock(turn.folder_ / "use", 0));
  if (!try_lock(turn.use_, LOCK_SH))
    return fail(ErrorCode::busy, turn.folder_.string() + " is being removed");
  ZED_TRY(turn.turn_, open_lock(turn.folder_ / "turn", O_CREAT));
  return turn;
}

bool SetupTurn::is_done() const {
  std::error_code error;
  if (fs::exists(folder_ / "done", error)) return true;
  const auto marks = marks_in(job_.get());
  return std::find(marks.begin(), marks.end(), mark()) != marks.end();
}

bool SetupTurn::take() {
  return try_lock(turn_, LOCK_EX);
}

void SetupTurn::leave() {
  ::flock(turn_.get(), LOCK_UN);
}

void SetupTurn::begin() {
  before_ = look();
}

std::optional<std::uint64_t> SetupTurn::look() const {
  return Walk().look(job_.get());
}

Status SetupTurn::finish() {
  const auto after = look();
  const bool left_nothing = before_ && after && *before_ == *after;
  if (!left_nothing) return mark_job();
  return net::write_file(folder_ / "done", "", net::Endures::processes);
}

Status SetupTurn::mark_job() const {
  std::vector<std::string> marks = marks_in(job_.get());
  marks.push_back(mark());
  if (marks.size() > most_marks)
    marks.erase(marks.begin(), marks.end() - std::ptrdiff_t{most_marks});
  ZED_TRY(Fd folder, net::make_folder_beneath(job_.get(), own, 0755));
  constexpr char name[] = "setup";
  // Whatever the job put there is not written through.
  if (::unlinkat(folder.get(), name, 0) != 0 && errno != ENOENT)
    return fail(system_error(errno, std::string("replace ") + mark_file));
  ZED_TRY(Fd file, net::open_beneath(folder.get(), name, O_WRONLY | O_CREAT | O_EXCL, 0644));
  return net::write_all(file.get(), join(marks, "\n") + "\n", std::string("write ") + mark_file);
}

}  // namespace zed::proc
