#pragma once
// The grammar of the commands about models. Inside the room only: arguments.cpp has the rest.

#include <functional>
#include <string>

#include "cli/invocation.hpp"
#include "cli/model_commands.hpp"

namespace CLI {
class App;
}

namespace zed::cli {

class ModelArguments {
public:
  /// Adds a command below `parent`: its name, its help, and what makes the Command once chosen.
  using Add = std::function<CLI::App*(CLI::App& parent, const std::string& name,
                                      const std::string& help, std::function<Command()> make)>;
  /// The options write into this object, which must stay where it is. `model` is `zedctl model`.
  void add_to(CLI::App& root, CLI::App& model, const Add& add);

private:
  void add_versions(CLI::App& root, CLI::App& model, const Add& add);

  ShowModelCommand show_;
  FitModelCommand fit_;
  RegisterModelCommand register_;
  AliasModelCommand alias_;
  RemoveModelCommand remove_;
  api::ShowLineage lineage_;
};

}  // namespace zed::cli
