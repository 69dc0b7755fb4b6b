#pragma once
// What operations on models answer. Part of api/replies.hpp's rows: sizes are bytes.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/replies.hpp"

namespace zed::api {

/// How a model is to be used; what memory it takes follows from that.
struct ModelUse {
  std::int64_t context = 0;   ///< tokens of each sequence; 0: `model-show` the usual, `fit` all
  std::string cache = "f16";  ///< of keys and values: "q8_0", or "q8_0,f16" for each
  std::int64_t parallel = 1;  ///< sequences at once
  std::int64_t batch = 512;   ///< tokens computed at once
  bool flash_attention = true;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("context", self.context);
    visit("cache", self.cache);
    visit("parallel", self.parallel);
    visit("batch", self.batch);
    visit("flash_attention", self.flash_attention);
  }
  friend bool operator==(const ModelUse&, const ModelUse&) = default;
};

/// GPU memory by what it is for, over all GPUs together.
struct MemoryParts {
  std::int64_t context = 0;  ///< tokens of each sequence that were counted
  std::int64_t gpus = 1;
  Bytes weights;
  Bytes projector;  ///< of images or sounds, with its compute buffers
  Bytes cache;      ///< keys and values, recurrent state
  Bytes compute;
  Bytes overhead;  ///< the driver and its libraries
  Bytes total;
  Bytes largest;  ///< what the fullest GPU holds
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("context", self.context);
    visit("gpus", self.gpus);
    visit("weights", self.weights);
    visit("projector", self.projector);
    visit("cache", self.cache);
    visit("compute", self.compute);
    visit("overhead", self.overhead);
    visit("total", self.total);
    visit("largest", self.largest);
  }
  friend bool operator==(const MemoryParts&, const MemoryParts&) = default;
};

struct ShowModelReply {
  ModelRow model;
  ModelUse use;                       ///< as asked
  std::optional<MemoryParts> memory;  ///< none: its files did not tell (`notes` says why)
  std::vector<std::string> notes;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("model", self.model);
    visit("use", self.use);
    visit("memory", self.memory);
    visit("notes", self.notes);
  }
};

/// One node, with the GPUs of the vendor that does best there.
struct FitRow {
  std::string node;
  std::vector<std::string> gpus;  ///< models of the GPUs that would be used, or that fell short
  std::int64_t context = 0;       ///< tokens of each sequence that fit; 0: not even the weights
  bool whole = false;             ///< all that was asked for
  Bytes need;                     ///< on the fullest of these GPUs
  Bytes have;                     ///< on the smallest of them
  std::string why;                ///< what else is to know: busy, silent, no GPU
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("gpus", self.gpus);
    visit("context", self.context);
    visit("whole", self.whole);
    visit("need", self.need);
    visit("have", self.have);
    visit("why", self.why);
  }
  friend bool operator==(const FitRow&, const FitRow&) = default;
};

struct FitReply {
  std::string model;
  MemoryParts memory;         ///< what all that was asked for takes on one GPU
  std::vector<FitRow> nodes;  ///< best first
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("model", self.model);
    visit("memory", self.memory);
    visit("nodes", self.nodes);
  }
};

struct AliasReply {
  std::string model;
  std::string version;
  std::string alias;
  std::string was;  ///< the version that it stood for before; may be empty
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("model", self.model);
    visit("version", self.version);
    visit("alias", self.alias);
    visit("was", self.was);
  }
};

struct RemoveModelReply {
  std::string model;
  std::string version;
  std::string dataset;
  std::vector<std::string> dependents;  ///< "job finetune runs with it", for people
  std::vector<std::string> nodes;       ///< where it was, or would be, destroyed
  std::vector<std::string> away;        ///< nodes that have a copy and are not connected
  bool removed = false;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("model", self.model);
    visit("version", self.version);
    visit("dataset", self.dataset);
    visit("dependents", self.dependents);
    visit("nodes", self.nodes);
    visit("away", self.away);
    visit("removed", self.removed);
  }
};

struct LineageRow {
  std::int64_t depth = 0;  ///< steps away from the subject, 1 or more
  std::string kind;        ///< "model", "job", "data", "code", "source"
  std::string name;        ///< "llama@2", "finetune@epoch-50"
  std::string detail;      ///< for people
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("depth", self.depth);
    visit("kind", self.kind);
    visit("name", self.name);
    visit("detail", self.detail);
  }
  friend bool operator==(const LineageRow&, const LineageRow&) = default;
};

struct LineageReply {
  std::string subject;
  std::vector<LineageRow> from;  ///< what it was made from, each followed by its own origins
  std::vector<LineageRow> into;  ///< what was made from it
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("subject", self.subject);
    visit("from", self.from);
    visit("into", self.into);
  }
};

}  // namespace zed::api
