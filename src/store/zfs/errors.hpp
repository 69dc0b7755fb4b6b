#pragma once
// What a zfs command complained of, as an Error. OpenZFS has no codes on its command line: the
// words of 2.1 to 2.4 are in a table (errors.cpp), and each row has a test with true recorded text.

#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace zed::store::zfs {

/// A row of a table of complaints.
struct Complaint {
  std::string_view words;  ///< in lower case
  ErrorCode code;          ///< what they mean
  std::string_view hint;
};

/// The first row whose words are in `said` (in lower case), so the more telling rows come first;
/// none if no row knows it.
const Complaint* find_complaint(std::span<const Complaint> rows, std::string_view said);

/// `what` was attempted ("destroy jobs/a@one"); `complaint` is what the command wrote to its
/// standard error. The message is its first line; unknown words are `io`.
Error error_of(std::string_view what, std::string_view complaint);

/// An errno that a channel program returned, as an Error.
Error error_of_errno(std::string_view what, int number);

/// `name` of "there is no snapshot …".
tl::unexpected<Error> no_snapshot(const std::string& name);

/// A command that complains in these words is content: what was asked of it is so already.
Status ignoring(Result<std::string> result, std::string_view words);

}  // namespace zed::store::zfs
