#include "cli/dev_fleet.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <set>

#include <sys/stat.h>
#include <unistd.h>

#include "base/json.hpp"
#include "base/text.hpp"
#include "core/names.hpp"
#include "net/fd.hpp"
#include "proc/launch.hpp"

namespace zed::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_nodes = 64;
/// sockaddr_un holds 107 on Linux, 103 on macOS and FreeBSD.
constexpr std::size_t longest_socket_path = 100;
/// What an agent calls its sockets: "/<32 hexadecimal digits>.sock" and some to spare.
constexpr std::size_t longest_socket_name = 45;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<DevFleet> read_fleet(const fs::path& path) {
  ZED_TRY(std::string text, proc::read_file(path, mebibytes(1)));
  ZED_TRY(Value value, parse_json(text));
  return from_value<DevFleet>(value);
}

Status check_node(DevNode& node, std::set<std::string>& names) {
  auto name = NodeName::parse(node.name);
  if (!name) return fail(std::move(name).error());
  node.name = name->str();
  if (node.name == "controller")
    return fail(ErrorCode::invalid, "a node cannot be called \"controller\"");
  if (!names.insert(node.name).second)
    return fail(ErrorCode::exists, "two nodes are called \"" + node.name + "\"");
  if (node.pool.empty()) node.pool = "tank";
  if (auto pool = DatasetName::parse(node.pool); !pool)
    return fail(std::move(pool).error().with("pool of " + node.name));
  if (node.gpus.empty())
    return fail(ErrorCode::invalid, node.name + " has no \"gpus\"",
                "name a profile of simulated GPUs, like \"rtx-4090\"");
  return {};
}

/// FNV-1a: a name for a socket, not a secret.
std::string short_hash(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  std::string hex;
  for (int i = 0; i < 12; ++i, hash >>= 4)
    hex += "0123456789abcdef"[hash & 15U];
  return hex;
}

fs::path runtime_path() {
  const std::string session = environment("XDG_RUNTIME_DIR");
  return session.empty() ? "/tmp/zed-dev-" + std::to_string(::geteuid()) : session + "/zed-dev";
}

/// Nobody else may have put anything there: /tmp is everybody's.
Status check_is_ours(const fs::path& folder) {
  const std::string what = "use " + folder.string();
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return fail(net::system_error(errno, what));
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0)
    return fail(
        Error{ErrorCode::refused, "it is not a folder of ours alone", {}, {}}.with(what).hinted(
            "look at it, and remove it: it is made anew"));
  return {};
}

fs::path current_file(const fs::path& runtime) {
  return runtime / "current";
}

}  // namespace

fs::path DevFleet::state_of(const std::string& name) const {
  return name == "controller" ? fs::path(folder) / name : fs::path(folder) / "nodes" / name;
}

fs::path DevFleet::log_of(const std::string& name) const {
  return fs::path(folder) / "log" / (name + ".log");
}

const DevNode* DevFleet::find(const std::string& name) const {
  auto node = std::find_if(nodes.begin(), nodes.end(),
                           [&name](const DevNode& n) { return same_typed_name(n.name, name); });
  return node == nodes.end() ? nullptr : &*node;
}

std::string shell_word(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("/._-+:@%,=~").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain && !text.empty() && text.front() != '~') return text;
  std::string word = "'";
  for (char c : text)
    word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

DevFleet built_in_profile() {
  DevFleet fleet;
  fleet.controller.host = "workstation";
  fleet.nodes = {{"workstation", "tank", "rtx-4090", 0, 0},
                 {"macbook", "zpool", "m3-max-64", 0, 0},
                 {"laptop2", "data", "rtx-3080-10", 0, 0},
                 {"server", "nvme", "2x-a100-80", 0, 0}};
  return fleet;
}

Status check_profile(DevFleet& fleet) {
  if (fleet.schema != 1)
    return fail(ErrorCode::unsupported,
                "its schema is " + std::to_string(fleet.schema) + ", not 1");
  if (fleet.nodes.empty()) return fail(ErrorCode::invalid, "it has no \"nodes\"");
  if (fleet.nodes.size() > most_nodes)
    return fail(ErrorCode::invalid, "it has more than " + std::to_string(most_nodes) + " nodes");
  std::set<std::string> names;
  for (DevNode& node : fleet.nodes)
    ZED_CHECK(check_node(node, names));
  if (fleet.controller.host.empty()) fleet.controller.host = fleet.nodes.front().name;
  if (names.count(fleet.controller.host) == 0)
    return fail(ErrorCode::invalid,
                "the controller's host \"" + fleet.controller.host + "\" is none of the nodes");
  if (fleet.controller.lost_after < 0 || fleet.controller.lost_after > 86'400)
    return fail(ErrorCode::invalid, "\"lost_after\" is in seconds, 1 to 86400");
  return {};
}

Result<DevFleet> read_profile(const fs::path& path) {
  auto fleet = read_fleet(path);
  if (!fleet) return fail(std::move(fleet).error().with("read the profile " + path.string()));
  fleet->socket.clear();
  fleet->folder.clear();
  if (auto checked = check_profile(*fleet); !checked)
    return fail(std::move(checked).error().with("read the profile " + path.string()));
  return fleet;
}

Result<DevFleet> load_fleet(const fs::path& folder) {
  auto fleet = read_fleet(folder / "fleet.json");
  if (!fleet && fleet.error().code == ErrorCode::not_found)
    return fail(ErrorCode::not_found, "there is no development fleet in " + folder.string(),
                "zedctl dev up starts one");
  if (!fleet) return fail(std::move(fleet).error().with("read the fleet in " + folder.string()));
  // The folder may have been moved; what it says of itself is where it was.
  fleet->folder = folder.string();
  ZED_CHECK(check_profile(*fleet));
  return fleet;
}

Status save_fleet(const DevFleet& fleet) {
  return proc::write_file_durably(fs::path(fleet.folder) / "fleet.json",
                                  to_json_pretty(to_value(fleet)));
}

void forget_fleet(const fs::path& folder) {
  ::unlink((folder / "fleet.json").c_str());
}

fs::path default_folder() {
  if (std::string named = environment("ZED_DEV_DIR"); !named.empty()) return named;
  if (std::string state = environment("XDG_STATE_HOME"); !state.empty())
    return fs::path(state) / "zed-dev";
  if (std::string home = environment("HOME"); !home.empty())
    return fs::path(home) / ".local/state/zed-dev";
  return "/tmp/zed-dev-" + std::to_string(::geteuid()) + "/fleet";
}

Result<fs::path> runtime_folder() {
  const fs::path folder = runtime_path();
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(net::system_error(errno, "use " + folder.string()));
  ZED_CHECK(check_is_ours(folder));
  return folder;
}

Status set_current(const fs::path& folder) {
  ZED_TRY(fs::path runtime, runtime_folder());
  return proc::write_file_durably(current_file(runtime), folder.string() + "\n");
}

void forget_current(const fs::path& folder) {
  const fs::path runtime = runtime_path();
  if (!check_is_ours(runtime)) return;
  auto text = proc::read_file(current_file(runtime), kibibytes(8));
  if (text && trim(*text) == folder.string()) ::unlink(current_file(runtime).c_str());
}

std::optional<DevFleet> current_dev_fleet() {
  const fs::path runtime = runtime_path();
  if (!check_is_ours(runtime)) return std::nullopt;
  auto text = proc::read_file(current_file(runtime), kibibytes(8));
  if (!text) return std::nullopt;
  auto fleet = load_fleet(std::string(trim(*text)));
  if (!fleet) return std::nullopt;
  return std::move(*fleet);
}

Result<std::string> run_folder_for(const fs::path& state) {
  const fs::path inside = state / "run";
  if (inside.string().size() + longest_socket_name <= longest_socket_path) return inside.string();
  ZED_TRY(fs::path runtime, runtime_folder());
  return (runtime / ("r-" + short_hash(state.string()))).string();
}

Result<std::string> socket_path_for(const fs::path& folder) {
  const fs::path inside = folder / "controller.sock";
  if (inside.string().size() <= longest_socket_path) return inside.string();
  ZED_TRY(fs::path runtime, runtime_folder());
  return (runtime / ("c-" + short_hash(folder.string()) + ".sock")).string();
}

}  // namespace zed::cli
