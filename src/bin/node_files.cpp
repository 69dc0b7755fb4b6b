#include "bin/node_files.hpp"

#include "net/files.hpp"

#include "base/log.hpp"

namespace zed::bin {
namespace {

struct CopyRecord {
  ControllerTerm term;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("term", self.term);
  }
};

/// A name for what is damaged that nothing has yet.
std::filesystem::path free_name(const std::filesystem::path& path) {
  std::filesystem::path name = path.string() + ".damaged";
  std::error_code error;
  for (int n = 2; n < 100 && std::filesystem::exists(name, error); ++n)
    name = path.string() + ".damaged-" + std::to_string(n);
  return name;
}

/// While there is a controller a copy is expendable: one that is damaged is set aside, and the
/// controller sends it anew. Without one, a takeover names it.
Result<std::optional<journal::Journal>> open_copy(const std::filesystem::path& path) {
  auto opened = journal::Journal::open(path);
  if (opened) return std::optional(std::move(opened->journal));
  if (opened.error().code != ErrorCode::corrupt) return fail(std::move(opened).error());
  const std::filesystem::path aside = free_name(path);
  log_warning("the journal's copy " + path.string() + " is damaged (" + opened.error().message +
              "); it is set aside as " + aside.string() + ", and the controller sends a new one");
  std::error_code error;
  std::filesystem::rename(path, aside, error);
  if (error) return fail(ErrorCode::io, "set " + path.string() + " aside: " + error.message());
  return std::optional<journal::Journal>();
}

}  // namespace

Result<NodeFiles> NodeFiles::open(std::filesystem::path folder, NodeId new_node) {
  NodeFiles files;
  files.folder_ = std::move(folder);
  std::error_code error;
  std::filesystem::create_directories(files.attempts(), error);
  if (error)
    return fail(ErrorCode::io, "create " + files.attempts().string() + ": " + error.message());
  auto record = net::read_record<NodeRecord>(files.folder_ / "node.json");
  if (record) {
    files.record_ = std::move(*record);
  } else if (record.error().code == ErrorCode::not_found) {
    files.record_.node = new_node;
    ZED_CHECK(net::write_record(files.folder_ / "node.json", files.record_));
  } else {
    return fail(std::move(record).error());
  }
  auto copy = net::read_record<CopyRecord>(files.folder_ / "journal-copy.json");
  if (copy) {
    ZED_TRY(files.copy_, open_copy(files.folder_ / "journal-copy"));
    if (files.copy_) files.copy_term_ = copy->term;
  }
  return files;
}

Status NodeFiles::save(const ControllerTerm& highest_term, const NodeName& journal_second) {
  NodeRecord next = record_;
  next.highest_term = highest_term;
  next.journal_second = journal_second;
  ZED_CHECK(net::write_record(folder_ / "node.json", next));
  record_ = next;
  return {};
}

Status NodeFiles::begin_copy(const JournalRecords& records) {
  if (!copy_) {
    ZED_TRY(auto opened, journal::Journal::open(folder_ / "journal-copy"));
    copy_.emplace(std::move(opened.journal));
  }
  // The records first: a copy of the new term's records under the old term's name is begun anew by
  // the next reset, the other way round would count records that are not there.
  std::uint64_t last = records.first_seq + records.records.size() - 1;
  ZED_CHECK(copy_->replace(last, records.records));
  ZED_CHECK(net::write_record(folder_ / "journal-copy.json", CopyRecord{records.term}));
  copy_term_ = records.term;
  return {};
}

Status NodeFiles::store_copy(const JournalRecords& records) {
  if (records.first_seq == 0 && !records.records.empty())
    return fail(ErrorCode::invalid, "journal records are numbered from 1");
  if (records.reset) return begin_copy(records);
  if (!copy_ || records.term != copy_term_ || records.first_seq != copy_->last_seq() + 1)
    return fail(ErrorCode::stale, "these journal records do not follow on from the copy here");
  return copy_->append(records.first_seq, records.records);
}

}  // namespace zed::bin
