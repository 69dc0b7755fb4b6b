#include "cli/progress.hpp"

#include <algorithm>

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "cli/render.hpp"

namespace zed::cli {
namespace {

constexpr std::int64_t say_again_ms = 10'000;

std::size_t error_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1U : 79;
}

}  // namespace

void Progress::show(const std::string& line) {
  const std::int64_t now = monotonic_now().ms;
  if (context_.terminal().error) {
    if (line != shown_) context_.note("\r\x1b[K" + fitted(line, error_width()));
    shown_ = line;
    return;
  }
  if (line == shown_ || (last_ms_ != 0 && now - last_ms_ < say_again_ms)) return;
  shown_ = line;
  last_ms_ = now;
  context_.note(line + "\n");
}

void Progress::keep(const std::string& text) {
  clear();
  context_.note(text);
}

void Progress::clear() {
  if (context_.terminal().error && !shown_.empty()) context_.note("\r\x1b[K");
  shown_.clear();
}

Narrator::Narrator(Context& context, std::string subject)
    : context_(context), subject_(std::move(subject)), progress_(context),
      began_ms_(monotonic_now().ms) {
  auto first = context.client();
  if (!first) return;
  http::ClientOptions options = (*first)->options();
  options.time_limit = seconds(2);
  options.interrupt_fd = context.interrupt().fd();
  client_.emplace(std::move(options));
  auto events = client_->call(api::ListEvents{0, 1});
  if (events && !events->events.empty()) last_event_ = events->events.back().number;
}

bool Narrator::concerns(const api::FleetEvent& event) const {
  if (subject_.empty() || event.subject == subject_) return true;
  const std::string ending = " " + subject_;
  return event.subject.size() > ending.size() &&
         event.subject.compare(event.subject.size() - ending.size(), ending.size(), ending) == 0;
}

bool Narrator::concerns(const api::TransferRow& transfer) const {
  if (subject_.empty()) return true;
  const std::string job = "job " + subject_;
  const std::size_t at = transfer.why.find(job);
  if (at == std::string::npos) return transfer.dataset == "jobs/" + subject_;
  const std::string_view after = std::string_view(transfer.why).substr(at + job.size());
  return after.empty() || after.front() == ' ' || after.front() == ':';
}

void Narrator::tell(const std::string& line) {
  if (!client_) return progress_.show(line);
  auto events = client_->call(api::ListEvents{last_event_, 200});
  for (const api::FleetEvent& event : events ? events->events : std::vector<api::FleetEvent>{}) {
    last_event_ = std::max(last_event_, event.number);
    if (concerns(event)) progress_.keep(render(event, context_.error_view()));
  }
  std::string text = line;
  const auto transfers = client_->call(api::ListTransfers{});
  std::size_t moving = 0;
  for (const api::TransferRow& row :
       transfers ? transfers->transfers : decltype(transfers->transfers){})
    if (concerns(row) && ++moving == 1) text += "; " + sentence_of(row);
  if (moving > 1) text += " and " + std::to_string(moving - 1) + " more";
  progress_.show(text);
}

void Narrator::tell_elapsed(const std::string& line) {
  const Millis elapsed{(monotonic_now().ms - began_ms_) / 1000 * 1000};
  tell(elapsed.value == 0 ? line : line + ", " + show(elapsed));
}

}  // namespace zed::cli
