#include "store/zfs/errors.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/text.hpp"

namespace zed::store::zfs {
namespace {

constexpr std::string_view later = "wait for what uses it, or end it first";

constexpr std::array complaints{
    Complaint{"has been modified", ErrorCode::stale,
              "take a snapshot of its files, or revert them, first"},
    Complaint{"does not match incremental source", ErrorCode::stale,
              "compare the snapshots of both ends"},
    Complaint{"no longer exists", ErrorCode::stale, "abort the receive, then it begins anew"},
    Complaint{"is no longer the same snapshot", ErrorCode::stale,
              "abort the receive, then it begins anew"},
    Complaint{"kernel modules must be upgraded", ErrorCode::stale,
              "the dataset was renamed or replaced while it was being received: send again"},
    Complaint{"resume token is corrupt", ErrorCode::invalid,
              "abort the receive, then it begins anew"},
    Complaint{"incomplete stream", ErrorCode::corrupt, "send again: it goes on where it was"},
    Complaint{"invalid stream", ErrorCode::corrupt, "send again"},
    Complaint{"invalid backup stream", ErrorCode::corrupt, "send again"},
    Complaint{"failed to read from stream", ErrorCode::corrupt, "send again"},
    Complaint{"checksum mismatch", ErrorCode::corrupt, "send again"},
    Complaint{"partially-complete", ErrorCode::busy, "abort the interrupted receive first"},
    Complaint{"partially received", ErrorCode::busy, "abort the interrupted receive first"},
    Complaint{"out of space", ErrorCode::no_space, "destroy snapshots that nobody needs"},
    Complaint{"no space left", ErrorCode::no_space, "destroy snapshots that nobody needs"},
    Complaint{"quota exceeded", ErrorCode::no_space,
              "raise the quota of the dataset or of a parent"},
    Complaint{"permission denied", ErrorCode::refused, "`zfs allow` says what this user may do"},
    Complaint{"insufficient privileges", ErrorCode::refused,
              "`zfs allow` says what this user may do"},
    Complaint{"operation not permitted", ErrorCode::refused, "this needs root"},
    Complaint{"must be superuser", ErrorCode::refused, "this needs root"},
    Complaint{"it's being held", ErrorCode::busy, later},  // since 2.2
    Complaint{" is busy", ErrorCode::busy, later},
    Complaint{"device busy", ErrorCode::busy, later},
    Complaint{"device or resource busy", ErrorCode::busy, later},
    Complaint{"has dependent clones", ErrorCode::busy, "promote or destroy the clone first"},
    Complaint{"has children", ErrorCode::busy, "destroy the children first"},
    Complaint{"already exists", ErrorCode::exists, ""},
    Complaint{"must specify -f to overwrite", ErrorCode::exists, "it has a history of its own"},
    Complaint{"destination has snapshots", ErrorCode::exists, "it has a history of its own"},
    Complaint{"conflicting snapshot", ErrorCode::exists, "rename one of the two snapshots"},
    Complaint{"dataset does not exist", ErrorCode::not_found, ""},
    Complaint{"no such pool", ErrorCode::not_found,
              "`zpool import` shows pools that could be opened"},
    Complaint{"could not find any snapshots", ErrorCode::not_found, ""},
    Complaint{"no such dataset", ErrorCode::not_found, ""},
    Complaint{"does not exist", ErrorCode::not_found, ""},
    Complaint{"missing feature", ErrorCode::unsupported,
              "upgrade the pool, or send without that feature"},
    Complaint{"is not compatible with", ErrorCode::unsupported, ""},
    Complaint{"unsupported", ErrorCode::unsupported, ""},
    Complaint{"invalid option", ErrorCode::unsupported, ""},
    Complaint{"more recent snapshots", ErrorCode::stale, ""},
    Complaint{"invalid property", ErrorCode::invalid, ""},
    Complaint{"invalid character", ErrorCode::invalid, ""},
    Complaint{"is too long", ErrorCode::invalid, ""},
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

const Complaint* find_complaint(std::span<const Complaint> rows, std::string_view said) {
  for (const Complaint& row : rows)
    if (said.find(row.words) != std::string_view::npos) return &row;
  return nullptr;
}

Error error_of(std::string_view what, std::string_view complaint) {
  std::string words = lower(on_one_line(complaint));
  std::string said = without_advice(on_one_line(complaint));
  Error error{ErrorCode::io,
              std::string(what) + ": " + (said.empty() ? "it failed without a word" : said),
              {},
              {}};
  if (const Complaint* known = find_complaint(complaints, words)) {
    error.code = known->code;
    error.hint = known->hint;
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

tl::unexpected<Error> no_snapshot(const std::string& name) {
  return fail(ErrorCode::not_found, "there is no snapshot " + name);
}

Status ignoring(Result<std::string> result, std::string_view words) {
  if (result || result.error().message.find(words) != std::string::npos) return {};
  return fail(std::move(result).error());
}

}  // namespace zed::store::zfs
