// zedctl dev: a fleet of processes on this machine, for development, demos and tests.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <set>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/dev_fleet.hpp"
#include "cli/dev_processes.hpp"
#include "cli/orders.hpp"
#include "cli/progress.hpp"
#include "cli/table.hpp"
#include "net/files.hpp"
#include "net/private_folder.hpp"

namespace zed::cli {
namespace {

namespace fs = std::filesystem;

constexpr Millis controller_limit = seconds(20);
constexpr Millis nodes_limit = seconds(30);
constexpr Millis look_every{100};
constexpr Millis stop_grace = seconds(5);
constexpr const char* controller_name = "controller";

/// Held while a fleet is changed, so that two `dev up` do not start it twice.
Result<net::Fd> lock_folder(const fs::path& folder) {
  const fs::path path = folder / "lock";
  net::Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return fail(net::system_error(errno, "lock " + folder.string()));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::busy, "another zedctl dev is at work in " + folder.string(),
                "wait for it, then try again");
  return file;
}

/// Called while the folder is locked.
Status make_cookie(const fs::path& path) {
  std::error_code error;
  if (fs::exists(path, error)) return {};
  ZED_TRY(const std::string cookie, random_uuid());
  return net::write_file_durably(path, cookie);
}

/// All names of its daemons, the controller first.
std::vector<std::string> daemons_of(const DevFleet& fleet) {
  std::vector<std::string> names{controller_name};
  for (const DevNode& node : fleet.nodes)
    names.push_back(node.name);
  return names;
}

std::vector<std::string> running_of(const DevFleet& fleet) {
  std::vector<std::string> running;
  for (const std::string& name : daemons_of(fleet))
    if (running_in(fleet.state_of(name))) running.push_back(name);
  return running;
}

bool same_machines(const DevFleet& a, const DevFleet& b) {
  auto key = [](const DevFleet& fleet) {
    std::vector<std::string> words{fleet.controller.host,
                                   std::to_string(fleet.controller.lost_after)};
    for (const DevNode& node : fleet.nodes)
      words.push_back(node.name + " " + node.pool + " " + node.gpus);
    return words;
  };
  return key(a) == key(b);
}

Status choose_ports(DevFleet& fleet) {
  ZED_TRY(auto ports, free_ports(1 + 2 * fleet.nodes.size()));
  std::size_t next = 0;
  fleet.controller.port = ports[next++];
  for (DevNode& node : fleet.nodes) {
    node.port = ports[next++];
    node.data_port = ports[next++];
  }
  return {};
}

/// The fleet that is to run in the folder: the one that is there, unless another profile was asked
/// for and nothing of the old one runs.
Result<DevFleet> fleet_for(const DevUp& command, const fs::path& folder) {
  auto there = load_fleet(folder);
  if (!there && there.error().code != ErrorCode::not_found) return there;
  if (there && command.profile.empty()) return there;
  DevFleet wanted = built_in_profile();
  if (!command.profile.empty()) {
    ZED_TRY(wanted, read_profile(command.profile));
  }
  if (there && same_machines(*there, wanted)) return there;
  if (there && !running_of(*there).empty())
    return fail(ErrorCode::refused, "another fleet runs in " + folder.string(),
                "zedctl dev down stops it; --dir starts this one elsewhere");
  wanted.folder = folder.string();
  return wanted;
}

Status prepare(DevFleet& fleet) {
  for (const std::string& name : daemons_of(fleet))
    ZED_CHECK(net::make_private_folder(fleet.state_of(name)));
  ZED_CHECK(net::make_private_folder(fs::path(fleet.folder) / "log"));
  ZED_CHECK(make_cookie(fleet.cookie()));
  // While anything runs, the ports and the socket are what the others know it by.
  if (running_of(fleet).empty()) {
    ZED_CHECK(choose_ports(fleet));
    ZED_TRY(fleet.socket, socket_path_for(fleet.folder));
  }
  return save_fleet(fleet);
}

Status start_controller(const DevFleet& fleet) {
  ZED_TRY(fs::path program, program_beside("zed-controller"));
  const fs::path state = fleet.state_of(controller_name);
  std::vector<std::string> arguments{"run",
                                     "--state=" + state.string(),
                                     "--name=" + fleet.controller.host,
                                     "--machine=" + fleet.controller.host,
                                     "--port=" + std::to_string(fleet.controller.port),
                                     "--socket=" + fleet.socket,
                                     "--cookie-file=" + fleet.cookie().string()};
  if (fleet.controller.lost_after > 0)
    arguments.push_back("--lost-after=" + std::to_string(fleet.controller.lost_after));
  auto started = start_daemon(program, std::move(arguments), state, fleet.log_of(controller_name));
  if (!started) return fail(std::move(started).error());
  return {};
}

Status start_agent(const DevFleet& fleet, const DevNode& node) {
  ZED_TRY(fs::path program, program_beside("zed-agent"));
  const fs::path state = fleet.state_of(node.name);
  ZED_TRY(std::string run_folder, run_folder_for(state));
  const std::string controller =
      fleet.controller.host + "@127.0.0.1:" + std::to_string(fleet.controller.port);
  std::vector<std::string> arguments{"run",
                                     "--state=" + state.string(),
                                     "--name=" + node.name,
                                     "--pool=" + node.pool,
                                     "--store=dir",
                                     "--gpus=" + node.gpus,
                                     "--port=" + std::to_string(node.port),
                                     "--data-port=" + std::to_string(node.data_port),
                                     "--controller=" + controller,
                                     "--cookie-file=" + fleet.cookie().string(),
                                     "--run-folder=" + run_folder,
                                     "--jobs-as-self"};
  auto started = start_daemon(program, std::move(arguments), state, fleet.log_of(node.name));
  if (!started) return fail(std::move(started).error());
  return {};
}

using Steady = std::chrono::steady_clock::time_point;

/// Refuses if one of the daemons does not run, with its last words.
Status all_run(const DevFleet& fleet, const std::vector<std::string>& daemons) {
  for (const std::string& name : daemons)
    if (!running_in(fleet.state_of(name)))
      return fail(ErrorCode::unavailable,
                  (name == controller_name ? "the controller" : "the agent of " + name) +
                      " ended: " + tail_of(fleet.log_of(name), 3),
                  "read " + fleet.log_of(name).string());
  return {};
}

/// Asks until `done` says so about the nodes, as they were when it asked or later. One of
/// `daemons` that ends meanwhile ends the wait.
Status wait_for_nodes(
    Context& context, const DevFleet& fleet, Progress& progress, Millis limit,
    const std::string& doing, const std::vector<std::string>& daemons,
    const std::function<bool(const api::NodesReply&, Steady asked, std::string& missing)>& done) {
  http::Client client({fleet.socket, seconds(2), context.interrupt().fd()});
  std::string missing;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit.value);
  while (std::chrono::steady_clock::now() < deadline) {
    const Steady asked = std::chrono::steady_clock::now();
    auto nodes = client.call(api::ListNodes{});
    if (nodes && done(*nodes, asked, missing)) return {};
    if (!nodes && nodes.error().code == ErrorCode::cancelled) return fail(nodes.error());
    ZED_CHECK(all_run(fleet, daemons));
    progress.show(doing + (missing.empty() ? "" : ", waiting for " + missing));
    if (!context.interrupt().sleep(look_every))
      return fail(ErrorCode::cancelled, "the fleet goes on starting",
                  "zedctl dev status shows it, zedctl dev down stops it");
  }
  return fail(ErrorCode::timeout,
              doing + (missing.empty() ? ": the controller does not answer"
                                       : ": these do not come up: " + missing),
              "their logs are in " + (fs::path(fleet.folder) / "log").string());
}

/// Whether the agent that runs now was heard of, and has told what it holds: a node looks up for
/// some seconds after the death of an agent before it.
bool is_there(const api::NodeRow& row, const std::map<std::string, Steady>& started, Steady asked) {
  const NodeStatus status = row.node.status;
  if (!row.joined || !row.listed || status == NodeStatus::lost || status == NodeStatus::suspect)
    return false;
  const auto start = started.find(row.node.name.str());
  if (start == started.end()) return true;
  return std::chrono::milliseconds(row.node.silent.value) <= asked - start->second;
}

Status start_fleet(Context& context, const DevFleet& fleet) {
  Progress progress(context);
  if (!running_in(fleet.state_of(controller_name))) {
    progress.show("starting the controller");
    ZED_CHECK(start_controller(fleet));
  }
  ZED_CHECK(wait_for_nodes(context, fleet, progress, controller_limit, "starting the controller",
                           {controller_name},
                           [](const api::NodesReply&, Steady, std::string&) { return true; }));
  std::map<std::string, Steady> started;
  for (const DevNode& node : fleet.nodes) {
    if (running_in(fleet.state_of(node.name))) continue;
    progress.show("starting " + node.name);
    started[node.name] = std::chrono::steady_clock::now();
    ZED_CHECK(start_agent(fleet, node));
  }
  return wait_for_nodes(context, fleet, progress, nodes_limit, "starting the nodes",
                        daemons_of(fleet),
                        [&](const api::NodesReply& reply, Steady asked, std::string& missing) {
                          std::set<std::string> wanted;
                          for (const DevNode& node : fleet.nodes)
                            wanted.insert(node.name);
                          for (const api::NodeRow& row : reply.nodes)
                            if (is_there(row, started, asked)) wanted.erase(row.node.name.str());
                          missing = join({wanted.begin(), wanted.end()}, ", ");
                          return wanted.empty();
                        });
}

fs::path folder_of(const std::string& asked, bool prefer_current) {
  if (!asked.empty()) return fs::absolute(asked).lexically_normal();
  if (prefer_current)
    if (auto current = current_dev_fleet()) return current->folder;
  return fs::absolute(default_folder()).lexically_normal();
}

struct ProcessRow {
  std::string name;
  std::string state;  ///< "running", "not running"
  std::int64_t pid = 0;
  std::int64_t port = 0;
  std::int64_t job_processes = 0;
  std::string log;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("state", self.state);
    visit("pid", self.pid);
    visit("port", self.port);
    visit("job_processes", self.job_processes);
    visit("log", self.log);
  }
};

std::vector<ProcessRow> rows_of(const DevFleet& fleet) {
  std::vector<ProcessRow> rows;
  for (const std::string& name : daemons_of(fleet)) {
    ProcessRow row;
    row.name = name;
    const auto process = running_in(fleet.state_of(name));
    row.state = process ? "running" : "not running";
    row.pid = process ? process->pid : 0;
    const DevNode* node = fleet.find(name);
    row.port = node != nullptr ? node->port : fleet.controller.port;
    if (node != nullptr)
      row.job_processes = static_cast<std::int64_t>(job_processes_of(fleet.state_of(name)).size());
    row.log = fleet.log_of(name).string();
    rows.push_back(std::move(row));
  }
  return rows;
}

Value fleet_value(const DevFleet& fleet) {
  return Value::map()
      .set("schema", api::schema_version)
      .set("folder", fleet.folder)
      .set("socket", fleet.socket)
      .set("processes", to_value(rows_of(fleet)));
}

std::string fleet_text(const DevFleet& fleet, const View& view) {
  Table table({{"PROCESS"},
               {"STATE"},
               {"PID", Align::right},
               {"PORT", Align::right},
               {"OF JOBS", Align::right},
               {"LOG", Align::left, true, true}});
  for (const ProcessRow& row : rows_of(fleet))
    table.add({row.name, Cell(row.state, row.pid != 0 ? Style::good : Style::bad),
               row.pid != 0 ? std::to_string(row.pid) : "", std::to_string(row.port),
               row.job_processes != 0 ? std::to_string(row.job_processes) : "", row.log});
  return table.render(view) + "folder  " + fleet.folder + "\nsocket  " + fleet.socket + "\n";
}

/// Ends a whole fleet: the controller first, so that it does not see machines vanish and move jobs.
Result<bool> stop_fleet(const DevFleet& fleet) {
  bool all = true;
  std::vector<proc::ProcessIdentity> agents;
  if (auto controller = running_in(fleet.state_of(controller_name)))
    all = end_processes({*controller}, stop_grace) && all;
  for (const DevNode& node : fleet.nodes)
    if (auto agent = running_in(fleet.state_of(node.name))) agents.push_back(*agent);
  all = end_processes(agents, stop_grace) && all;
  std::vector<proc::ProcessIdentity> jobs;
  for (const DevNode& node : fleet.nodes) {
    const auto of_node = job_processes_of(fleet.state_of(node.name));
    jobs.insert(jobs.end(), of_node.begin(), of_node.end());
  }
  if (!jobs.empty()) end_processes(jobs, stop_grace);
  for (const DevNode& node : fleet.nodes)
    all = kill_jobs_of(fleet.state_of(node.name)) && all;
  return all;
}

/// A fleet of which a daemon could not start leaves no half of itself behind: its processes end,
/// and the folder is what it was before, `former` or none.
void take_back(const DevFleet& fleet, const Result<DevFleet>& former) {
  (void)stop_fleet(fleet);  // what does not end is named by `dev status`
  forget_current(fleet.folder);
  ::unlink(fleet.socket.c_str());
  if (former)
    (void)save_fleet(*former);
  else
    forget_fleet(fleet.folder);
}

}  // namespace

Result<ExitCode> carry_out(Context& context, const DevUp& command) {
  const fs::path folder = folder_of(command.folder, false);
  ZED_CHECK(net::make_private_folder(folder));
  ZED_TRY(net::Fd lock, lock_folder(folder));
  const auto former = load_fleet(folder);
  ZED_TRY(DevFleet fleet, fleet_for(command, folder));
  ZED_CHECK(prepare(fleet));
  const std::size_t before = running_of(fleet).size();
  ZED_CHECK(set_current(folder));
  if (auto started = start_fleet(context, fleet); !started) {
    // Of a fleet that ran, or is only slow, nothing is stopped.
    if (before == 0 && started.error().code == ErrorCode::unavailable) take_back(fleet, former);
    return fail(std::move(started).error());
  }
  if (context.options().json) {
    context.print(to_json(fleet_value(fleet)) + "\n");
    return ExitCode::done;
  }
  const std::size_t all = fleet.nodes.size() + 1;
  context.print((before == all ? "already up: " : "up: ") + std::string("a controller and ") +
                plural(fleet.nodes.size(), "machine") + " in " + fleet.folder +
                "\n"
                "zedctl finds it from now on; other programs: export ZED_CONTROLLER=" +
                shell_word(fleet.socket) +
                "\n"
                "  next: zedctl nodes\n"
                "        zedctl apply FILE, zedctl dispatch JOB, zedctl jobs\n"
                "        zedctl dev kill " +
                fleet.nodes.back().name +
                " kills a machine, zedctl dev up starts it again\n"
                "        zedctl dev down stops everything\n");
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const DevDown& command) {
  const fs::path folder = folder_of(command.folder, true);
  ZED_TRY(DevFleet fleet, load_fleet(folder));
  ZED_TRY(net::Fd lock, lock_folder(folder));
  const std::size_t running = running_of(fleet).size();
  {
    Progress progress(context);
    progress.show("stopping the fleet in " + folder.string());
    ZED_TRY(bool all, stop_fleet(fleet));
    if (!all)
      return fail(ErrorCode::timeout, "some processes do not end", "zedctl dev status names them");
  }
  forget_current(folder);
  ::unlink(fleet.socket.c_str());
  if (context.options().json)
    context.print(to_json(fleet_value(fleet)) + "\n");
  else
    context.print((running == 0 ? "nothing was running\n" : "stopped, jobs too\n") +
                  std::string("its data and logs stay in ") + fleet.folder +
                  "\n  next: zedctl dev up goes on with them, rm -r removes them\n");
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const DevStatus& command) {
  ZED_TRY(DevFleet fleet, load_fleet(folder_of(command.folder, true)));
  context.print(context.options().json ? to_json(fleet_value(fleet)) + "\n"
                                       : fleet_text(fleet, context.view()));
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const DevKill& command) {
  ZED_TRY(DevFleet fleet, load_fleet(folder_of(command.folder, true)));
  const DevNode* node = fleet.find(command.node);
  const bool is_controller = command.node == controller_name;
  if (node == nullptr && !is_controller) {
    const auto names = daemons_of(fleet);
    auto nearest = nearest_word(command.node, names);
    return fail(ErrorCode::not_found, "this fleet has no machine \"" + command.node + "\"",
                nearest ? "did you mean " + *nearest + "?" : "it has " + join(names, ", "));
  }
  const std::string name = is_controller ? controller_name : node->name;
  std::vector<proc::ProcessIdentity> victims;
  if (auto daemon = running_in(fleet.state_of(name))) victims.push_back(*daemon);
  // In one breath, as a power cut: a supervisor must not get to report its agent's end.
  const auto jobs = node != nullptr ? job_processes_of(fleet.state_of(name))
                                    : std::vector<proc::ProcessIdentity>{};
  victims.insert(victims.end(), jobs.begin(), jobs.end());
  const bool gone =
      kill_processes(victims) && (node == nullptr || kill_jobs_of(fleet.state_of(name)));
  if (!gone) return fail(ErrorCode::timeout, "some processes of " + name + " do not end");
  if (context.options().json)
    context.print(to_json(fleet_value(fleet)) + "\n");
  else
    context.print(victims.empty()
                      ? name + " was not running\n"
                      : "killed " + name + " (" +
                            (victims.size() == 1 ? "1 process"
                                                 : std::to_string(victims.size()) + " processes") +
                            ")\n  next: zedctl dev up starts it again\n");
  return ExitCode::done;
}

}  // namespace zed::cli
