#pragma once
// Commands about models, read: part of cli/invocation.hpp's.

#include <cstdint>
#include <string>
#include <vector>

#include "api/model_operations.hpp"

namespace zed::cli {

struct ShowModelCommand {
  std::string model;  ///< a model's name, or a file or folder of this machine
  api::ModelUse use;
  std::int64_t gpus = 1;
};
struct FitModelCommand {
  std::string model;
  api::ModelUse use;
};

struct RegisterModelCommand {
  std::string target;  ///< JOB or JOB@CHECKPOINT
  std::string name;
  std::string version;
  std::string path;
  std::string alias;
  std::vector<std::string> requires_;
  std::vector<std::string> properties;
};
struct AliasModelCommand {
  api::AliasModel request;
};
struct RemoveModelCommand {
  api::RemoveModel request;
};

}  // namespace zed::cli
