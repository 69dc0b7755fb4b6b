#include "bin/import.hpp"

#include <filesystem>
#include <system_error>

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

Status copy_into(const fs::path& source, const fs::path& target) {
  std::error_code error;
  fs::file_status status = fs::status(source, error);
  if (!fs::exists(status))
    return fail(ErrorCode::not_found, "there is no " + source.string() + " on this node",
                "name a path of the machine whose agent imports it (--node)");
  if (fs::is_directory(status)) {
    fs::copy(source, target,
             fs::copy_options::recursive | fs::copy_options::copy_symlinks |
                 fs::copy_options::overwrite_existing,
             error);
  } else if (fs::is_regular_file(status)) {
    fs::copy_file(source, target / source.filename(), fs::copy_options::overwrite_existing, error);
  } else {
    return fail(ErrorCode::invalid, source.string() + " is neither a file nor a folder");
  }
  if (error) return fail(copy_error(source, error));
  return {};
}

/// The dataset, empty and writable; what an import that was cut off left behind is used again.
Status make_room(env::Store& store, const ImportFiles& import) {
  auto present = store.inspect(import.dataset);
  if (!present && present.error().code != ErrorCode::not_found)
    return fail(std::move(present).error());
  if (!present) return store.create(import.dataset, import.properties);
  auto uuid = import.properties.find(property::uuid);
  bool ours = uuid != import.properties.end() && present->property(property::uuid) == uuid->second;
  if (!ours || !present->snapshots.empty())
    return fail(ErrorCode::exists, import.dataset.str() + " is there already",
                "choose another name, or remove the old one first");
  return {};
}

}  // namespace

Result<Snapshot> import_files(env::Store& store, const ImportFiles& import) {
  if (auto present = store.inspect(import.dataset))
    if (const Snapshot* done = present->find(import.snapshot)) return *done;
  ZED_CHECK(make_room(store, import));
  ZED_TRY(fs::path live, store.open_live(import.dataset));
  ZED_CHECK(copy_into(import.path, live));
  ZED_TRY(auto name, SnapshotName::of(import.dataset, import.snapshot_name));
  ZED_TRY(Snapshot snapshot, store.snapshot(name, {{property::id, import.snapshot.str()}}));
  ZED_CHECK(store.set_readonly(import.dataset, true));
  return snapshot;
}

}  // namespace zed::bin
