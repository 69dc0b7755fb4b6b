#include "proc/launch.hpp"

#include <system_error>

#include "base/describe.hpp"
#include "base/log.hpp"

namespace zed::proc {

AttemptFolder AttemptFolder::of(const std::filesystem::path& attempts, const JobId& job,
                                const Generation& generation) {
  return AttemptFolder(attempts / (job.str() + "-" + generation.str()));
}

Status AttemptFolder::write_launch(const Launch& launch) const {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error) return fail(ErrorCode::io, "create " + path_.string() + ": " + error.message());
  return net::write_record(path_ / "launch.json", launch, net::Endures::power_once_written);
}
Status AttemptFolder::write_supervisor(const ProcessIdentity& identity) const {
  // It holds the boot's id: after a loss of power it says nothing.
  return net::write_record(path_ / "supervisor.json", identity, net::Endures::processes);
}
Status AttemptFolder::write_exit(const ExitRecord& exit) const {
  return net::write_record(path_ / "exit.json", exit, net::Endures::power_once_written);
}
Status AttemptFolder::write_cgroup(const std::filesystem::path& path) const {
  return net::write_file(path_ / "cgroup", path.string(), net::Endures::processes);
}
Result<std::filesystem::path> AttemptFolder::read_cgroup() const {
  ZED_TRY(std::string text, read_file(path_ / "cgroup", kibibytes(8)));
  return std::filesystem::path(text);
}
Result<Launch> AttemptFolder::read_launch() const {
  return net::read_record<Launch>(path_ / "launch.json");
}
Result<ProcessIdentity> AttemptFolder::read_supervisor() const {
  return net::read_record<ProcessIdentity>(path_ / "supervisor.json");
}
Result<ExitRecord> AttemptFolder::read_exit() const {
  return net::read_record<ExitRecord>(path_ / "exit.json");
}

Status AttemptFolder::remove() const {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
  if (error) return fail(ErrorCode::io, "remove " + path_.string() + ": " + error.message());
  return {};
}

std::vector<AttemptFolder> attempt_folders(const std::filesystem::path& attempts) {
  std::vector<AttemptFolder> folders;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(attempts, error)) {
    if (!entry.is_directory(error)) continue;
    AttemptFolder folder(entry.path());
    auto launch = folder.read_launch();
    if (launch)
      folders.push_back(std::move(folder));
    else
      log_warning("attempt left alone: " + launch.error().describe());
  }
  return folders;
}

}  // namespace zed::proc
