#include "store/zfs/event_watch.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/log.hpp"
#include "base/text.hpp"

namespace zed::store::zfs {
namespace {

constexpr std::size_t longest_line = 64 << 10;
constexpr std::string_view rollback_clone = "/%rollback";

/// "0x6b0da52a". 0 if it is no number.
std::uint64_t hexadecimal(std::string_view text) {
  std::uint64_t number = 0;
  if (text.starts_with("0x"))
    std::from_chars(text.data() + 2, text.data() + text.size(), number, 16);
  return number;
}

}  // namespace

std::vector<Rollback> RollbackReader::take(std::string_view text) {
  for (;;) {
    const std::size_t end = text.find('\n');
    if (rest_.size() < longest_line) rest_ += text.substr(0, end);
    if (end == std::string_view::npos) return std::exchange(found_, {});
    take_line(rest_);
    rest_.clear();
    text.remove_prefix(end + 1);
  }
}

void RollbackReader::take_line(std::string_view line) {
  line = trim(line);
  if (line.empty()) {
    if (is_swap_ && !seen_.dataset.empty()) found_.push_back(std::move(seen_));
    seen_ = {};
    is_swap_ = false;
    return;
  }
  const std::size_t middle = line.find(" = ");
  if (middle == std::string_view::npos) return;
  const std::string_view name = line.substr(0, middle);
  std::string_view value = line.substr(middle + 3);
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
    value = value.substr(1, value.size() - 2);
  if (name == "history_dsname" && value.ends_with(rollback_clone))
    seen_.dataset = value.substr(0, value.size() - rollback_clone.size());
  if (name == "history_internal_name") is_swap_ = value == "clone swap";
  if (name == "history_txg") seen_.txg = hexadecimal(value);
  if (name == "eid") {
    seen_.eid = hexadecimal(value);
    last_eid_ = std::max(last_eid_, seen_.eid);
  }
}

namespace {

std::uint64_t last_event(Commands& commands, const std::string& pool) {
  RollbackReader reader;
  auto told = commands.run({"zpool", "events", "-H", "-v", pool}, {});
  if (told) (void)reader.take(told->out);
  return reader.last_eid();
}

}  // namespace

EventWatch::EventWatch(Commands& commands, const std::string& pool,
                       std::function<void(const Rollback&)> on_rollback)
    : on_rollback_(std::move(on_rollback)), told_before_(last_event(commands, pool)) {
  auto child = commands.start({"zpool", "events", "-f", "-H", "-v", pool}, Commands::Pipe::from_it);
  if (!child) {
    log_warning("store: changes made by hand are looked for each time: " +
                child.error().describe());
    return;
  }
  child_ = std::move(*child);
  listening_ = true;
  thread_ = std::thread([this] { listen(); });
}

EventWatch::~EventWatch() {
  if (!child_) return;
  child_->kill();  // it waits for events and would not notice that nobody reads
  thread_.join();
}

/// That there was an event is what counts; only of a rollback nothing else would tell.
void EventWatch::listen() {
  std::array<std::byte, 4096> lines{};
  RollbackReader reader;
  for (;;) {
    auto n = child_->read(lines);
    if (!n || *n == 0) break;
    ++heard_;
    const std::string_view text(reinterpret_cast<const char*>(lines.data()), *n);
    for (const Rollback& rollback : reader.take(text))
      if (rollback.eid > told_before_) on_rollback_(rollback);
  }
  listening_ = false;
}

}  // namespace zed::store::zfs
