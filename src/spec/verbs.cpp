#include "spec/verbs.hpp"

#include <algorithm>

namespace zed::spec {
namespace {

constexpr Verb verbs[] = {
    {"defmodule", Place::file, "defmodule MyCluster do … end", BlockRule::required, Place::module,
     true},
    {"deploy", Place::file, "deploy :my_fleet, pool: \"tank\" do … end", BlockRule::required,
     Place::deploy, true},

    {"use", Place::module, "use Zed.DSL"},
    {"@moduledoc", Place::module, "@moduledoc \"What this fleet is for.\""},
    {"deploy", Place::module, "deploy :my_fleet, pool: \"tank\" do … end", BlockRule::required,
     Place::deploy, true},

    {"node", Place::deploy, "node :server, address: \"10.0.0.5\", pool: \"nvme\" do … end",
     BlockRule::optional, Place::node, true},
    {"model", Place::deploy, "model :llama70b do … end", BlockRule::optional, Place::model, true},
    {"job", Place::deploy, "job :finetune do … end", BlockRule::optional, Place::job, true},
    {"replicate", Place::deploy, "replicate :models do from :server; to [:laptop] end",
     BlockRule::required, Place::replicate, true},
    {"dataset", Place::deploy, "dataset \"datasets/digits\" do … end", BlockRule::optional,
     Place::data, true},

    {"gpu", Place::node, "gpu \"RTX 4090\", vram: 24", BlockRule::none, Place::file, true},
    {"dataset", Place::node, "dataset \"models\"", BlockRule::none, Place::file, true},
    {"labels", Place::node, "labels [\"fast-disk\"]"},

    {"dataset", Place::model, "dataset \"models/llama-70b\""},
    {"version", Place::model, "version \"2.1\""},
    {"requires", Place::model, "requires vram: 48"},
    {"file", Place::model, "file \"llama-70b.gguf\""},

    {"version", Place::data, "version \"2024-04\""},
    {"file", Place::data, "file \"digits.csv\""},

    {"model", Place::job, "model :llama70b"},
    {"dataset", Place::job, "dataset \"jobs/finetune-001\""},
    {"run", Place::job, "run [\"python3\", \"train.py\"]"},
    {"shell", Place::job, "shell \"python3 train.py | tee log\""},
    {"env", Place::job, "env PYTHONUNBUFFERED: \"1\"", BlockRule::none, Place::file, true},
    {"code", Place::job, "code \"./src\""},
    {"setup", Place::job, "setup \"pip install -r requirements.txt\", timeout: \"30 minutes\""},
    {"data", Place::job, "data \"datasets/digits\"", BlockRule::none, Place::file, true},
    {"requires", Place::job, "requires vram: 24, gpus: 2"},
    {"prefer", Place::job, "prefer gpu: \"A100\""},
    {"fallback", Place::job, "fallback gpu: \"RTX 4090\""},
    {"checkpoint_every", Place::job, "checkpoint_every \"1 epoch\""},
    {"after", Place::job, "after :prepare"},
    {"priority", Place::job, "priority 10"},
    {"retries", Place::job, "retries 3"},
    {"timeout", Place::job, "timeout \"12 hours\""},
    {"keep", Place::job, "keep last: 10, best: 3, metric: \"loss\", mode: :min"},
    {"copies", Place::job, "copies 1"},
    {"exclusive", Place::job, "exclusive true"},
    {"rollback_when", Place::job, "rollback_when \"loss > 2 * best\""},

    {"from", Place::replicate, "from :server"},
    {"to", Place::replicate, "to [:workstation, :macbook]"},
    {"filter", Place::replicate, "filter \"size_gb < 20\""},
    {"every", Place::replicate, "every \"15 minutes\""},
    {"max_rate", Place::replicate, "max_rate \"200 MB/s\""},
    {"keep", Place::replicate, "keep last: 10"},
};

}  // namespace

std::string describe(Place place) {
  switch (place) {
  case Place::file: return "the file outside `deploy`";
  case Place::module: return "a `defmodule` block";
  case Place::deploy: return "a `deploy` block";
  case Place::node: return "a `node` block";
  case Place::model: return "a `model` block";
  case Place::job: return "a `job` block";
  case Place::replicate: return "a `replicate` block";
  case Place::data: return "a `dataset` block";
  }
  return {};
}

VerbTable all_verbs() {
  return {std::begin(verbs), std::end(verbs)};
}

bool is_not_built(std::string_view name, Place place) {
  return std::any_of(verbs_not_built.begin(), verbs_not_built.end(), [&](const NotBuilt& entry) {
    return entry.name == name && entry.place == place;
  });
}

bool is_code_form(std::string_view name) {
  static constexpr std::string_view forms[] = {
      "def", "defp", "defmacro", "defstruct", "import", "alias", "require", "if",      "unless",
      "for", "case", "cond",     "with",      "quote",  "raise", "try",     "receive", "while"};
  return std::find(std::begin(forms), std::end(forms), name) != std::end(forms);
}

const Verb* find_verb(std::string_view name, Place place) {
  for (const Verb& verb : verbs)
    if (verb.name == name && verb.place == place) return &verb;
  return nullptr;
}

std::vector<std::string> verb_names(Place place) {
  std::vector<std::string> names;
  for (const Verb& verb : verbs)
    if (verb.place == place && !is_not_built(verb.name, place)) names.emplace_back(verb.name);
  return names;
}

std::vector<Place> places_of(std::string_view name) {
  std::vector<Place> places;
  for (const Verb& verb : verbs)
    if (verb.name == name) places.push_back(verb.place);
  return places;
}

}  // namespace zed::spec
