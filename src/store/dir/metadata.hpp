#pragma once
// The catalog as text, one JSON object a line:
//
//   {"format":1,"pool":"tank","counter":41}
//   {"dataset":"jobs/a","live":"live/3-a","readonly":false,"changed":40,"properties":{…}, …}
//   {"snapshot":"epoch-1","files":"snapshots/5-epoch-1","id":…,"properties":{…}, …}   of that
//   dataset
//   {"end":2}                                           number of the lines between first and last
//
// Property values are percent-encoded, so any bytes survive. A person may read it; it is edited
// only while no process has the store open.

#include <map>
#include <string>

#include "store/catalog.hpp"

namespace zed::store {

struct Metadata {
  std::string pool;
  Catalog catalog;
};

/// Remembers the lines of snapshots, which are written once and read with every catalog.
class MetadataWriter {
public:
  std::string render(const std::string& pool, const Catalog& catalog);

private:
  std::map<SnapshotRef, std::string> lines_;
};

/// Errors: `corrupt`, naming the line; `unsupported` for a newer format.
Result<Metadata> parse_metadata(std::string_view text);

}  // namespace zed::store
