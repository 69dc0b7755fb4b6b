#pragma once
// Errors are values. A function that can fail returns Result<T>; each layer that passes an error on
// adds one frame saying what it was doing, and to what.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace zed {

/// What kind of failure this is. It decides the exit code of `zedctl`, the HTTP status and whether
/// a retry makes sense; the message is for people.
enum class ErrorCode {
  invalid,      ///< the input is wrong; the same request will always fail
  not_found,    ///< no dataset, snapshot, job, node of that name
  exists,       ///< the name is taken
  refused,      ///< understood, and deliberately not done (a hint says how to insist)
  stale,        ///< names an older generation, timeline, term or revision
  conflict,     ///< two histories with nothing in common
  busy,         ///< held, mounted, in use: try again
  no_space,     ///< disk or quota full
  timeout,      ///< no answer in time: the outcome is unknown
  unavailable,  ///< the other side is away: try again
  io,           ///< the operating system refused
  corrupt,      ///< bytes that do not decode, hashes that do not match
  unsupported,  ///< not by this store, platform or version
  cancelled,    ///< somebody asked for it to stop
  unplaceable,  ///< no node can hold the job
  internal,     ///< a bug in Zed, reported instead of hidden
};

std::string_view to_string(ErrorCode code);

/// The code of that name; `internal` for a word that is none (it came from a newer version).
ErrorCode error_code_of(std::string_view name);

/// Whether doing the same again later may succeed.
bool is_retryable(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;              ///< what failed and why, one sentence, no trailing full stop
  std::vector<std::string> frames;  ///< innermost first: "receive tank/models/llama"
  std::string hint;                 ///< what to do next; may be empty

  /// Adds the operation that was under way and its subject.
  Error with(std::string frame) && {
    frames.push_back(std::move(frame));
    return std::move(*this);
  }
  Error hinted(std::string text) && {
    hint = std::move(text);
    return std::move(*this);
  }

  /// "outermost: ...: innermost: message (hint)", on one line.
  std::string describe() const;

  friend bool operator==(const Error&, const Error&) = default;
};

template <class T> class [[nodiscard]] Result : public tl::expected<T, Error> {
public:
  using tl::expected<T, Error>::expected;
  Result(tl::expected<T, Error> other) : tl::expected<T, Error>(std::move(other)) {}
};

using Status = Result<void>;

/// `return fail(ErrorCode::invalid, "…")` from any function that returns a Result.
inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string hint = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), {}, std::move(hint)});
}
inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

/// A broken invariant is a bug: says where and aborts, in release builds too. Input never trips
/// one.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace zed

#define ZED_ASSERT(condition)                                                                      \
  ((condition) ? void(0) : ::zed::assertion_failed(#condition, __FILE__, __LINE__))

#define ZED_CONCAT_INNER(a, b) a##b
#define ZED_CONCAT(a, b) ZED_CONCAT_INNER(a, b)

/// ZED_TRY(auto name, expression): the value, or returns the error to the caller.
#define ZED_TRY(declaration, expression)                                                           \
  auto ZED_CONCAT(zed_try_, __LINE__) = (expression);                                              \
  if (!ZED_CONCAT(zed_try_, __LINE__))                                                             \
    return ::zed::fail(std::move(ZED_CONCAT(zed_try_, __LINE__)).error());                         \
  declaration = std::move(*ZED_CONCAT(zed_try_, __LINE__))

/// ZED_CHECK(expression): goes on if it succeeded, else returns the error to the caller.
#define ZED_CHECK(expression)                                                                      \
  do {                                                                                             \
    if (auto zed_check_ = (expression); !zed_check_)                                               \
      return ::zed::fail(std::move(zed_check_).error());                                           \
  } while (false)
