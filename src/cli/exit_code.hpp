#pragma once
// What zedctl's exit status means. docs/zedctl.md has the table for people.

#include "base/result.hpp"

namespace zed::cli {

enum class ExitCode {
  done = 0,
  error = 1,
  changes_pending = 2,  ///< `plan` found something to do
  unplaceable = 3,      ///< no node can hold it
  not_found = 4,        ///< nothing of that name
  refused = 5,          ///< understood, and deliberately not done
  interrupted = 130,    ///< Ctrl-C during a wait that was not over (128 + SIGINT)
};

/// The status for an error that the controller, or zedctl itself, reports.
constexpr ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
  case ErrorCode::unplaceable: return ExitCode::unplaceable;
  case ErrorCode::not_found: return ExitCode::not_found;
  case ErrorCode::refused:
  case ErrorCode::stale: return ExitCode::refused;
  case ErrorCode::cancelled: return ExitCode::interrupted;
  case ErrorCode::invalid:
  case ErrorCode::exists:
  case ErrorCode::conflict:
  case ErrorCode::busy:
  case ErrorCode::no_space:
  case ErrorCode::timeout:
  case ErrorCode::unavailable:
  case ErrorCode::io:
  case ErrorCode::corrupt:
  case ErrorCode::unsupported:
  case ErrorCode::internal: return ExitCode::error;
  }
  return ExitCode::error;
}

}  // namespace zed::cli
