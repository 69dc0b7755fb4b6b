#pragma once
// The commands of daily use, read: plain data like those of invocation.hpp, which includes this.

#include <cstdint>
#include <string>
#include <vector>

namespace zed::cli {

struct RunCommand {
  std::vector<std::string> argv;
  std::string name;
  std::string code;      ///< folder; empty: the one we are in, if the command names a file of it
  bool no_code = false;  ///< none, whatever the command names
  std::string code_on;   ///< whose disk `code` is on
  std::string setup;     ///< shell command before the first start
  std::string setup_timeout;
  std::string model;
  std::vector<std::string> data;
  std::vector<std::string> env;  ///< "NAME=VALUE", or "NAME" for our own value
  std::vector<std::string> requires_;
  std::vector<std::string> prefer;
  std::string checkpoint_every;
  std::string timeout;
  std::int64_t retries = 0;
  std::int64_t priority = 0;
  bool detach = false;
};
struct MetricsCommand {
  std::string target;  ///< JOB or JOB@CHECKPOINT
  std::vector<std::string> names;
  std::int64_t points = 1000;
};
struct FilesCommand {
  std::string target;  ///< JOB[@CHECKPOINT][:PATH]
};
struct CopyCommand {
  std::string from;  ///< JOB[@CHECKPOINT]:PATH
  std::string to;    ///< file or folder here; "-": standard output
};
struct DiffCommand {
  std::string a;
  std::string b;
  bool only_names = false;  ///< no texts
};
struct ReplicateCommand {
  std::string what;
  std::string to;
  bool dry_run = false;
};
struct AdoptCommand {
  std::string dataset;
  std::vector<std::string> as;  ///< "model", or "model" and its name
  std::string version;
  std::string to;
  std::string node;
  bool dry_run = false;
};
struct PruneCommand {
  std::string job;
  std::vector<std::string> keep;  ///< "last=5"
  bool branches = false;
  bool dry_run = false;
};
struct ExecCommand {
  std::string job;
  std::vector<std::string> argv;
};
/// Everything at once, again and again.
struct TopCommand {};
/// What is wrong with this machine. Needs no controller.
struct DoctorCommand {
  std::string state;  ///< of its agent; empty: the default
  std::string pool;   ///< of its agent; empty: the only one
  std::string store;  ///< "zfs", "dir": what the agent is to use; empty: not said
};
struct ManualCommand {};

}  // namespace zed::cli
