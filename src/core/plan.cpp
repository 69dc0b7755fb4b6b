#include "core/plan.hpp"

#include <algorithm>

#include "base/enum.hpp"

namespace zed {
namespace {

struct Describer {
  std::string operator()(const CreateDataset& a) const { return "create " + a.dataset.str(); }
  std::string operator()(const ImportFiles& a) const {
    const std::string from = a.source ? a.source->str() + "/" + a.path : a.path;
    return "import " + from + " as " + a.dataset.str() + "@" + a.snapshot_name;
  }
  std::string operator()(const SendSnapshot& a) const {
    return "send " + a.ticket.dataset.str() + "@" + a.ticket.snapshot_name + " to " +
           a.ticket.target.str();
  }
  std::string operator()(const ReceiveSnapshot& a) const {
    return "receive " + a.ticket.dataset.str() + "@" + a.ticket.snapshot_name + " from " +
           a.ticket.source.str();
  }
  std::string operator()(const StartAttempt& a) const {
    return "start attempt " + std::to_string(a.number) + " of job " + a.job.name.str();
  }
  std::string operator()(const StopAttempt& a) const {
    return std::string(to_string(a.mode)) + " attempt " + a.generation.brief() + ": " + a.reason;
  }
  std::string operator()(const AskCheckpoint& a) const {
    return "ask for a checkpoint: " + a.reason;
  }
  std::string operator()(const ApplyFork& a) const {
    return "begin timeline " + a.fork.timeline.brief() + " of " + a.dataset.str() +
           (a.fork.discard ? ", destroying what is left behind" : "");
  }
  std::string operator()(const SetHome& a) const {
    return "move the home of " + a.dataset.str() + " to " + a.home.str();
  }
  std::string operator()(const FollowHome& a) const {
    return "set aside what " + a.dataset.str() + " has beyond its home";
  }
  std::string operator()(const SetProperties& a) const {
    return "set properties of " + a.dataset.str();
  }
  std::string operator()(const Destroy& a) const {
    if (a.snapshots.empty()) return "destroy " + a.dataset.str();
    return "destroy " + std::to_string(a.snapshots.size()) + " snapshots of " + a.dataset.str();
  }
  std::string operator()(const AdoptDataset& a) const {
    return "adopt " + a.dataset.str() + (a.to.empty() ? "" : " as " + a.to.str());
  }
  std::string operator()(const SendToHost& a) const {
    return "send " + a.dataset.str() + "@" + a.snapshot_name + " to " + a.destination + ":" +
           a.target;
  }
};

bool is_host_word(std::string_view text, std::string_view also) {
  return !text.empty() && text.size() <= 255 && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [also](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '.' || c == '_' || also.find(c) != std::string_view::npos;
         });
}

}  // namespace

bool is_ssh_destination(std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) return is_host_word(text, ":");
  return is_host_word(text.substr(0, at), "") && is_host_word(text.substr(at + 1), ":");
}

std::string_view tag_of(const Action& action) {
  return std::visit([](const auto& a) { return std::decay_t<decltype(a)>::tag; }, action);
}

std::string describe(const Action& action) {
  return std::visit(Describer{}, action);
}

bool destroys(const Action& action) {
  if (auto* fork = std::get_if<ApplyFork>(&action)) return fork->fork.discard;
  return std::holds_alternative<Destroy>(action);
}

}  // namespace zed
