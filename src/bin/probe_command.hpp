#pragma once
// `zed-agent probe`: what GPUs this machine has, and where each fact came from.

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace zed::bin {

struct ProbeCommand {
  bool json = false;   ///< the document of docs/hardware.md
  bool full = false;   ///< everything, for the agent that runs this as its helper
  bool nvml = false;   ///< NVML alone, for ourselves
  bool facts = false;  ///< of the rest of the machine
  bool wake = false;
  bool wake_unknown = false;
  std::string root = "/";
  std::string last;  ///< a file that --full wrote
  int timeout_s = 10;

  void add_to(CLI::App& app);
  /// Prints the answer; the program's exit status.
  int run() const;
};

}  // namespace zed::bin
