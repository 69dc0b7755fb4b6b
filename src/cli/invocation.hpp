#pragma once
// A command line, read: what to do as plain data. arguments.cpp makes it, run.cpp carries it out.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/operations.hpp"
#include "cli/daily.hpp"
#include "cli/membership.hpp"
#include "cli/model_commands.hpp"

namespace zed::cli {

struct Common {
  bool json = false;
  bool csv = false;
  bool wide = false;
  bool watch = false;
  bool yes = false;
  bool no_color = false;
  std::string socket;  ///< empty: find one
};

struct CheckFile {
  std::string file;  ///< "-": standard input
};
struct FormatFile {
  std::string file;
  bool check = false;
  bool write = false;
};
struct PlanFile {
  std::string file;
};
struct ApplyFile {
  std::string file;
};
/// A question whose reply is shown as it is, again and again with --watch.
struct Look {
  api::Request question;
};
struct AddModelCommand {
  std::string path;
  std::string name;
  std::string version;
  std::string node;
  std::vector<std::string> requires_;
  std::vector<std::string> properties;
};
struct DispatchCommand {
  std::string job;
  std::vector<std::string> argv;
  std::vector<std::string> prefer;
  std::vector<std::string> fallback;
  bool again = false;
  std::string from;
  std::vector<std::string> array;  ///< "lr=0.1,0.01"
  bool wait = false;
};
struct LogsCommand {
  std::string job;
  bool follow = false;
  bool all = false;
  bool times = false;
  std::int64_t lines = 100;
};
struct EventsCommand {
  bool follow = false;
  std::optional<std::uint64_t> after;
  std::int64_t limit = 50;
};
struct RollbackCommand {
  std::string target;  ///< JOB@CHECKPOINT
  bool discard = false;
  bool force = false;
  bool hold = false;
  bool dry_run = false;
};
struct ResumeCommand {
  std::string job;
  std::string from;
  std::string on;
  bool force = false;
};
/// stop, cancel, checkpoint, cordon, uncordon, drain: one request, one sentence back.
struct Order {
  api::Request request;
};
struct MatchCommand {
  std::vector<std::string> requires_;
  std::vector<std::string> prefer;
};
struct VersionCommand {};
struct CompletionCommand {
  std::string shell;  ///< bash, zsh, fish
};
/// Hidden: the live names that completion offers.
struct NamesCommand {
  std::string kind;  ///< jobs, nodes, models, checkpoints
};
struct DevUp {
  std::string profile;  ///< empty: the one that is built in
  std::string folder;   ///< empty: the default one
};
struct DevDown {
  std::string folder;
};
struct DevStatus {
  std::string folder;
};
struct DevKill {
  std::string node;  ///< or "controller"
  std::string folder;
};

using Command =
    std::variant<CheckFile, FormatFile, PlanFile, ApplyFile, Look, MatchCommand, AddModelCommand,
                 ShowModelCommand, FitModelCommand, RegisterModelCommand, AliasModelCommand,
                 RemoveModelCommand, DispatchCommand, LogsCommand, EventsCommand, RollbackCommand,
                 ResumeCommand, Order, VersionCommand, CompletionCommand, NamesCommand, DevUp,
                 DevDown, DevStatus, DevKill, LoginCommand, ContextCommand, CreateTokenCommand,
                 ListTokensCommand, ForgetNodeCommand, ShellConfigCommand, RunCommand,
                 MetricsCommand, FilesCommand, CopyCommand, DiffCommand, ReplicateCommand,
                 PruneCommand, AdoptCommand, DoctorCommand, ExecCommand, TopCommand, ManualCommand>;

struct Invocation {
  Common common;
  Command command;
};

}  // namespace zed::cli
