#pragma once
// The catalog as text, one JSON object a line. First a whole one:
//
//   {"format":2,"pool":"tank","counter":41}
//   {"dataset":"jobs/a","live":"live/3-a","readonly":false,"changed":40,"properties":{…}, …}
//   {"snapshot":"epoch-1","files":"snapshots/5-epoch-1","id":…,"properties":{…}, …}   of that
//   dataset
//   {"end":2}                                           number of the lines between first and last
//
// then what changed since, a record each (base/frame.hpp):
//
//   000001f3 9ae0daaf {"from":41,"counter":43,"datasets":[{"dataset":"jobs/a", …,
//                      "put":[{"snapshot":"epoch-2", …}],"dropped":["epoch-1"]}],"gone":["jobs/b"]}
//
// A crash can tear the last record only: the file ends inside it, or blocks of it that were not
// written read as zeros (XFS, ext4, APFS set a file's size before all that was written is there).
// So what follows the last whole record is torn if it is the beginning of one record, up to runs of
// zeros that end where a sector of 512 bytes or the file does. Anything else is damage.
//
// Property values are percent-encoded, so any bytes survive. A person may read it.

#include <cstddef>
#include <string>
#include <string_view>

#include "store/catalog.hpp"

namespace zed::store {

struct Metadata {
  std::string pool;
  Catalog catalog;
  std::size_t whole = 0;  ///< bytes of the whole catalog that the text begins with
  std::size_t size = 0;   ///< bytes that count: less than all if the last edit is torn
};

/// A whole catalog; dir/edits.hpp has what may follow it.
std::string render_catalog(const std::string& pool, const Catalog& catalog);
/// Errors: `corrupt`, naming the line and, of a damaged change, the byte it begins at;
/// `unsupported` for a newer format.
Result<Metadata> parse_metadata(std::string_view text);

}  // namespace zed::store
