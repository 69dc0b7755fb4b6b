#pragma once
// Operations on datasets that a person made with plain `zfs`. Part of the table in
// api/operations.hpp.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.hpp"

namespace zed::api {

struct AdoptReply {
  std::string node;
  std::string dataset;             ///< as it is called afterwards, relative to its pool
  std::string uuid;                ///< its identity; empty with dry_run where it would be a new one
  std::vector<std::string> steps;  ///< what is done, or would be; empty: nothing had to be
  std::vector<std::string> warnings;  ///< "copies of it go only to nodes that declare …"
  std::map<std::string, std::string> properties;  ///< that are set
  bool dry_run = false;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("dataset", self.dataset);
    visit("uuid", self.uuid);
    visit("steps", self.steps);
    visit("warnings", self.warnings);
    visit("properties", self.properties);
    visit("dry_run", self.dry_run);
  }
};

/// Makes a dataset that a person made one of Zed's: it gets an identity, and can be copied, be a
/// model or be a declared job's. Its files stay as they are.
struct Adopt {
  static constexpr std::string_view tag = "adopt";
  static constexpr bool changes = true;
  static constexpr std::string_view help = "make a dataset that a person made one of Zed's";
  using Reply = AdoptReply;
  std::string dataset;  ///< "tank/stuff/llama", or without the pool where one node has it
  std::string as;       ///< "model", "job", "data"; empty: as its com.zed:type says, else data
  std::string name;     ///< of the model or the declared job; empty: its last component
  std::string version;  ///< of a model; empty: its com.zed:version, else 1
  std::string to;       ///< renamed to this, relative to its pool; empty: it stays where it is
  std::string node;     ///< empty: the one that has it
  bool dry_run = false;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("as", self.as);
    visit("name", self.name);
    visit("version", self.version);
    visit("to", self.to);
    visit("node", self.node);
    visit("dry_run", self.dry_run);
  }
};

}  // namespace zed::api
