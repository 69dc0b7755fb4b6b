// Files of a copy brought to this machine, and two copies told apart.

#include <algorithm>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/orders.hpp"
#include "cli/text_diff.hpp"
#include "cli/typed.hpp"

namespace zed::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_files = 100'000;
constexpr std::int64_t largest_text = 256 * 1024;

/// Everything at or below a path of a copy.
Result<std::vector<FileEntry>> list_all(http::Client& client, const FilesAt& from,
                                        std::string& place) {
  std::vector<FileEntry> files;
  for (;;) {
    api::ListFiles question{from.of, from.checkpoint, from.path, {}, {}};
    if (!files.empty()) question.after = files.back().path;
    ZED_TRY(auto page, client.call(question));
    place = page.place.dataset + page.place.snapshot + " on " + page.place.node;
    files.insert(files.end(), page.files.begin(), page.files.end());
    if (!page.more || page.files.empty()) return files;
    if (files.size() > most_files)
      return fail(ErrorCode::invalid, "there are more than 100000 files",
                  "copy a folder of it at a time");
  }
}

/// Hands a file's bytes to `take`, piece after piece.
Status read_pieces(http::Client& client, const FilesAt& from, const std::string& path,
                   const std::function<Status(std::string_view, std::int64_t size)>& take) {
  std::int64_t offset = 0;
  for (;;) {
    ZED_TRY(auto piece, client.call(api::ReadFile{from.of, from.checkpoint, path, offset}));
    ZED_TRY(std::string bytes, from_base64(piece.data, static_cast<std::size_t>(file_piece_limit)));
    ZED_CHECK(take(bytes, piece.size));
    offset += static_cast<std::int64_t>(bytes.size());
    if (bytes.empty() || offset >= piece.size) break;
  }
  return {};
}

Status write_all(int fd, std::string_view bytes, const std::string& what) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(net::system_error(errno, what));
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

/// A copy of one file, whole or not there. The name that it has meanwhile is its own.
class Target {
public:
  static Result<Target> open(const fs::path& path, mode_t mode) {
    Target target;
    target.path_ = path;
    target.temporary_ = path;
    target.temporary_ += ".zed-part";
    target.file_.reset(::open(target.temporary_.c_str(),
                              O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                              (mode & 0777) | S_IWUSR));
    if (!target.file_) return fail(net::system_error(errno, "write " + path.string()));
    return target;
  }
  Target(Target&&) = default;
  Target& operator=(Target&&) = delete;
  ~Target() {
    if (file_) ::unlink(temporary_.c_str());
  }

  Status write(std::string_view bytes) {
    return write_all(file_.get(), bytes, "write " + path_.string());
  }
  Status finish(mode_t mode) {
    if (::fchmod(file_.get(), mode & 0777) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0)
      return fail(net::system_error(errno, "write " + path_.string()));
    file_.reset();
    return {};
  }

private:
  Target() = default;
  fs::path path_;
  fs::path temporary_;
  net::Fd file_;
};

/// The controller passes on what a node said: a name that leaves the folder is not followed.
Status check_relative(const std::string& path) {
  for (const std::string& part : split(path, '/'))
    if (part.empty() || part == "." || part == "..")
      return fail(ErrorCode::corrupt, "the fleet answered with the path " + printable(path));
  return {};
}

class Copying {
public:
  Copying(Context& context, http::Client& client, FilesAt from)
      : context_(context), client_(client), from_(std::move(from)), progress_(context) {}

  /// `below` is cut off from the paths: the folder that was named.
  Status all(const std::vector<FileEntry>& files, const std::string& below, const fs::path& to) {
    for (const FileEntry& entry : files) {
      ZED_CHECK(check_relative(entry.path));
      if (entry.kind == FileKind::file) total_ += entry.size.value;
    }
    for (const FileEntry& entry : files) {
      fs::path target = to;
      if (entry.path.size() > below.size())
        target /= entry.path.substr(below.empty() ? 0 : below.size() + 1);
      ZED_CHECK(one(entry, target));
    }
    return {};
  }

  Status one(const FileEntry& entry, const fs::path& to) {
    std::error_code error;
    switch (entry.kind) {
    case FileKind::folder: fs::create_directories(to, error); break;
    case FileKind::file: return file(entry, to);
    case FileKind::link:
    case FileKind::other:
      context_.note(printable(entry.path) + " is no file or folder: left out\n");
      return {};
    }
    if (error) return fail(ErrorCode::io, "make " + to.string() + ": " + error.message());
    return {};
  }

  std::int64_t copied() const { return done_; }
  std::size_t count() const { return count_; }

private:
  Status file(const FileEntry& entry, const fs::path& to) {
    ZED_TRY(Target target, Target::open(to, static_cast<mode_t>(entry.mode)));
    ZED_CHECK(read_pieces(client_, from_, entry.path,
                          [&](std::string_view bytes, std::int64_t) -> Status {
                            done_ += static_cast<std::int64_t>(bytes.size());
                            progress_.show(show(Bytes{done_}) + " of " + show(Bytes{total_}) +
                                           "  " + printable(entry.path));
                            return target.write(bytes);
                          }));
    ++count_;
    return target.finish(static_cast<mode_t>(entry.mode));
  }

  Context& context_;
  http::Client& client_;
  FilesAt from_;
  Progress progress_;
  std::int64_t done_ = 0;
  std::int64_t total_ = 0;
  std::size_t count_ = 0;
};

/// As cp does it: into a folder that is there, else under that name.
fs::path target_of(const std::string& to, const std::string& name) {
  std::error_code error;
  if (!fs::is_directory(to, error)) return to;
  return fs::path(to) / name;
}

/// "ckpt/" and "./ckpt" as "ckpt", "." as "": as the listed paths begin.
std::string normal(const std::string& path) {
  std::vector<std::string> parts;
  for (std::string& part : split(path, '/'))
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
  return (path.front() == '/' ? "/" : "") + join(parts, "/");
}

std::string leaf_of(const FilesAt& from) {
  const std::string& path = from.path.empty() ? from.of : from.path;
  return path.substr(path.rfind('/') + 1);
}

/// The whole of a file that is text and not too large; nothing otherwise.
std::optional<std::string> text_of(http::Client& client, const FilesAt& from,
                                   const std::string& path) {
  std::string text;
  bool fits = true;
  auto read =
      read_pieces(client, from, path, [&](std::string_view bytes, std::int64_t size) -> Status {
        fits = fits && size <= largest_text;
        if (!fits) return fail(ErrorCode::invalid, "too large to show");
        text += bytes;
        return {};
      });
  if (!read || !fits || !is_text(text)) return std::nullopt;
  return text;
}

FilesAt side_of(const api::Place& place, const JobAt& typed) {
  // By what the person typed: the live files of a job are no snapshot of its dataset.
  if (place.snapshot.empty()) return {typed.job, "", ""};
  return {place.dataset, place.snapshot, ""};
}

std::string texts_of(Context& context, http::Client& client, const api::DiffReply& reply,
                     const FilesAt& a, const FilesAt& b) {
  std::string all;
  for (const api::FileDifference& file : reply.files) {
    if (file.a.value > largest_text || file.b.value > largest_text) continue;
    const bool in_a = file.change != api::FileChange::added;
    const bool in_b = file.change != api::FileChange::removed;
    const auto text_a = in_a ? text_of(client, a, file.path) : std::string();
    const auto text_b = in_b ? text_of(client, b, file.path) : std::string();
    if (!text_a || !text_b) continue;
    const View view = context.view();
    const std::string name = printable(file.path);
    all += "\n" +
           styled("--- " + (in_a ? "a/" + name : "/dev/null") + "\n+++ " +
                      (in_b ? "b/" + name : "/dev/null"),
                  Style::strong, view) +
           "\n" + unified_diff(*text_a, *text_b, view);
  }
  return all;
}

}  // namespace

Result<ExitCode> carry_out(Context& context, const CopyCommand& command) {
  ZED_TRY(FilesAt from, parse_files_at(command.from));
  if (!from.path.empty()) from.path = normal(from.path);
  ZED_TRY(http::Client * client, context.client());
  if (command.to == "-") {
    if (from.path.empty())
      return fail(ErrorCode::invalid, "only one file can go to standard output",
                  "name it: " + command.from + ":PATH");
    ZED_CHECK(read_pieces(*client, from, from.path,
                          [&context](std::string_view bytes, std::int64_t) -> Status {
                            context.print(bytes);
                            return {};
                          }));
    return ExitCode::done;
  }
  std::string place;
  ZED_TRY(auto files, list_all(*client, from, place));
  const fs::path to = target_of(command.to, leaf_of(from));
  Copying copying(context, *client, from);
  const bool is_one_file = files.size() == 1 && files.front().path == from.path &&
                           files.front().kind != FileKind::folder;
  std::error_code error;
  if (!is_one_file) fs::create_directories(to, error);
  if (error) return fail(ErrorCode::io, "make " + to.string() + ": " + error.message());
  ZED_CHECK(copying.all(files, is_one_file ? files.front().path : from.path, to));
  if (context.options().json)
    context.print(to_json(Value::map()
                              .set("schema", api::schema_version)
                              .set("to", to.string())
                              .set("files", static_cast<std::int64_t>(copying.count()))
                              .set("bytes", copying.copied())) +
                  "\n");
  else
    context.print(plural(copying.count(), "file") + ", " + show(Bytes{copying.copied()}) +
                  " from " + printable(place) + " to " + to.string() + "\n");
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const DiffCommand& command) {
  ZED_TRY(http::Client * client, context.client());
  client->set_time_limit(order_limit);
  const api::DiffCheckpoints question{command.a, command.b};
  ZED_TRY(auto reply, client->call(question));
  print_reply(context, reply);
  if (context.options().json || context.options().csv || command.only_names) return ExitCode::done;
  ZED_TRY(JobAt a, parse_job_at(command.a));
  JobAt b = a;
  if (command.b.front() != '@') {
    ZED_TRY(b, parse_job_at(command.b));
  }
  context.print(texts_of(context, *client, reply, side_of(reply.a, a), side_of(reply.b, b)));
  return ExitCode::done;
}

}  // namespace zed::cli
