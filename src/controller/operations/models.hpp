#pragma once
// Operations on models. Inside the room only.

#include "controller/imports.hpp"
#include "controller/operations/aliases.hpp"
#include "controller/operations/handlers.hpp"

namespace zed::controller {

// model_rows.cpp
api::ModelsReply models_reply(const Machine& m);
/// "llama": its highest version; "llama@2", "llama@v2": that one; "llama@production": the one that
/// the alias stands for. By name, dataset, or the last part of it; '-' and '_' are the same. Error:
/// `not_found`.
Result<api::ModelRow> find_model(const Machine& m, const std::string& typed);
/// "llama@2".
std::string versioned(const api::ModelRow& row);
/// The words that stand for a version, from the row's property.
std::vector<std::string> aliases_of(const api::ModelRow& row);
DatasetId uuid_of(const Machine& m, const api::ModelRow& row);

/// How a word last moved, and the dataset that told it.
struct ToldAlias {
  AliasChange change;
  std::string dataset;
};
using NewestAliases = std::map<std::pair<std::string, std::string>, ToldAlias>;  ///< model, word
/// Of every word, as all copies of all versions tell.
NewestAliases newest_aliases(const Machine& m, const api::ModelsReply& all);
/// The newest change of a word that any copy of a version of that model tells; none: it never
/// stood.
std::optional<AliasChange> last_change(const Machine& m, const api::ModelsReply& all,
                                       const std::string& model, const std::string& word);

// models.cpp
/// Where a new version of a model goes.
struct NewModel {
  DatasetName dataset;
  std::string version;
};
/// `version` empty: the next number, if `may_be_next`; else the model must be new. Errors:
/// `invalid`, `exists`.
Result<NewModel> new_model(const Machine& m, const std::string& name, const std::string& version,
                           bool may_be_next);
/// Orders the import and answers when it is done.
void import_model(const Asked& asked, const NodeName& node, const Import& import,
                  const std::string& from);

// model_memory.cpp
void handle(const Asked& asked, const api::ShowModel& op);
void handle(const Asked& asked, const api::FitModel& op);
// model_register.cpp
void handle(const Asked& asked, const api::RegisterModel& op);
void handle(const Asked& asked, const api::AliasModel& op);
// model_remove.cpp
void handle(const Asked& asked, const api::RemoveModel& op);
// lineage.cpp
void handle(const Asked& asked, const api::ShowLineage& op);

}  // namespace zed::controller
