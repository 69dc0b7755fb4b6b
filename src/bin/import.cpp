#include "bin/import.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "base/log.hpp"
#include "base/text.hpp"
#include "model/properties.hpp"
#include "modelio/source_files.hpp"
#include "store/files/sha256.hpp"

namespace zed::bin {
namespace {

namespace fs = std::filesystem;

/// Set while an import is not complete, to the id that its snapshot will have: what is cut off can
/// be told from what somebody made, and what only lacks its end from what lacks files.
constexpr char importing[] = "importing";
/// Why the figures of a model are not known.
constexpr char unread[] = "unread";

/// What the last step of an import changes.
PropertyChanges complete() {
  return {{importing, std::nullopt}};
}

/// An empty, writable dataset; what an import that was cut off left behind goes.
Status make_room(env::Store& store, const ImportFiles& import, Properties properties) {
  const DatasetName& dataset = import.dataset;
  auto present = store.inspect(dataset);
  if (!present && present.error().code != ErrorCode::not_found)
    return fail(std::move(present).error());
  if (present) {
    bool cut_off = !present->property(importing).empty() && present->snapshots.empty();
    if (!cut_off)
      return fail(ErrorCode::exists, dataset.str() + " is there already",
                  "choose another name, or remove the old one first");
    ZED_CHECK(store.destroy(dataset));
  }
  properties[importing] = import.snapshot.str();
  return store.create(dataset, properties);
}

/// A folder that holds the pool would be copied into itself without end.
Status check_outside(const fs::path& source, const fs::path& live) {
  std::error_code error;
  fs::path outer = fs::weakly_canonical(source, error) / "";
  fs::path inner = fs::weakly_canonical(live, error) / "";
  auto [end, at] = std::mismatch(outer.begin(), std::prev(outer.end()), inner.begin(), inner.end());
  if (end != std::prev(outer.end())) return {};
  return fail(ErrorCode::invalid, source.string() + " holds this node's own pool",
              "name a folder that has only what is wanted");
}

/// Where the files are: a path of this machine, or within a snapshot of the store.
Result<fs::path> files_of(env::Store& store, const ImportFiles& import) {
  if (!import.source) return fs::path(import.path);
  const fs::path inside = fs::path(import.path).lexically_normal();
  if (inside.is_absolute() || (!inside.empty() && *inside.begin() == ".."))
    return fail(ErrorCode::invalid,
                "the path " + percent_encode(import.path) + " is not in the snapshot",
                "name a file or folder as the job saw it");
  ZED_TRY(Dataset source, store.inspect(*import.source));
  const Snapshot* snapshot = source.find(import.source_snapshot);
  if (snapshot == nullptr)
    return fail(ErrorCode::not_found, "the checkpoint is no longer in " + import.source->str(),
                "zedctl checkpoints");
  ZED_TRY(fs::path files, store.snapshot_path({*import.source, snapshot->name}));
  return inside.empty() ? files : files / inside;
}

/// A job's own folder holds its log and its socket's traces besides: no part of a model.
void leave_out_own(std::vector<modelio::SourceEntry>& entries) {
  std::erase_if(entries, [](const modelio::SourceEntry& entry) {
    return entry.name == ".zed" || entry.name.starts_with(".zed/");
  });
}

/// What the files tell, under what a person said. A model of a kind that this version cannot read
/// is kept all the same; one that is broken is not, unless `keeps_all`: a job may have written
/// anything beside its model.
Result<Properties> with_facts(const std::vector<modelio::SourceEntry>& entries, Properties given,
                              bool keeps_all) {
  modelio::DiskFiles files(entries);
  auto facts = model::read_facts(files);
  if (!facts && (keeps_all || facts.error().code == ErrorCode::unsupported)) {
    given.emplace(unread, facts.error().message);
    return given;
  }
  if (!facts) return fail(std::move(facts).error());
  if (*facts) given.merge(model::properties_of(**facts));
  return given;
}

}  // namespace

Result<Snapshot> import_files(env::Store& store, const ImportFiles& import,
                              const ReportCopied& report) {
  if (import.dataset.str() == code_root) return import_code(store, import, report);
  if (auto present = store.inspect(import.dataset))
    if (const Snapshot* done = present->find(import.snapshot)) {
      ZED_CHECK(store.change(import.dataset, complete(), true));
      return *done;
    }
  auto type = import.properties.find(property::type);
  const bool is_code = type != import.properties.end() && type->second == "code";
  const bool is_model = type != import.properties.end() && type->second == "model";
  ZED_TRY(const fs::path files, files_of(store, import));
  ZED_TRY(auto entries, modelio::list_source(files, {is_code, is_model}));
  if (import.source) leave_out_own(entries);
  Properties properties = import.properties;
  if (is_model) {
    ZED_TRY(properties, with_facts(entries, std::move(properties), import.source.has_value()));
  }
  ZED_CHECK(make_room(store, import, properties));
  ZED_TRY(fs::path live, store.open_live(import.dataset));
  if (!import.source) ZED_CHECK(check_outside(files, live));
  ZED_TRY(const std::string sum, copy_files(entries, live, {!is_code, report}));
  if (!sum.empty()) ZED_CHECK(store.set(import.dataset, {{"sha256", sum}}));
  ZED_TRY(auto name, SnapshotName::of(import.dataset, import.snapshot_name));
  return store.seal(name, {{property::id, import.snapshot.str()}}, complete());
}

namespace {

/// One line an entry that two copies of the same code agree upon, wherever they lie.
Result<std::string> line_of(const modelio::SourceEntry& entry) {
  using Kind = modelio::SourceEntry::Kind;
  std::error_code error;
  if (entry.kind == Kind::folder) return "folder " + entry.name + "\n";
  if (entry.kind == Kind::link) {
    const std::string target = fs::read_symlink(entry.path, error).string();
    if (error) return fail(ErrorCode::io, "read " + entry.path.string() + ": " + error.message());
    return "link " + entry.name + '\0' + target + "\n";
  }
  const auto mode = fs::status(entry.path, error).permissions();
  const bool runs = (mode & fs::perms::owner_exec) != fs::perms::none;
  ZED_TRY(const std::string sum, digest_of_file(entry.path));
  return (runs ? "program " : "file ") + entry.name + '\0' + sum + "\n";
}

/// What stands for these files: 128 bits of the SHA-256 of their names, contents and whether they
/// are programs.
Result<CheckpointId> content_of(const std::vector<modelio::SourceEntry>& entries) {
  std::vector<std::string> lines;
  for (const modelio::SourceEntry& entry : entries) {
    ZED_TRY(lines.emplace_back(), line_of(entry));
  }
  std::sort(lines.begin(), lines.end());
  const std::string text = join(lines, "");
  const auto digest = store::sha256(std::as_bytes(std::span(text)));
  CheckpointId content;
  std::copy_n(digest.begin(), content.bytes.size(), content.bytes.begin());
  return content;
}

Result<CheckpointId> content_below(const fs::path& folder) {
  ZED_TRY(const auto entries, modelio::list_source(folder, {}));
  return content_of(entries);
}

}  // namespace

Result<Snapshot> import_code(env::Store& store, const ImportFiles& import,
                             const ReportCopied& report) {
  constexpr int most_tries = 3;
  for (int tries = 0; tries < most_tries; ++tries) {
    ZED_TRY(auto entries, modelio::list_source(import.path, {true, false}));
    ZED_TRY(const CheckpointId content, content_of(entries));
    ImportFiles named = import;
    named.dataset = code_dataset(content);
    named.snapshot = content;
    named.properties[property::uuid] = content.str();
    if (auto present = store.inspect(named.dataset))
      if (const Snapshot* done = present->find(content)) {
        ZED_CHECK(store.change(named.dataset, complete(), true));
        return *done;
      }
    ZED_CHECK(make_room(store, named, named.properties));
    ZED_TRY(fs::path live, store.open_live(named.dataset));
    ZED_CHECK(check_outside(import.path, live));
    ZED_CHECK(copy_files(entries, live, {false, report}));
    ZED_TRY(const CheckpointId copied, content_below(live));
    ZED_TRY(auto name, SnapshotName::of(named.dataset, named.snapshot_name));
    if (copied == content) return store.seal(name, {{property::id, content.str()}}, complete());
    ZED_CHECK(store.destroy(named.dataset));
  }
  return fail(ErrorCode::busy, import.path + " changes while it is packed",
              "try again when nothing writes to it");
}

Status finish_imports(env::Store& store) {
  ZED_TRY(const auto datasets, store.list());
  for (const Dataset& dataset : datasets) {
    const auto snapshot = CheckpointId::parse(dataset.property(importing));
    if (!snapshot || dataset.find(*snapshot) == nullptr) continue;
    if (auto finished = store.change(dataset.name, complete(), true); !finished)
      log_warning("the import of " + dataset.name.str() +
                  " is not finished: " + finished.error().describe());
  }
  return {};
}

Result<ModelFacts> examine_model(env::Store& store, const DatasetName& dataset) {
  ZED_TRY(fs::path live, store.open_live(dataset));
  ZED_TRY(auto entries, modelio::list_source(live, {}));
  leave_out_own(entries);
  ZED_TRY(Properties properties, with_facts(entries, {}, true));
  ModelFacts facts;
  if (auto why = properties.extract(unread)) facts.unread = std::move(why.mapped());
  facts.properties = std::move(properties);
  return facts;
}

Status unpack_code(env::Store& store, const DatasetName& dataset, const Input& code) {
  ZED_TRY(Dataset packed, store.inspect(code.dataset));
  const Snapshot* snapshot = packed.find(code.snapshot);
  if (snapshot == nullptr)
    return fail(ErrorCode::not_found, "the submitted code is not in " + code.dataset.str());
  ZED_TRY(fs::path files, store.snapshot_path({code.dataset, snapshot->name}));
  ZED_TRY(fs::path live, store.open_live(dataset));
  ZED_TRY(auto entries, modelio::list_source(files, {}));
  // What Zed keeps of another job (its log, its metrics) is not this one's.
  std::erase_if(entries, [](const modelio::SourceEntry& entry) {
    return entry.name == ".zed" || entry.name.starts_with(".zed/");
  });
  ZED_CHECK(copy_files(entries, live, {}));
  return {};
}

}  // namespace zed::bin
