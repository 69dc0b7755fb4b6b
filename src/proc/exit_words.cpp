#include "proc/exit_words.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <cstring>

#include "base/text.hpp"

namespace zed::proc {
namespace {

/// What the log, the events and the state call an end of its own without an error.
constexpr const char* success_words = "succeeded";

std::string words_of(int wait_status) {
  if (WIFSIGNALED(wait_status))
    return "killed by " + signal_words(WTERMSIG(wait_status)) +
           (WCOREDUMP(wait_status) ? ", core dumped" : "");
  int code = WEXITSTATUS(wait_status);
  return "exit code " + std::to_string(code);
}

/// In English whatever the locale; null if the system has no words for it.
const char* description_of(int signal) {
#ifdef __GLIBC__
  return ::sigdescr_np(signal);
#else
  return signal > 0 && signal < NSIG ? ::sys_siglist[signal] : nullptr;
#endif
}

std::string_view words_of(ExitRecord::Kind kind) {
  switch (kind) {
  case ExitRecord::Kind::stopped: return "stopped on request";
  case ExitRecord::Kind::cancelled: return "cancelled";
  case ExitRecord::Kind::timed_out: return "ran out of its time limit";
  default: return "ended by Zed";
  }
}

}  // namespace

std::string signal_words(int signal) {
  const char* description = description_of(signal);
  std::string text = "signal " + std::to_string(signal);
  return description != nullptr ? text + " (" + lower(description) + ")" : text;
}

ExitRecord exit_record_of(int wait_status, std::optional<ExitRecord::Kind> stopped_by_us,
                          bool out_of_memory) {
  ExitRecord record;
  record.words = words_of(wait_status);
  if (WIFSIGNALED(wait_status)) {
    record.kind = ExitRecord::Kind::signal;
    record.code = WTERMSIG(wait_status);
    record.core_dumped = WCOREDUMP(wait_status);
    if (record.code == SIGKILL && out_of_memory && !stopped_by_us) {
      record.kind = ExitRecord::Kind::out_of_memory;
      record.words = "killed by the kernel for want of memory";
    }
  } else {
    record.code = WEXITSTATUS(wait_status);
    record.kind = record.code == 0 ? ExitRecord::Kind::success : ExitRecord::Kind::exit_code;
    if (record.code == 0 && !stopped_by_us) record.words = success_words;
  }
  if (stopped_by_us) {
    record.kind = *stopped_by_us;
    record.words = std::string(words_of(*stopped_by_us)) + " (" + record.words + ")";
  }
  return record;
}

}  // namespace zed::proc
