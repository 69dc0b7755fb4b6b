#pragma once
// A development fleet on disk: what it is made of and where it is.
//
//   <dir>/fleet.json                 this description, ports included
//   <dir>/cookie                     0600, random
//   <dir>/controller/                the controller's state; pid.json by itself
//   <dir>/nodes/<node>/              an agent's state; pid.json by itself, attempts/ (proc/launch)
//   <dir>/log/<name>.log             what each wrote to standard output and error
//   <runtime>/current                the folder of the fleet that was started last
//
// <runtime> is $XDG_RUNTIME_DIR/zed-dev, else /tmp/zed-dev-<uid>: 0700 and ours, or not used.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.hpp"
#include "base/result.hpp"

namespace zed::cli {

/// `text` as one word of a shell: quoted if it has more than letters, digits and "/._-+:@%,=~".
std::string shell_word(const std::string& text);

struct DevNode {
  std::string name;
  std::string pool;
  std::string gpus;            ///< profile of simulated GPUs: "rtx-4090"
  std::int64_t port = 0;       ///< 0 until chosen
  std::int64_t data_port = 0;  ///< 0 until chosen
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("pool", self.pool);
    visit("gpus", self.gpus);
    visit("port", self.port);
    visit("data_port", self.data_port);
  }
};

struct DevController {
  std::string host;             ///< the node whose machine it runs on; empty: the first
  std::int64_t lost_after = 0;  ///< seconds until a silent node is lost; 0: the default
  std::int64_t port = 0;        ///< 0 until chosen
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("host", self.host);
    visit("lost_after", self.lost_after);
    visit("port", self.port);
  }
};

/// As a profile file says it ({"schema":1,"controller":{…},"nodes":[…]}), and as fleet.json keeps
/// it.
struct DevFleet {
  std::int64_t schema = 1;
  DevController controller;
  std::vector<DevNode> nodes;
  std::string socket;  ///< empty in a profile
  std::string folder;  ///< empty in a profile
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("schema", self.schema);
    visit("controller", self.controller);
    visit("nodes", self.nodes);
    visit("socket", self.socket);
    visit("folder", self.folder);
  }

  std::filesystem::path state_of(const std::string& name) const;  ///< "controller" or a node
  std::filesystem::path log_of(const std::string& name) const;
  std::filesystem::path cookie() const { return std::filesystem::path(folder) / "cookie"; }
  const DevNode* find(const std::string& name) const;
};

/// workstation (RTX 4090), macbook (M3 Max), laptop2 (RTX 3080), server (two A100).
DevFleet built_in_profile();

/// Errors: those of reading; `invalid` naming what is wrong: no nodes, a name that is none or
/// taken, a controller on a machine that is not there, an unknown schema.
Result<DevFleet> read_profile(const std::filesystem::path& path);
/// The same rules for a description that was made otherwise.
Status check_profile(DevFleet& fleet);

/// Errors: `not_found` if there is no fleet in that folder, `corrupt`.
Result<DevFleet> load_fleet(const std::filesystem::path& folder);
/// Writes fleet.json durably.
Status save_fleet(const DevFleet& fleet);
/// Removes fleet.json: from then on there is no fleet in the folder.
void forget_fleet(const std::filesystem::path& folder);

/// $ZED_DEV_DIR, else $XDG_STATE_HOME/zed-dev, else ~/.local/state/zed-dev, else under the runtime
/// folder.
std::filesystem::path default_folder();

/// Made if it is not there. Errors: `refused` if others could have put things there.
Result<std::filesystem::path> runtime_folder();
/// Remembers a fleet as the current one, or forgets it.
Status set_current(const std::filesystem::path& folder);
void forget_current(const std::filesystem::path& folder);
/// The fleet that was started last, if it is still described there.
std::optional<DevFleet> current_dev_fleet();

/// Where the sockets of an agent can be: <state>/run, or, if paths there are too long for a socket,
/// a folder in the runtime folder.
Result<std::string> run_folder_for(const std::filesystem::path& state);

/// Where its UNIX socket can be: in its folder, or, if that path is too long for a socket, in the
/// runtime folder.
Result<std::string> socket_path_for(const std::filesystem::path& folder);

}  // namespace zed::cli
