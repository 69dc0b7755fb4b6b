#include "base/result.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>

namespace zed {
namespace {

struct CodeName {
  ErrorCode code;
  std::string_view name;
};

constexpr std::array<CodeName, 16> code_names{{
    {ErrorCode::invalid, "invalid"},
    {ErrorCode::not_found, "not_found"},
    {ErrorCode::exists, "exists"},
    {ErrorCode::refused, "refused"},
    {ErrorCode::stale, "stale"},
    {ErrorCode::conflict, "conflict"},
    {ErrorCode::busy, "busy"},
    {ErrorCode::no_space, "no_space"},
    {ErrorCode::timeout, "timeout"},
    {ErrorCode::unavailable, "unavailable"},
    {ErrorCode::io, "io"},
    {ErrorCode::corrupt, "corrupt"},
    {ErrorCode::unsupported, "unsupported"},
    {ErrorCode::cancelled, "cancelled"},
    {ErrorCode::unplaceable, "unplaceable"},
    {ErrorCode::internal, "internal"},
}};

}  // namespace

std::string_view to_string(ErrorCode code) {
  for (const CodeName& entry : code_names)
    if (entry.code == code) return entry.name;
  return "internal";
}

ErrorCode error_code_of(std::string_view name) {
  for (const CodeName& entry : code_names)
    if (entry.name == name) return entry.code;
  return ErrorCode::internal;
}

bool is_retryable(ErrorCode code) {
  switch (code) {
  case ErrorCode::busy:
  case ErrorCode::no_space:
  case ErrorCode::timeout:
  case ErrorCode::unavailable:
  case ErrorCode::io: return true;
  case ErrorCode::invalid:
  case ErrorCode::not_found:
  case ErrorCode::exists:
  case ErrorCode::refused:
  case ErrorCode::stale:
  case ErrorCode::conflict:
  case ErrorCode::corrupt:
  case ErrorCode::unsupported:
  case ErrorCode::cancelled:
  case ErrorCode::unplaceable:
  case ErrorCode::internal: return false;
  }
  return false;
}

std::string Error::describe() const {
  std::string text;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
    text += *frame + ": ";
  text += message;
  if (!hint.empty()) text += " (" + hint + ")";
  return text;
}

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "zed: bug: %s does not hold at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace zed
