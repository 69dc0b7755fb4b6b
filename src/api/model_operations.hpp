#pragma once
// Operations on models: what is known of one, and where it would fit. Part of the table in
// api/operations.hpp.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "api/model_replies.hpp"
#include "core/requirement.hpp"

namespace zed::api {

struct ShowModel {
  static constexpr std::string_view tag = "model-show";
  static constexpr bool changes = false;
  static constexpr std::string_view help = "what is known of a model, and the memory it takes";
  using Reply = ShowModelReply;
  std::string model;
  ModelUse use;
  std::int64_t gpus = 1;  ///< its layers are dealt out over so many
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("model", self.model);
    visit("use", self.use);
    visit("gpus", self.gpus);
  }
};

struct FitModel {
  static constexpr std::string_view tag = "fit";
  static constexpr bool changes = false;
  static constexpr std::string_view help =
      "where a model fits, whole or with how much of its context";
  using Reply = FitReply;
  std::string model;
  ModelUse use;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("model", self.model);
    visit("use", self.use);
  }
};

struct RegisterModel {
  static constexpr std::string_view tag = "model-register";
  static constexpr bool changes = true;
  static constexpr std::string_view help = "make a checkpoint a model";
  using Reply = AddModelReply;
  std::string job;
  std::string checkpoint;  ///< "@epoch-50"; empty: the newest
  std::string name;
  std::string version;  ///< empty: the next number
  std::string path;     ///< file or folder in the checkpoint; empty: all of it
  std::string alias;    ///< given to it as well; may be empty
  Requirement requirement;
  std::map<std::string, std::string> properties;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("checkpoint", self.checkpoint);
    visit("name", self.name);
    visit("version", self.version);
    visit("path", self.path);
    visit("alias", self.alias);
    visit("requirement", self.requirement);
    visit("properties", self.properties);
  }
};

/// A word that stands for one version of a model and moves on to another: "production".
struct AliasModel {
  static constexpr std::string_view tag = "model-alias";
  static constexpr bool changes = true;
  static constexpr std::string_view help = "let a word stand for a version of a model";
  using Reply = AliasReply;
  std::string model;  ///< "llama@2"
  std::string alias;
  bool remove = false;  ///< it stands for nothing from now on
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("model", self.model);
    visit("alias", self.alias);
    visit("remove", self.remove);
  }
};

struct RemoveModel {
  static constexpr std::string_view tag = "model-rm";
  static constexpr bool changes = true;
  static constexpr std::string_view help = "destroy a version of a model on every machine";
  using Reply = RemoveModelReply;
  std::string model;     ///< "llama@2"
  bool dry_run = false;  ///< only say what depends on it
  bool force = false;    ///< although something does
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("model", self.model);
    visit("dry_run", self.dry_run);
    visit("force", self.force);
  }
};

struct ShowLineage {
  static constexpr std::string_view tag = "lineage";
  static constexpr bool changes = false;
  static constexpr std::string_view help = "what a model or a job was made from, and what of it";
  using Reply = LineageReply;
  std::string subject;  ///< a model, a version of it, or a job
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("subject", self.subject);
  }
};

}  // namespace zed::api
