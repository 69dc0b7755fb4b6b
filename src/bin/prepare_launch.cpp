#include "bin/prepare_launch.hpp"

#include <fcntl.h>

#include <cstdlib>
#include <span>

#include "base/text.hpp"
#include "bin/agent_shell.hpp"
#include "core/environment.hpp"
#include "proc/job_user.hpp"
#include "proc/setup_folder.hpp"
#include "store/files/sha256.hpp"

namespace zed::bin {
namespace {

/// What stands for a setup on this node: two jobs of the same one share what it installs. What Zed
/// itself says to a job is no part of it, or no two would.
std::string setup_key(const env::LaunchRequest& request, const std::string& user) {
  std::string text = request.setup->command;
  for (const std::string& part : {request.content ? request.content->str() : "", user})
    text += '\0' + part;
  for (const auto& [name, value] : request.env)
    if (!name.starts_with("ZED_")) text.append(1, '\0').append(name).append("=").append(value);
  return store::hex_of(store::sha256(std::as_bytes(std::span(text)))).substr(0, 32);
}

/// Whose processes the job's are; its folder is theirs then.
Status choose_user(const AgentConfig& config, proc::Launch& launch) {
  if (config.jobs_as_self) return {};
  ZED_TRY(auto user, proc::user_of_jobs(launch.request.run_as));
  if (!user) return {};
  launch.uid = user->uid;
  launch.gid = user->gid;
  launch.environment["HOME"] = user->home;
  launch.environment["USER"] = user->name;
  net::Fd folder(::open(launch.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return fail(net::system_error(errno, "open " + launch.directory));
  return proc::give_to(folder.get(), *user);
}

/// Where its setup keeps what it installs, and that it is found there by name.
Status prepare_setup(const AgentConfig& config, proc::Launch& launch) {
  if (!launch.request.setup) return {};
  std::optional<proc::JobUser> user;
  if (launch.uid) {
    ZED_TRY(user, proc::user_of_jobs(launch.request.run_as));
  }
  auto& environment = launch.environment;
  const auto setups = config.state_folder / "setup";
  const auto folder = setups / setup_key(launch.request, user ? user->name : "");
  ZED_CHECK(proc::make_setup_folder(folder, user));
  proc::drop_unused_setups(setups);
  launch.setup_folder = folder.string();
  environment["ZED_SETUP_DIR"] = (folder / "files").string();
  environment["PATH"] = proc::setup_search_path(folder, environment["PATH"]);
  return {};
}

Result<std::string> path_of(env::Store& store, const Input& input) {
  ZED_TRY(Dataset dataset, store.inspect(input.dataset));
  const Snapshot* snapshot = dataset.find(input.snapshot);
  if (snapshot == nullptr)
    return fail(ErrorCode::not_found, "the snapshot of " + input.dataset.str() +
                                          " that this job needs is not here any more");
  ZED_TRY(auto path, store.snapshot_path({input.dataset, snapshot->name}));
  return path.string();
}

Status show_inputs(env::Store& store, proc::Launch& launch) {
  if (launch.request.model) {
    ZED_TRY(launch.environment["ZED_MODEL_DIR"], path_of(store, *launch.request.model));
  }
  std::vector<std::string> data;
  for (const Input& input : launch.request.data) {
    ZED_TRY(std::string path, path_of(store, input));
    data.push_back(std::move(path));
  }
  if (!data.empty()) launch.environment["ZED_DATA_DIR"] = join(data, ":");
  return {};
}

void show_gpus(env::Gpus& gpus, proc::Launch& launch) {
  const char* variable = visibility_variable(launch.request.vendor);
  if (variable == nullptr) return;
  std::vector<std::string> names;
  for (const std::string& uuid : launch.request.visible_gpus)
    names.push_back(gpus.visible_name(uuid));
  launch.environment[variable] = join(names, ",");
}

}  // namespace

Result<proc::Launch> prepare_launch(const AgentConfig& config, env::Store& store, env::Gpus& gpus,
                                    const env::LaunchRequest& request) {
  proc::Launch launch;
  launch.request = request;
  ZED_TRY(auto live, store.open_live(request.attempt.dataset));
  launch.directory = live.string();
  auto& environment = launch.environment;
  for (const char* inherited : {"PATH", "HOME", "LANG", "TMPDIR", "USER"})
    if (const char* value = std::getenv(inherited)) environment[inherited] = value;
  ZED_CHECK(choose_user(config, launch));
  for (const auto& [name, value] : request.env)
    environment[name] = value;
  environment["ZED_JOB_DIR"] = launch.directory;
  environment["ZED_JOB_ID"] = request.attempt.job.str();
  ZED_CHECK(show_inputs(store, launch));
  show_gpus(gpus, launch);
  std::string mark = request.attempt.job.str().substr(0, 8) + "-" +
                     std::to_string(request.attempt.generation.term.number) + "-" +
                     std::to_string(request.attempt.generation.counter);
  launch.control_socket = config.run_folder / ("s-" + mark);
  environment["ZED_SOCKET"] = config.run_folder / ("j-" + mark);
  ZED_CHECK(prepare_setup(config, launch));
  return launch;
}

}  // namespace zed::bin
