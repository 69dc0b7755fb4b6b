#pragma once
// One edit of a catalog as text (dir/metadata.hpp draws it).

#include <string>
#include <string_view>

#include "store/catalog.hpp"
#include "store/file_space.hpp"

namespace zed::store {

/// In its frame (base/frame.hpp).
std::string render_edit(const CatalogEdit& edit);

/// Longest record accepted.
inline constexpr std::size_t longest_edit = std::size_t{1} << 30;
/// Without its frame. Errors: `corrupt` if it does not follow on from the catalog.
Status apply_edit(std::string_view edit, Catalog& catalog);

}  // namespace zed::store
