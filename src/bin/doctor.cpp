#include "bin/doctor.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <grp.h>
#include <pwd.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "bin/daemon.hpp"
#include "bin/identity_files.hpp"
#include "bin/init.hpp"
#include "gpu/inventory.hpp"
#include "gpu/probe.hpp"
#include "net/socket.hpp"
#include "net/system.hpp"
#include "net/tls.hpp"
#include "proc/identity.hpp"
#include "proc/job_user.hpp"
#include "proc/launch.hpp"
#include "sched/nominal.hpp"
#include "store/dir/layout.hpp"
#include "store/zfs/doctor.hpp"

namespace zed::bin {
namespace {

namespace fs = std::filesystem;
using Level = Finding::Level;

constexpr Millis day = minutes(60 * 24);
/// A certificate is renewed in its last third, 30 days of 90: one that is nearer to its end than
/// this was not.
constexpr Millis renewal_overdue = day * 7;
constexpr Bytes little_room = gibibytes(1);

std::string user_name() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry != nullptr ? entry->pw_name : std::to_string(::geteuid());
}

std::vector<std::string> group_names() {
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i)
    if (const group* entry = ::getgrgid(groups[static_cast<std::size_t>(i)]))
      names.emplace_back(entry->gr_name);
  return names;
}

Result<std::optional<pki::CertificateInfo>> own_certificate(const fs::path& state) {
  const IdentityFiles files(state);
  if (!files.has_identity()) return std::optional<pki::CertificateInfo>{};
  ZED_TRY(auto tls, files.load_tls());
  return tls->own();
}

/// Whether the agent of that folder runs: its ports are taken by itself then.
bool agent_runs(const fs::path& state) {
  auto text = proc::read_file(state / "pid.json");
  auto value = text ? parse_json(*text) : Result<Value>(fail(text.error()));
  auto owner = value ? from_value<proc::ProcessIdentity>(*value)
                     : Result<proc::ProcessIdentity>(fail(value.error()));
  return owner && proc::is_alive(*owner);
}

Status try_port(std::uint16_t port) {
  ZED_CHECK(net::listen_tcp({"127.0.0.1", port}, net::Exposure::loopback_only));
  return {};
}

std::optional<bool> clock_is_synchronised() {
  timex state{};
  const int status = ::ntp_adjtime(&state);
  if (status < 0) return std::nullopt;
  return status != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
}

std::vector<Finding> look_at_gpus(const std::string& root) {
  gpu::ProbeOptions options;
  options.root = root;
  options.self = net::own_program().value_or(fs::path());
  const gpu::Report report = gpu::probe_machine(options);
  const auto nominal = [](Bytes reported, std::string_view model) {
    return sched::nominal_size_gb(reported, model);
  };
  return judge_gpus(gpu::core_gpus(report, nominal), report.problems);
}

std::vector<Finding> look_at_zfs(const DoctorCommand& command, const std::string& user) {
  store::zfs::DoctorQuestion question;
  question.pool = command.pool;
  question.is_wanted = command.store == "zfs";
  question.privileged = ::geteuid() == 0;
  question.user = user;
  question.groups = group_names();
  question.root = command.root;
  utsname system{};
  if (::uname(&system) == 0) question.kernel = system.release;
  auto commands = store::zfs::make_system_commands();
  return store::zfs::examine_zfs(*commands, question);
}

Finding look_at_state_folder(const fs::path& state) {
  fs::path there = state;
  std::error_code error;
  while (!fs::exists(there, error) && there.has_parent_path() && there != there.parent_path())
    there = there.parent_path();
  const auto space = fs::space(there, error);
  std::optional<Bytes> free;
  if (!error) free = Bytes{static_cast<std::int64_t>(space.available)};
  return judge_state_folder(state.string(), ::access(there.c_str(), W_OK | X_OK) == 0, free);
}

/// Nothing where nothing is.
std::optional<Finding> look_at_set_aside(const fs::path& pool) {
  const fs::path folder = pool / store::layout::lost;
  std::error_code error;
  std::size_t count = 0;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    ++count;
  return count == 0 ? std::nullopt : std::optional(judge_set_aside(folder.string(), count));
}

}  // namespace

Finding judge_certificate(const Result<std::optional<pki::CertificateInfo>>& own, WallTime now) {
  const std::string subject = "certificate";
  if (!own)
    return {Level::fail, subject, own.error().describe(),
            own.error().hint.empty() ? "zed-agent join HOST --token TOKEN" : own.error().hint};
  if (!*own)
    return {Level::warn, subject,
            "this machine has joined no fleet: its agent serves this machine alone",
            "on the controller's machine: zedctl token create --node " + machine_name() +
                "; here: zed-agent join HOST --token TOKEN"};
  const pki::CertificateInfo& info = **own;
  const std::string whose = info.identity.node;
  if (info.not_before > now)
    return {Level::fail, subject, whose + "'s is not valid before " + to_iso8601(info.not_before),
            "this machine's clock is behind: timedatectl set-ntp true"};
  const Millis left{info.not_after.ms - now.ms};
  if (left.value <= 0)
    return {Level::fail, subject, whose + "'s ended on " + to_iso8601(info.not_after),
            "zedctl node forget " + info.identity.name() +
                " where the controller is, then join anew"};
  if (left < renewal_overdue)
    return {Level::warn, subject,
            whose + "'s ends on " + to_iso8601(info.not_after) + " and was not renewed",
            "start the agent: it renews it by itself, if it reaches the controller"};
  return {Level::ok, subject, whose + ", until " + to_iso8601(info.not_after).substr(0, 10), ""};
}

Finding judge_port(std::uint16_t port, std::string_view what, const Status& listening,
                   bool agent_runs) {
  const std::string subject = "port " + std::to_string(port);
  if (listening) return {Level::ok, subject, "free, for " + std::string(what), ""};
  if (listening.error().code == ErrorCode::busy && agent_runs)
    return {Level::ok, subject, "the agent listens there", ""};
  if (listening.error().code == ErrorCode::busy)
    return {Level::fail, subject,
            "another program listens there: it is wanted for " + std::string(what),
            "ss -ltnp 'sport = :" + std::to_string(port) + "' names it"};
  return {Level::fail, subject, listening.error().describe(), listening.error().hint};
}

Finding judge_clock(std::optional<bool> synchronised) {
  if (!synchronised)
    return {Level::warn, "clock", "the kernel does not tell whether it is kept right", ""};
  if (*synchronised) return {Level::ok, "clock", "it is kept right", ""};
  return {Level::warn, "clock",
          "nothing keeps it right: certificates forgive an hour, people fewer",
          "timedatectl set-ntp true, or run chrony"};
}

Finding judge_cgroup(bool has_v2) {
  if (has_v2) return {Level::ok, "cgroup", "version 2", ""};
  return {Level::warn, "cgroup",
          "no version 2: a job's processes are found by their environment instead",
          "boot with systemd.unified_cgroup_hierarchy=1"};
}

Finding judge_open_files(std::uint64_t most) {
  const std::string count = std::to_string(most) + " a process";
  if (most >= enough_open_files) return {Level::ok, "open files", count, ""};
  return {Level::warn, "open files",
          "only " + count + ": a controller here needs one for each agent, shell and client",
          "raise it: ulimit -Hn " + std::to_string(enough_open_files) +
              ", or LimitNOFILE= of its service"};
}

Finding judge_job_user(bool is_root, const std::string& user, const Status& job_user) {
  if (!is_root) return {Level::ok, "jobs", "would run as " + user, ""};
  if (job_user) return {Level::ok, "jobs", std::string("run as ") + proc::default_job_user, ""};
  return {Level::fail, "jobs",
          std::string("an agent of root runs none as root, and there is no user ") +
              proc::default_job_user,
          std::string("useradd --system --no-create-home ") + proc::default_job_user};
}

std::vector<Finding> judge_gpus(const std::vector<Gpu>& gpus,
                                const std::vector<gpu::Problem>& problems) {
  std::vector<Finding> findings;
  for (const Gpu& gpu : gpus) {
    Finding finding{Level::ok, "gpu " + std::to_string(findings.size()), gpu.model, ""};
    if (gpu.health != GpuHealth::ok) {
      const bool is_out = !is_schedulable(gpu.health) && gpu.health != GpuHealth::reserved;
      finding.level = is_out ? Level::fail : Level::warn;
      finding.what +=
          ": " + std::string(to_string(gpu.health)) + (gpu.why.empty() ? "" : ", " + gpu.why);
      finding.todo = "zed-agent probe says more";
    }
    findings.push_back(std::move(finding));
  }
  for (const gpu::Problem& problem : problems)
    findings.push_back({Level::warn, "gpu", problem.what, problem.act});
  if (findings.empty())
    findings.push_back({Level::ok, "gpu", "none: jobs that need no GPU can run here", ""});
  return findings;
}

Finding judge_state_folder(const std::string& folder, bool may_write, std::optional<Bytes> free) {
  const std::string subject = "state";
  if (!may_write)
    return {Level::fail, subject, "this user may not write to " + folder,
            "--state names another folder, or run the agent as root"};
  if (!free) return {Level::warn, subject, folder + ": how much is free is not known", ""};
  if (*free < little_room)
    return {Level::warn, subject, folder + ": only " + show(*free) + " are free",
            "make room: the agent keeps logs and records of attempts there"};
  return {Level::ok, subject, folder + ", " + show(*free) + " free", ""};
}

Finding judge_set_aside(const std::string& folder, std::size_t count) {
  return {Level::warn, "store",
          folder + " holds " + plural(count, "folder") + " that a start of the store set aside",
          "copy from there what you miss, then remove it"};
}

void DoctorCommand::add_to(CLI::App& app) {
  app.add_option("--state", state, "folder of everything that the agent keeps");
  app.add_option("--pool", pool, "the agent's pool");
  app.add_option("--store", store, "zfs or dir: what the agent is to use")
      ->check(CLI::IsMember({"zfs", "dir"}));
  app.add_option("--port", port, "for controllers");
  app.add_option("--data-port", data_port, "for transfers");
  app.add_option("--root", root, "look at /sys, /dev and /lib/modules below this folder")
      ->check(CLI::ExistingDirectory);
}

int DoctorCommand::run() const {
  const fs::path folder = state.empty() ? default_state("agent") : fs::path(state);
  const std::string user = user_name();
  const bool runs = agent_runs(folder);
  Findings all;
  all.findings = look_at_zfs(*this, user);
  auto add = [&all](Finding finding) { all.findings.push_back(std::move(finding)); };
  add(look_at_state_folder(folder));
  if (auto aside = look_at_set_aside(folder / "pool")) add(std::move(*aside));
  add(judge_port(port, "controllers", try_port(port), runs));
  add(judge_port(data_port, "transfers", try_port(data_port), runs));
  for (Finding& finding : look_at_gpus(root))
    add(std::move(finding));
  std::error_code error;
  add(judge_cgroup(fs::exists(fs::path(root) / "sys/fs/cgroup/cgroup.controllers", error)));
  add(judge_open_files(raise_open_files()));
  auto found = proc::find_job_user(proc::default_job_user);
  add(judge_job_user(::geteuid() == 0, user, found ? Status() : Status(fail(found.error()))));
  add(judge_certificate(own_certificate(folder), wall_now()));
  add(judge_clock(clock_is_synchronised()));
  const std::string text = to_json_pretty(to_value(all));
  std::fputs(text.c_str(), stdout);
  for (const Finding& finding : all.findings)
    if (finding.level == Level::fail) return 1;
  return 0;
}

}  // namespace zed::bin
