#include "cli/model_arguments.hpp"

#include <CLI/CLI.hpp>

namespace zed::cli {
namespace {

void add_use(CLI::App* sub, api::ModelUse& use, const std::string& usual) {
  sub->add_option("--ctx", use.context, "tokens of each sequence (" + usual + ")")
      ->type_name("TOKENS");
  sub->add_option("--kv", use.cache, "type of the cache: f16, q8_0, q4_0 ...; two: keys,values")
      ->type_name("TYPE");
  sub->add_option("--parallel", use.parallel, "sequences at once (1)")->type_name("COUNT");
  sub->add_option("--batch", use.batch, "tokens computed at once (512)")->type_name("COUNT");
  sub->add_flag(
      "--no-flash-attention", [&use](std::int64_t count) { use.flash_attention = count == 0; },
      "as for programs without it");
}

}  // namespace

void ModelArguments::add_to(CLI::App& root, CLI::App& model, const Add& add) {
  auto* show = add(model, "show", "what is known of a model, and the memory it takes",
                   [this] { return show_; });
  show->add_option("MODEL", show_.model, "a name; or a file or folder of this machine (with a '/')")
      ->required()
      ->type_name("");
  add_use(show, show_.use, "its own, at most 8192");
  show->add_option("--gpus", show_.gpus, "its layers over so many (1)")->type_name("COUNT");
  add(model, "ls", "models and who holds them", [] { return Look{api::ListModels{}}; });
  auto* fit = add(root, "fit", "where a model fits, whole or with how much of its context",
                  [this] { return fit_; });
  fit->add_option("MODEL", fit_.model)->required()->type_name("");
  add_use(fit, fit_.use, "all that it was trained for");
  add_versions(root, model, add);
}

void ModelArguments::add_versions(CLI::App& root, CLI::App& model, const Add& add) {
  auto* registering =
      add(model, "register", "make a checkpoint a model", [this] { return register_; });
  registering->add_option("JOB@CHECKPOINT", register_.target, "JOB alone: its newest")
      ->required()
      ->type_name("");
  registering->add_option("--name", register_.name, "what it is called")
      ->required()
      ->type_name("NAME");
  registering->add_option("--version", register_.version, "the next number if not given")
      ->type_name("VERSION");
  registering->add_option("--path", register_.path, "only this file or folder of the checkpoint")
      ->type_name("PATH");
  registering->add_option("--alias", register_.alias, "a word that stands for it: production ...")
      ->type_name("WORD");
  registering->add_option("-r,--requires", register_.requires_, "vram=48 ...")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  registering->add_option("--property", register_.properties, "quantized=q4_k_m ...")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  auto* alias =
      add(model, "alias", "let a word stand for a version of a model", [this] { return alias_; });
  alias->add_option("MODEL@VERSION", alias_.request.model)->required()->type_name("");
  alias->add_option("WORD", alias_.request.alias, "production, best ...")
      ->required()
      ->type_name("");
  alias->add_flag("--remove", alias_.request.remove, "it stands for nothing from now on");
  auto* remove =
      add(model, "rm", "destroy a version of a model on every machine", [this] { return remove_; });
  remove->add_option("MODEL@VERSION", remove_.request.model)->required()->type_name("");
  remove->add_flag("--force", remove_.request.force, "although something depends on it");
  remove->add_flag("-n,--dry-run", remove_.request.dry_run, "only say what would go");
  auto* lineage =
      add(root, std::string(api::ShowLineage::tag),
          "what a model or a job was made from, and what of it", [this] { return Look{lineage_}; });
  lineage->add_option("SUBJECT", lineage_.subject, "a model or a job")->required()->type_name("");
}

}  // namespace zed::cli
