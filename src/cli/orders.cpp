#include "cli/orders.hpp"

#include <array>
#include <cerrno>

#include <unistd.h>

#include "base/id.hpp"

namespace zed::cli {

Result<std::string> random_uuid() {
  std::array<std::uint8_t, 16> bytes{};
  if (::getentropy(bytes.data(), bytes.size()) != 0)
    return fail(net::system_error(errno, "get random bytes"));
  return hex_of(bytes);
}

bool is_over(JobState state) {
  switch (state) {
  case JobState::succeeded:
  case JobState::failed:
  case JobState::cancelled:
  case JobState::stopped: return true;
  case JobState::pending:
  case JobState::preparing:
  case JobState::running:
  case JobState::checkpointing:
  case JobState::stopping:
  case JobState::lost:
  case JobState::waiting: return false;
  }
  return false;
}

Result<api::JobRow> find_job(http::Client& client, const JobId& id) {
  ZED_TRY(auto jobs, client.call(api::ListJobs{true}));
  for (api::JobRow& job : jobs.jobs)
    if (job.id == id) return std::move(job);
  return fail(ErrorCode::not_found, "the job is gone from the controller's list",
              "zedctl jobs --all");
}

}  // namespace zed::cli
