#include "store/zfs/errors.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include "base/text.hpp"

namespace zed::store::zfs {
namespace {

struct Row {
  std::string_view words;
  ErrorCode code;
  std::string_view hint;
};

constexpr std::string_view later = "wait for what uses it, or end it first";

/// The first row whose words are in the complaint counts, so the more telling ones come first.
constexpr std::array rows{
    Row{"has been modified", ErrorCode::stale,
        "take a snapshot of its files, or revert them, first"},
    Row{"does not match incremental source", ErrorCode::stale,
        "compare the snapshots of both ends"},
    Row{"no longer exists", ErrorCode::stale, "abort the receive, then it begins anew"},
    Row{"is no longer the same snapshot", ErrorCode::stale,
        "abort the receive, then it begins anew"},
    Row{"kernel modules must be upgraded", ErrorCode::stale,
        "the dataset was renamed or replaced while it was being received: send again"},
    Row{"resume token is corrupt", ErrorCode::invalid, "abort the receive, then it begins anew"},
    Row{"incomplete stream", ErrorCode::corrupt, "send again: it goes on where it was"},
    Row{"invalid stream", ErrorCode::corrupt, "send again"},
    Row{"invalid backup stream", ErrorCode::corrupt, "send again"},
    Row{"failed to read from stream", ErrorCode::corrupt, "send again"},
    Row{"checksum mismatch", ErrorCode::corrupt, "send again"},
    Row{"partially-complete", ErrorCode::busy, "abort the interrupted receive first"},
    Row{"partially received", ErrorCode::busy, "abort the interrupted receive first"},
    Row{"out of space", ErrorCode::no_space, "destroy snapshots that nobody needs"},
    Row{"no space left", ErrorCode::no_space, "destroy snapshots that nobody needs"},
    Row{"quota exceeded", ErrorCode::no_space, "raise the quota of the dataset or of a parent"},
    Row{"permission denied", ErrorCode::refused, "`zfs allow` says what this user may do"},
    Row{"insufficient privileges", ErrorCode::refused, "`zfs allow` says what this user may do"},
    Row{"operation not permitted", ErrorCode::refused, "this needs root"},
    Row{"must be superuser", ErrorCode::refused, "this needs root"},
    Row{"dataset is busy", ErrorCode::busy, later},
    Row{"device busy", ErrorCode::busy, later},
    Row{"target is busy", ErrorCode::busy, later},
    Row{"pool or dataset is busy", ErrorCode::busy, later},
    Row{"device or resource busy", ErrorCode::busy, later},
    Row{"has dependent clones", ErrorCode::busy, "promote or destroy the clone first"},
    Row{"has children", ErrorCode::busy, "destroy the children first"},
    Row{"already exists", ErrorCode::exists, ""},
    Row{"must specify -f to overwrite", ErrorCode::exists, "it has a history of its own"},
    Row{"destination has snapshots", ErrorCode::exists, "it has a history of its own"},
    Row{"conflicting snapshot", ErrorCode::exists, "rename one of the two snapshots"},
    Row{"dataset does not exist", ErrorCode::not_found, ""},
    Row{"no such pool", ErrorCode::not_found, "`zpool import` shows pools that could be opened"},
    Row{"could not find any snapshots", ErrorCode::not_found, ""},
    Row{"no such dataset", ErrorCode::not_found, ""},
    Row{"does not exist", ErrorCode::not_found, ""},
    Row{"missing feature", ErrorCode::unsupported,
        "upgrade the pool, or send without that feature"},
    Row{"unsupported", ErrorCode::unsupported, ""},
    Row{"invalid option", ErrorCode::unsupported, ""},
    Row{"more recent snapshots", ErrorCode::stale, ""},
    Row{"invalid property", ErrorCode::invalid, ""},
    Row{"invalid character", ErrorCode::invalid, ""},
    Row{"is too long", ErrorCode::invalid, ""},
};

constexpr std::size_t longest_message = 500;

/// Long complaints are broken into lines in the middle of a sentence.
std::string on_one_line(std::string_view text) {
  std::string line(trim(text));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return line;
}

/// What follows is advice for someone who typed the command.
std::string without_advice(std::string line) {
  for (const char* advice : {" usage:", " use '-", " A resuming stream can be generated"})
    line.resize(std::min(line.size(), line.find(advice)));
  line.resize(std::min(line.size(), longest_message));
  return line;
}

}  // namespace

Error error_of(std::string_view what, std::string_view complaint) {
  std::string words = lower(on_one_line(complaint));
  std::string said = without_advice(on_one_line(complaint));
  Error error{ErrorCode::io,
              std::string(what) + ": " + (said.empty() ? "it failed without a word" : said),
              {},
              {}};
  for (const Row& row : rows) {
    if (words.find(row.words) == std::string::npos) continue;
    error.code = row.code;
    error.hint = row.hint;
    break;
  }
  return error;
}

Error error_of_errno(std::string_view what, int number) {
  ErrorCode code = ErrorCode::io;
  switch (number) {
  case ENOENT: code = ErrorCode::not_found; break;
  case EEXIST: code = ErrorCode::exists; break;
  case EBUSY: code = ErrorCode::busy; break;
  case ENOSPC:
  case EDQUOT: code = ErrorCode::no_space; break;
  case EPERM:
  case EACCES: code = ErrorCode::refused; break;
  case EINVAL:
  case ENAMETOOLONG: code = ErrorCode::invalid; break;
  case EAGAIN: code = ErrorCode::busy; break;
  default: break;
  }
  return {code, std::string(what) + ": " + std::strerror(number), {}, {}};
}

}  // namespace zed::store::zfs
