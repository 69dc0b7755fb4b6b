#pragma once
// `zed-agent doctor`, the half of `zedctl doctor` that looks at the machine: what is wrong with
// this machine for an agent, and what to type. The judges are pure, what they judge is gathered by
// run().

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "core/finding.hpp"
#include "core/gpu.hpp"
#include "gpu/device.hpp"
#include "pki/certificate.hpp"

namespace CLI {
class App;
}

namespace zed::bin {

struct DoctorCommand {
  std::string state;  ///< of the agent; empty: the default
  std::string pool;   ///< empty: the only one there is
  std::string store;  ///< "zfs" or "dir": what the agent is to use; empty: not said
  std::uint16_t port = 4370;
  std::uint16_t data_port = 4373;
  std::string root = "/";

  void add_to(CLI::App& app);
  /// Prints the findings as JSON (core/finding.hpp): `zedctl doctor` shows them. The exit status: 1
  /// if one is a failure.
  int run() const;
};

/// The agent's certificate: nothing if the machine has not joined a fleet, an error if its files
/// cannot be used.
Finding judge_certificate(const Result<std::optional<pki::CertificateInfo>>& own, WallTime now);
/// A port that the agent will listen on: whether somebody can, and whether our agent does already.
Finding judge_port(std::uint16_t port, std::string_view what, const Status& listening,
                   bool agent_runs);
/// Whether something keeps the clock right, by the kernel's word; none: it does not tell.
Finding judge_clock(std::optional<bool> synchronised);
Finding judge_cgroup(bool has_v2);
/// How many files a process may have open here: a controller needs one for each agent.
Finding judge_open_files(std::uint64_t most);
/// Who jobs run as: an agent of root's needs the user that the package makes.
Finding judge_job_user(bool is_root, const std::string& user, const Status& job_user);
std::vector<Finding> judge_gpus(const std::vector<Gpu>& gpus,
                                const std::vector<gpu::Problem>& problems);
/// The folder of everything that the agent keeps.
Finding judge_state_folder(const std::string& folder, bool may_write, std::optional<Bytes> free);
/// What starts of the dir store set aside there (store/dir/sweep.hpp).
Finding judge_set_aside(const std::string& folder, std::size_t count);

}  // namespace zed::bin
