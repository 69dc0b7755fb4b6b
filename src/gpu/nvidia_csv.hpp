#pragma once
// `nvidia-smi --query-… --format=csv,noheader,nounits`, as text.

#include <string>
#include <string_view>
#include <vector>

#include "gpu/device.hpp"

namespace zed::gpu {

/// The columns of a question about GPUs; `name` is last, since a name may hold commas and the
/// output is never quoted.
std::vector<std::string> gpu_columns();

/// What an answer holds. A row that does not have the columns' shape is rejected, not guessed at.
struct CsvAnswer {
  std::vector<Device> devices;
  std::size_t rejected = 0;  ///< rows that were no answer
  bool doubtful = false;     ///< some field had an impossible value: ask in another way too
};

/// Reads the answer to `columns` (names of --help-query-gpu). CRLF, blank lines and rows torn apart
/// (a line that begins with ',' goes on with the one before) are accepted.
CsvAnswer read_gpu_csv(std::string_view text, const std::vector<std::string>& columns);

struct GpuOfProcess {
  std::string gpu_uuid;
  GpuProcess process;
};
/// `--query-compute-apps=gpu_uuid,pid,process_name,used_memory`; a name may hold commas.
std::vector<GpuOfProcess> read_apps_csv(std::string_view text);

/// The column that an old driver does not know, from its complaint; empty if it is none.
std::string unknown_column(std::string_view text);

}  // namespace zed::gpu
