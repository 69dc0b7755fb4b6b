#include "bin/import.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "base/text.hpp"

namespace zed::bin {
namespace {

namespace fs = std::filesystem;

Error copy_error(const fs::path& path, const std::error_code& error) {
  bool full = error == std::errc::no_space_on_device;
  return {full ? ErrorCode::no_space : ErrorCode::io,
          "copy " + path.string() + ": " + error.message(),
          {},
          {}};
}

constexpr std::int64_t most_ignore_lines = 1000;

/// What of a folder of code does not travel: `.git`, and the patterns of its `.zedignore`, one a
/// line as for a shell; '#' begins a comment, a '/' at the end is not needed for a folder.
std::vector<std::string> ignored_patterns(const fs::path& folder) {
  std::vector<std::string> patterns{".git"};
  std::ifstream file(folder / ".zedignore");
  std::string line;
  for (std::int64_t n = 0; n < most_ignore_lines && std::getline(file, line); ++n) {
    std::string pattern(trim(line.substr(0, line.find('#'))));
    while (pattern.ends_with('/'))
      pattern.pop_back();
    if (!pattern.empty()) patterns.push_back(std::move(pattern));
  }
  return patterns;
}

/// By name, or by the path from the folder on.
bool is_ignored(const fs::path& relative, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), relative.filename().c_str(), FNM_PERIOD) == 0 ||
           ::fnmatch(pattern.c_str(), relative.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0;
  });
}

Status copy_entry(const fs::directory_entry& entry, const fs::path& target) {
  std::error_code error;
  if (entry.is_symlink()) {
    fs::remove(target, error);
    fs::copy_symlink(entry.path(), target, error);
  } else if (entry.is_directory()) {
    fs::create_directories(target, error);
  } else if (entry.is_regular_file()) {
    fs::copy_file(entry.path(), target, fs::copy_options::overwrite_existing, error);
  }
  if (error) return fail(copy_error(entry.path(), error));
  return {};
}

Status copy_folder(const fs::path& source, const fs::path& target,
                   const std::vector<std::string>& leave_out) {
  std::error_code error;
  fs::recursive_directory_iterator entry(source, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    fs::path relative = entry->path().lexically_relative(source);
    if (is_ignored(relative, leave_out))
      entry.disable_recursion_pending();
    else
      ZED_CHECK(copy_entry(*entry, target / relative));
  }
  if (error) return fail(copy_error(source, error));
  return {};
}

Status copy_into(const fs::path& source, const fs::path& target, bool is_code) {
  std::error_code error;
  fs::file_status status = fs::status(source, error);
  if (!fs::exists(status))
    return fail(ErrorCode::not_found, "there is no " + source.string() + " on this node",
                "name a path of the machine whose agent imports it (--node)");
  if (fs::is_directory(status))
    return copy_folder(source, target,
                       is_code ? ignored_patterns(source) : std::vector<std::string>());
  if (!fs::is_regular_file(status))
    return fail(ErrorCode::invalid, source.string() + " is neither a file nor a folder");
  fs::copy_file(source, target / source.filename(), fs::copy_options::overwrite_existing, error);
  if (error) return fail(copy_error(source, error));
  return {};
}

/// Set while an import is not complete: what is cut off can be told from what somebody made.
constexpr char importing[] = "importing";

/// An empty, writable dataset; what an import that was cut off left behind goes.
Status make_room(env::Store& store, const ImportFiles& import) {
  auto present = store.inspect(import.dataset);
  if (!present && present.error().code != ErrorCode::not_found)
    return fail(std::move(present).error());
  if (present) {
    bool cut_off = !present->property(importing).empty() && present->snapshots.empty();
    if (!cut_off)
      return fail(ErrorCode::exists, import.dataset.str() + " is there already",
                  "choose another name, or remove the old one first");
    ZED_CHECK(store.destroy(import.dataset));
  }
  Properties properties = import.properties;
  properties[importing] = "true";
  return store.create(import.dataset, properties);
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

}  // namespace

Result<Snapshot> import_files(env::Store& store, const ImportFiles& import) {
  if (auto present = store.inspect(import.dataset))
    if (const Snapshot* done = present->find(import.snapshot)) {
      ZED_CHECK(store.set(import.dataset, {{importing, std::nullopt}}));
      ZED_CHECK(store.set_readonly(import.dataset, true));
      return *done;
    }
  ZED_CHECK(make_room(store, import));
  ZED_TRY(fs::path live, store.open_live(import.dataset));
  ZED_CHECK(check_outside(import.path, live));
  auto type = import.properties.find(property::type);
  bool is_code = type != import.properties.end() && type->second == "code";
  ZED_CHECK(copy_into(import.path, live, is_code));
  ZED_TRY(auto name, SnapshotName::of(import.dataset, import.snapshot_name));
  ZED_TRY(Snapshot snapshot, store.snapshot(name, {{property::id, import.snapshot.str()}}));
  ZED_CHECK(store.set(import.dataset, {{importing, std::nullopt}}));
  ZED_CHECK(store.set_readonly(import.dataset, true));
  return snapshot;
}

Status unpack_code(env::Store& store, const DatasetName& dataset, const Input& code) {
  ZED_TRY(Dataset packed, store.inspect(code.dataset));
  const Snapshot* snapshot = packed.find(code.snapshot);
  if (snapshot == nullptr)
    return fail(ErrorCode::not_found, "the submitted code is not in " + code.dataset.str());
  ZED_TRY(fs::path files, store.snapshot_path({code.dataset, snapshot->name}));
  ZED_TRY(fs::path live, store.open_live(dataset));
  return copy_folder(files, live, {});
}

}  // namespace zed::bin
