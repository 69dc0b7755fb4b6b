#include "bin/audit.hpp"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "net/system.hpp"

namespace zed::bin {
namespace {

constexpr std::uintmax_t most_bytes = std::uintmax_t{64} << 20;
constexpr std::size_t longest_arguments = 4096;
/// What may wait for a disk that hangs; later lines are counted as lost, aloud.
constexpr std::size_t most_waiting = std::size_t{4} << 20;

Value without_secrets(const Value& arguments) {
  if (arguments.as_map() == nullptr) return arguments;
  Value shown = Value::map();
  for (const auto& member : *arguments.as_map()) {
    const std::string_view key = member.key;
    if (key == "text" || key == "token" || key == "request") continue;
    shown.set(member.key, member.value);
  }
  return shown;
}

Status write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(net::system_error(errno, "write audit.log"));
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  if (net::sync_data(file) != 0) return fail(net::system_error(errno, "write audit.log"));
  return {};
}

}  // namespace

std::string audit_line(const AuditEntry& entry) {
  std::string arguments = to_json(without_secrets(entry.arguments));
  Value line = Value::map();
  line.set("at", to_iso8601(entry.at)).set("who", entry.who).set("door", entry.door);
  if (!entry.from.empty()) line.set("from", entry.from);
  line.set("what", entry.what);
  if (arguments.size() > longest_arguments)
    line.set("arguments", "too long: " + std::to_string(arguments.size()) + " bytes");
  else
    line.set("arguments", without_secrets(entry.arguments));
  line.set("result", entry.result);
  return to_json(line) + "\n";
}

AuditLog::AuditLog(net::Loop& loop, net::Fd file) : file_(std::move(file)), worker_(loop, 1, 4) {}

Result<std::unique_ptr<AuditLog>> AuditLog::open(net::Loop& loop,
                                                 const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "audit.log";
  std::error_code error;
  if (const auto size = std::filesystem::file_size(path, error); !error && size > most_bytes) {
    const std::string mark = std::to_string(loop.clocks().wall.ms);
    std::filesystem::rename(path, folder / ("audit-" + mark + ".log"), error);
    if (error) return fail(ErrorCode::io, "set aside " + path.string() + ": " + error.message());
  }
  net::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail(net::system_error(errno, "open " + path.string()));
  return std::unique_ptr<AuditLog>(new AuditLog(loop, std::move(file)));
}

void AuditLog::add(const AuditEntry& entry) {
  const std::string line = audit_line(entry);
  if (waiting_.size() + line.size() > most_waiting) {
    log_error("audit.log takes nothing: lost " + line);
    return;
  }
  waiting_ += line;
  write();
}

void AuditLog::write() {
  if (writing_ || waiting_.empty()) return;
  writing_ = true;
  auto work = [file = file_.get(), lines = std::exchange(waiting_, {})] {
    return write_all(file, lines);
  };
  auto posted = worker_.run<Status>(std::move(work), [this](const Status& written) {
    writing_ = false;
    if (!written) log_error(written.error().describe());
    write();
  });
  ZED_ASSERT(posted.has_value());  // one at a time
}

}  // namespace zed::bin
