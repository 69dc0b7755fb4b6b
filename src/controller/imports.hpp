#pragma once
// Files of a node's own disk that become datasets: `model add`, and `file` in the cluster file.
// Inside the room only.

#include "controller/machine.hpp"

namespace zed::controller {

struct Import {
  DatasetName dataset;
  std::string path;  ///< absolute, on the node
  std::string type;  ///< "model" | "data"
  std::string name;  ///< as declared
  std::string version;
  Requirement requirement;
  std::map<std::string, std::string> properties;  ///< further ones
};

/// Errors: `invalid` for a version that cannot be part of a snapshot's name.
Result<PlanStep> step_of(Machine& m, const NodeName& node, const Import& import,
                         const std::string& why);
std::string import_need(const DatasetName& dataset);

}  // namespace zed::controller
