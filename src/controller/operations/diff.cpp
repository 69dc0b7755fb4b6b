// What differs between two checkpoints: facts that the controller knows, then files and what the
// client recorded of the run, asked of the nodes that have them.

#include <memory>
#include <set>

#include <fmt/format.h>

#include "base/base64.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "controller/imports.hpp"
#include "controller/operations/daily.hpp"
#include "controller/operations/rows.hpp"

namespace zed::controller {
namespace {

/// Larger files are told apart by size and time only.
constexpr Bytes largest_digested = mebibytes(8);
constexpr std::size_t most_files = 20'000;
constexpr std::size_t most_facts = 5'000;
/// What the Python client writes of packages and parameters.
constexpr char run_file[] = "metrics/run.json";

using Facts = std::map<std::pair<std::string, std::string>, std::string>;

struct Side {
  NodeName node;
  DatasetName dataset;
  std::string snapshot;
  Facts facts;  ///< by kind and name
  std::vector<FileEntry> files;
};

struct Comparison {
  api::DiffReply reply;
  Side a;
  Side b;
};
using Shared = std::shared_ptr<Comparison>;

/// Which code and data a job is made of, as its checkpoint says, or the job itself.
void add_origins(const Machine& m, const FoundCopy& copy, Facts& facts) {
  const Job& job = copy.job->job;
  std::string code = job.content ? job.content->str() : "";
  if (copy.snapshot != nullptr)
    if (auto said = copy.snapshot->properties.find(property::code);
        said != copy.snapshot->properties.end())
      code = said->second;
  if (!code.empty()) facts[{"code", ""}] = code.substr(0, 12);
  for (const Input& input : job.inputs)
    facts[{"data", input.dataset.str()}] = shown_input(m, input);
}

Facts facts_of(const Machine& m, const FoundCopy& copy) {
  Facts facts;
  if (copy.snapshot != nullptr)
    for (const auto& [name, value] : metrics_of(*copy.snapshot))
      facts[{"metric", name}] = value;
  if (copy.job == nullptr) return facts;
  add_origins(m, copy, facts);
  const Job& job = copy.job->job;
  facts[{"command", ""}] = join(job.argv, " ");
  facts[{"command", "requires"}] = job.requirement.str();
  if (job.setup) facts[{"command", "setup"}] = *job.setup;
  if (job.model) facts[{"command", "model"}] = job.model->str();
  for (const auto& [name, value] : job.env)
    facts[{"environment", name}] = value;
  return facts;
}

Result<Side> side_of(const Machine& m, const std::string& typed, api::Place& place) {
  const std::size_t at = typed.find('@');
  const std::string checkpoint = at == std::string::npos ? "" : typed.substr(at);
  ZED_TRY(FoundCopy copy, find_files(m, typed.substr(0, at), checkpoint));
  place = copy.place();
  return Side{copy.node,
              copy.dataset,
              copy.snapshot == nullptr ? "" : copy.snapshot->name,
              facts_of(m, copy),
              {}};
}

std::string text_of(const Value& value) {
  if (value.as_text() != nullptr) return *value.as_text();
  // As it was written: JSON's own form of 0.1 is 1E-1.
  if (const double* number = value.as_double()) return fmt::format("{}", *number);
  return to_json(value);
}

void add_run_facts(Facts& facts, const Value& run) {
  const std::pair<const char*, const char*> kinds[] = {{"parameters", "parameter"},
                                                       {"packages", "package"}};
  for (const auto& [member, kind] : kinds) {
    const Value* all = run.find(member);
    if (all == nullptr || all->as_map() == nullptr) continue;
    for (const auto& entry : *all->as_map())
      if (facts.size() < most_facts) facts[{kind, entry.key}] = text_of(entry.value);
  }
  if (const Value* python = run.find("python")) facts[{"package", "python"}] = text_of(*python);
}

void compare_facts(Comparison& comparison) {
  std::set<std::pair<std::string, std::string>> keys;
  for (const Facts* facts : {&comparison.a.facts, &comparison.b.facts})
    for (const auto& entry : *facts)
      keys.insert(entry.first);
  auto value = [](const Facts& facts, const auto& key) {
    auto found = facts.find(key);
    return found == facts.end() ? std::string() : found->second;
  };
  for (const auto& key : keys) {
    const std::string a = value(comparison.a.facts, key);
    const std::string b = value(comparison.b.facts, key);
    if (a != b) comparison.reply.facts.push_back({key.first, key.second, a, b});
  }
}

bool is_same(const FileEntry& a, const FileEntry& b) {
  if (a.kind != b.kind || a.size != b.size || a.target != b.target) return false;
  if (!a.digest.empty() && !b.digest.empty()) return a.digest == b.digest;
  return a.kind != FileKind::file || a.modified == b.modified;
}

bool is_compared(const FileEntry& entry) {
  return entry.kind != FileKind::folder && entry.path.rfind(".zed/", 0) != 0 &&
         entry.path.rfind("metrics/", 0) != 0;
}

void compare_files(Comparison& comparison) {
  std::map<std::string, std::pair<const FileEntry*, const FileEntry*>> pairs;
  for (const FileEntry& entry : comparison.a.files)
    if (is_compared(entry)) pairs[entry.path].first = &entry;
  for (const FileEntry& entry : comparison.b.files)
    if (is_compared(entry)) pairs[entry.path].second = &entry;
  for (const auto& [path, pair] : pairs) {
    const auto& [a, b] = pair;
    if (a != nullptr && b != nullptr && is_same(*a, *b)) continue;
    auto change = api::FileChange::changed;
    if (a == nullptr) change = api::FileChange::added;
    if (b == nullptr) change = api::FileChange::removed;
    comparison.reply.files.push_back(
        {path, change, a == nullptr ? Bytes{} : a->size, b == nullptr ? Bytes{} : b->size});
  }
}

void finish(const Asked& asked, const Shared& comparison) {
  compare_facts(*comparison);
  compare_files(*comparison);
  asked.reply(comparison->reply);
}

/// A run that recorded nothing, or another program's file of that name, has no facts.
void read_run(const Asked& asked, const Shared& comparison, bool second) {
  const Side& side = second ? comparison->b : comparison->a;
  ask_node(asked, side.node, ReadFile{side.dataset, side.snapshot, run_file, 0},
           "read what was recorded of the run",
           [comparison, second](const Asked& again, const Result<NodeReply>& reply) {
             const auto* piece = reply ? std::get_if<FilePiece>(&*reply) : nullptr;
             auto text = piece != nullptr ? from_base64(piece->data, file_piece_limit)
                                          : fail(ErrorCode::not_found, "");
             auto run = text ? parse_json(*text) : fail(ErrorCode::not_found, "");
             if (run) add_run_facts((second ? comparison->b : comparison->a).facts, *run);
             if (second) return finish(again, comparison);
             read_run(again, comparison, true);
           });
}

void list(const Asked& asked, const Shared& comparison, bool second, const std::string& after) {
  const Side& side = second ? comparison->b : comparison->a;
  ask_node_for<FileList>(asked, side.node,
                         ListFiles{side.dataset, side.snapshot, "", largest_digested, after},
                         "list files of " + side.dataset.str() + " on " + side.node.str(),
                         [comparison, second](const Asked& again, const FileList& page) {
                           auto& files = (second ? comparison->b : comparison->a).files;
                           files.insert(files.end(), page.entries.begin(), page.entries.end());
                           if (page.more && files.size() < most_files)
                             return list(again, comparison, second, files.back().path);
                           comparison->reply.complete = comparison->reply.complete && !page.more;
                           if (second) return read_run(again, comparison, false);
                           list(again, comparison, true, "");
                         });
}

}  // namespace

void handle(const Asked& asked, const api::DiffCheckpoints& op) {
  auto comparison = std::make_shared<Comparison>();
  auto a = side_of(asked.m, op.a, comparison->reply.a);
  if (!a) return asked.refuse(a.error());
  // "@epoch-15" alone is another checkpoint of the same job.
  const bool same_job = !op.b.empty() && op.b.front() == '@';
  auto b = side_of(asked.m, same_job ? op.a.substr(0, op.a.find('@')) + op.b : op.b,
                   comparison->reply.b);
  if (!b) return asked.refuse(b.error());
  comparison->a = std::move(*a);
  comparison->b = std::move(*b);
  list(asked, comparison, false, "");
}

}  // namespace zed::controller
