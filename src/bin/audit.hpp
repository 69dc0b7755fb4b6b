#pragma once
// Who changed what: one line of JSON for each change of state, in a file that only grows. It lies
// in the controller's folder, beside no dataset: no rollback touches it.
//
//   {"at":"2026-01-01T12:00:00.000Z","who":"alice@alice","door":"https","from":"10.0.0.7:51000",
//    "what":"rollback","arguments":{"job":"train",…},"result":"ok"}

#include <filesystem>

#include "base/value.hpp"
#include "net/fd.hpp"
#include "net/loop.hpp"
#include "net/workers.hpp"

namespace zed::bin {

struct AuditEntry {
  WallTime at;
  std::string who;
  std::string door;
  std::string from;  ///< address, where there is one
  std::string what;
  Value arguments;
  std::string result;  ///< "ok", or the error's code and message
};

/// One line, arguments cut to 4 KiB, without what is secret or long (tokens, cluster files).
std::string audit_line(const AuditEntry& entry);

/// Loop's thread only. Lines reach the disk in order and soon after; what has not when the machine
/// loses power is lost.
class AuditLog {
public:
  /// Appends to <folder>/audit.log; one that has grown beyond 64 MiB is set aside as
  /// audit-<time>.log first. Errors: `io`.
  static Result<std::unique_ptr<AuditLog>> open(net::Loop& loop,
                                                const std::filesystem::path& folder);
  void add(const AuditEntry& entry);

private:
  AuditLog(net::Loop& loop, net::Fd file);
  void write();

  net::Fd file_;
  std::string waiting_;
  bool writing_ = false;
  net::WorkerPool worker_;
};

}  // namespace zed::bin
