#pragma once
// How a process ended, in words.

#include "core/job.hpp"

namespace zed::proc {

/// From waitpid's status. `stopped_by_us`: the kind that our own order asked for; a job that obeyed
/// by exiting with 0 after a stop is stopped as well. `out_of_memory`: the kernel killed for memory
/// meanwhile.
ExitRecord exit_record_of(int wait_status, std::optional<ExitRecord::Kind> stopped_by_us,
                          bool out_of_memory);

/// "signal 11 (segmentation fault)".
std::string signal_words(int signal);

}  // namespace zed::proc
