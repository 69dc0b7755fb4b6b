#include "core/plan.hpp"

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
};

}  // namespace

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
