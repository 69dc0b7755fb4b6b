#include "store/zfs/doctor.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fcntl.h>
#include <unistd.h>

#include "base/number.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "store/zfs/output.hpp"

namespace zed::store::zfs {
namespace {

namespace fs = std::filesystem;
using Level = Finding::Level;

constexpr std::size_t most_pools = 64;
constexpr std::int64_t nearly_full = 85;  // percent: OpenZFS gets slow somewhere behind this
constexpr std::int64_t full = 97;

/// Of a command that did not do what it should.
std::string why_not(const Result<Output>& said) {
  return said ? percent_encode(trim(said->err)) : said.error().message;
}

/// Where packages put the module for one kernel: built in, Debian's and Fedora's DKMS, Ubuntu's.
constexpr const char* module_folders[] = {"extra",       "extra/zfs",      "updates/dkms",
                                          "kernel/zfs",  "kernel/zfs/zfs", "updates",
                                          "weak-updates"};

bool has_module(const DoctorQuestion& question) {
  const fs::path modules = question.root / "lib/modules" / question.kernel;
  std::error_code error;
  return std::any_of(std::begin(module_folders), std::end(module_folders), [&](const char* folder) {
    for (const char* name : {"zfs.ko", "zfs.ko.xz", "zfs.ko.zst", "zfs.ko.gz"})
      if (fs::exists(modules / folder / name, error)) return true;
    return false;
  });
}

Finding without_zfs(const DoctorQuestion& question) {
  return {question.is_wanted ? Level::fail : Level::warn, "zfs",
          "OpenZFS's commands are not installed: the agent can keep its data in a folder only "
          "(--store dir)",
          "Debian, Ubuntu: apt install zfsutils-linux (and zfs-dkms on Debian)"};
}

Finding without_module(const DoctorQuestion& question) {
  Finding finding{question.is_wanted ? Level::fail : Level::warn, "zfs",
                  "OpenZFS's commands are there, its kernel module is not loaded", "modprobe zfs"};
  if (has_module(question)) return finding;
  finding.what = "OpenZFS's commands are there, but no module for kernel " + question.kernel;
  finding.todo =
      "Debian: apt install linux-headers-" + question.kernel + " zfs-dkms, then modprobe zfs";
  return finding;
}

/// "2.1.11" of "zfs-kmod-2.1.11-1" in what `zfs version` says.
std::string version_after(const std::string& output, std::string_view prefix) {
  for (const std::string& line : split(output, '\n')) {
    if (!std::string_view(line).starts_with(prefix)) continue;
    const std::string rest = line.substr(prefix.size());
    return rest.substr(0, rest.find('-'));
  }
  return {};
}

Finding version_finding(const std::string& said, const Version& version) {
  const std::string module = version_after(said, "zfs-kmod-");
  const std::string tools = version_after(said, "zfs-");
  if (!version.at_least(2, 1))
    return {Level::fail, "zfs", "OpenZFS " + version.text + " is older than 2.1",
            "upgrade it, or use --store dir"};
  if (!tools.empty() && tools != module && said.find("zfs-kmod-") != std::string::npos)
    return {Level::warn, "zfs",
            "OpenZFS's commands are " + tools + ", the loaded module is " + module,
            "reboot, so that the module is the one that was installed"};
  return {Level::ok, "zfs", "OpenZFS " + version.text, ""};
}

// ---- pools --------------------------------------------------------------------------------------

struct Pool {
  std::string name;
  std::int64_t size = 0;
  std::int64_t free = 0;
  std::int64_t percent = 0;
  std::string health;
  bool readonly = false;
};

std::vector<Pool> parse_pools(const std::string& output) {
  std::vector<Pool> pools;
  for (const std::string& line : split(output, '\n')) {
    auto columns = split(line, '\t');
    if (columns.size() != 6 || pools.size() == most_pools) continue;
    pools.push_back({columns[0], parse_number<std::int64_t>(columns[1]).value_or(0),
                     parse_number<std::int64_t>(columns[2]).value_or(0),
                     parse_number<std::int64_t>(columns[3]).value_or(0), columns[4],
                     columns[5] == "on"});
  }
  return pools;
}

Finding finding_of(const Pool& pool) {
  Finding finding{Level::ok, "pool " + pool.name, "", ""};
  const std::string room = show(Bytes{pool.free}) + " of " + show(Bytes{pool.size}) + " free";
  finding.what = pool.health + ", " + room;
  if (pool.health != "ONLINE") {
    finding.level = pool.health == "DEGRADED" ? Level::warn : Level::fail;
    finding.todo = "zpool status " + pool.name;
  } else if (pool.readonly) {
    finding.level = Level::fail;
    finding.what = "imported readonly, " + room;
    finding.todo = "zpool export " + pool.name + " && zpool import " + pool.name;
  } else if (pool.percent >= nearly_full) {
    finding.level = pool.percent >= full ? Level::fail : Level::warn;
    finding.what = std::to_string(pool.percent) + " % full, " + room;
    finding.todo = "zfs list -o space -r " + pool.name +
                   " shows what takes it; zedctl prune JOB thins checkpoints out";
  }
  return finding;
}

void examine_pools(Commands& commands, const DoctorQuestion& question,
                   std::vector<Finding>& findings) {
  auto listed =
      commands.run({"zpool", "list", "-Hp", "-o", "name,size,free,capacity,health,readonly"}, {});
  if (!listed || !listed->ok) {
    findings.push_back(
        {Level::fail, "pools", "they cannot be listed: " + why_not(listed), "zpool status"});
    return;
  }
  const std::string wanted = question.pool.substr(0, question.pool.find('/'));
  bool has_wanted = wanted.empty();
  const auto pools = parse_pools(listed->out);
  for (const Pool& pool : pools) {
    findings.push_back(finding_of(pool));
    has_wanted = has_wanted || pool.name == wanted;
  }
  if (pools.empty() && !question.is_wanted)
    findings.push_back({Level::warn, "pools", "no pool is imported",
                        "zpool import shows what could be; zpool create tank DISK… makes one"});
  else if (!has_wanted)
    findings.push_back({question.is_wanted ? Level::fail : Level::warn, "pool " + wanted,
                        "it is not imported here",
                        "zpool import " + wanted + ", or --pool names another one"});
}

// ---- what an ordinary user may do ---------------------------------------------------------------

void examine_rights(Commands& commands, const DoctorQuestion& question,
                    std::vector<Finding>& findings) {
  if (question.privileged || question.pool.empty()) return;
  const std::string subject = "zfs allow " + question.pool;
  auto said = commands.run({"zfs", "allow", question.pool}, {});
  if (!said || !said->ok) {
    findings.push_back({Level::fail, subject, "it cannot be asked: " + why_not(said),
                        "zfs list " + question.pool});
    return;
  }
  const auto may = allowed(said->out, question.user, question.groups);
  std::vector<std::string> missing;
  for (const std::string& permission : replica_permissions())
    if (std::find(may.begin(), may.end(), permission) == may.end()) missing.push_back(permission);
  if (missing.empty()) {
    findings.push_back({Level::ok, subject,
                        question.user + " may hold copies (jobs need an agent of root's: only root "
                                        "may mount)",
                        ""});
    return;
  }
  findings.push_back({question.is_wanted ? Level::fail : Level::warn, subject,
                      question.user + " lacks " + join(missing, ", ") +
                          ": an agent of this user could not hold copies",
                      "as root: zfs allow -u " + question.user + " " +
                          join(replica_permissions(), ",") + " " + question.pool});
}

}  // namespace

const std::vector<std::string>& replica_permissions() {
  static const std::vector<std::string> needed{
      "bookmark", "canmount", "create",   "destroy", "devices", "hold",     "mount",    "readonly",
      "receive",  "release",  "rollback", "send",    "setuid",  "snapshot", "userprop", "atime"};
  return needed;
}

std::vector<std::string> allowed(const std::string& output, const std::string& user,
                                 const std::vector<std::string>& groups) {
  // Blocks as:
  //   ---- Permissions on tank ---------------------------
  //   Permission sets:
  //           @basic create,mount
  //   Local+Descendent permissions:
  //           user alice @basic,receive
  //           group staff hold
  //           everyone release
  std::map<std::string, std::set<std::string>> sets;
  std::set<std::string> given;
  std::string section;
  for (const std::string& line : split(output, '\n')) {
    const auto words = split(std::string(trim(line)), ' ');
    if (line.empty() || words.empty()) continue;
    if (line.front() != '\t' && line.front() != ' ') {
      section = line;
      continue;
    }
    auto add = [](std::set<std::string>& to, const std::string& list) {
      for (const std::string& one : split(list, ','))
        to.insert(one);
    };
    if (section.starts_with("Permission sets") && words.size() == 2) {
      add(sets[words[0]], words[1]);
      continue;
    }
    // What is given to descendants only does not make a dataset in the pool itself.
    if (!section.starts_with("Local")) continue;
    const bool mine = (words.size() == 3 && words[0] == "user" && words[1] == user) ||
                      (words.size() == 3 && words[0] == "group" &&
                       std::find(groups.begin(), groups.end(), words[1]) != groups.end()) ||
                      (words.size() == 2 && words[0] == "everyone");
    if (mine) add(given, words.back());
  }
  // A set may name sets; deeper nesting than there are sets is a circle.
  for (std::size_t depth = 0; depth <= sets.size(); ++depth)
    for (const std::string& name : std::set<std::string>(given))
      if (auto set = sets.find(name); set != sets.end())
        given.insert(set->second.begin(), set->second.end());
  std::erase_if(given, [](const std::string& name) { return name.starts_with("@"); });
  return {given.begin(), given.end()};
}

std::vector<Finding> examine_zfs(Commands& commands, const DoctorQuestion& question) {
  std::vector<Finding> findings;
  auto said = commands.run({"zfs", "version"}, {});
  if (!said && said.error().code == ErrorCode::unsupported) return {without_zfs(question)};
  if (!said) return {{Level::fail, "zfs", said.error().message, said.error().hint}};
  const std::string text = said->out + said->err;
  auto version = parse_version(text);
  const bool loaded = text.find("zfs-kmod-") != std::string::npos;
  if (!version || !loaded) return {without_module(question)};
  findings.push_back(version_finding(text, *version));
  std::error_code error;
  const fs::path device = question.root / "dev/zfs";
  if (!fs::exists(device, error) || ::access(device.c_str(), R_OK | W_OK) != 0)
    findings.push_back({Level::fail, "/dev/zfs", "this user may not open it",
                        "as root: chmod 666 /dev/zfs (OpenZFS asks `zfs allow` who may do what)"});
  examine_pools(commands, question, findings);
  examine_rights(commands, question, findings);
  return findings;
}

}  // namespace zed::store::zfs
