#pragma once
// The grammar of the commands of daily use. Inside the room only: arguments.cpp has the rest.

#include <functional>
#include <string>

#include "cli/invocation.hpp"

namespace CLI {
class App;
}

namespace zed::cli {

class DailyArguments {
public:
  /// Adds a command: its name, its help, and what makes the Command once it was chosen.
  using Add = std::function<CLI::App*(const std::string& name, const std::string& help,
                                      std::function<Command()> make)>;
  /// The options write into this object, which must stay where it is. `watch` is --watch's.
  void add_to(const Add& add, bool& watch);

private:
  void add_looks(const Add& add, bool& watch);
  void add_files(const Add& add);
  void add_run(const Add& add);
  void add_orders(const Add& add);

  api::ListDatasets datasets_;
  MetricsCommand metrics_;
  FilesCommand files_;
  CopyCommand copy_;
  DiffCommand diff_;
  ReplicateCommand replicate_;
  PruneCommand prune_;
  AdoptCommand adopt_;
  DoctorCommand doctor_;
  RunCommand run_;
  ExecCommand exec_;
};

}  // namespace zed::cli
