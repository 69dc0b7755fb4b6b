#include "store/dir/dir_store.hpp"

#include "store/catalog_store.hpp"
#include "store/dir/dir_space.hpp"

namespace zed::store {

Result<std::unique_ptr<env::Store>> open_dir_store(const std::filesystem::path& root,
                                                   const std::string& pool) {
  ZED_TRY(auto opened, DirSpace::open(root, pool));
  return std::make_unique<CatalogStore>(std::move(opened.space), std::move(opened.catalog));
}

}  // namespace zed::store
