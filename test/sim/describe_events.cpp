#include "sim/describe_events.hpp"

#include <fmt/format.h>

#include "base/json.hpp"

namespace zed::sim {
namespace {

template <class... Ts> struct Overloaded : Ts... { using Ts::operator()...; };
template <class... Ts> Overloaded(Ts...) -> Overloaded<Ts...>;

std::string short_id(const std::string& hex) {
  return hex.substr(0, 6);
}

std::string outcome(const Status& status) {
  return status ? "done" : status.error().describe();
}

std::string show(const Attempt& a) {
  std::string text = fmt::format("{} {} #{} t{} {}", short_id(a.job.str()), a.generation.brief(),
                                 a.number, a.timeline.brief(), to_string(a.phase));
  if (a.exit) text += fmt::format(" exit={}", to_string(a.exit->kind));
  if (a.closing_snapshot) text += " closing=" + short_id(a.closing_snapshot->str());
  return text;
}

std::string show(const Dataset& d) {
  std::string text =
      fmt::format("{} {}{}", d.name.str(), short_id(d.uuid.str()), d.readonly ? " readonly" : "");
  for (const char* key : {"type", "timeline", "generation", "home", "status"})
    if (auto found = d.properties.find(key); found != d.properties.end()) {
      auto generation = Generation::parse(found->second);
      text += fmt::format(" {}={}", key, generation ? generation->brief() : found->second);
    }
  text += " [";
  for (const Snapshot& s : d.snapshots)
    text += fmt::format(" {}:{}", s.name, short_id(s.id.str()));
  return text + " ]";
}

std::string show(const PlanStep& step) {
  std::string text = fmt::format("step {} for {}: {}", short_id(step.id.str()), step.node.str(),
                                 describe(step.action));
  if (const auto* start = std::get_if<StartAttempt>(&step.action))
    text += fmt::format(" gen {} t{} #{}", start->generation.brief(), start->timeline.brief(),
                        start->number);
  if (const auto* fork = std::get_if<ApplyFork>(&step.action))
    text += fmt::format(" t{} -> t{} from {} home {} ({})", fork->fork.left.brief(),
                        fork->fork.timeline.brief(),
                        fork->fork.from ? short_id(fork->fork.from->str()) : "start",
                        fork->home.str(), to_string(fork->fork.why));
  if (const auto* receive = std::get_if<ReceiveSnapshot>(&step.action))
    text += fmt::format(" ticket {} {} base {}", short_id(receive->ticket.id.str()),
                        receive->ticket.snapshot_name,
                        receive->ticket.base ? short_id(receive->ticket.base->str()) : "none");
  if (!step.why.empty()) text += " because " + step.why;
  return text;
}

const auto show_message = Overloaded{
    [](const Heartbeat&) { return std::string(); },
    [](const Hello& m) {
      std::string text = fmt::format("hello of {} term {} copy {}", m.name.str(),
                                     m.highest_term.number, m.journal_copy_seq);
      for (const Attempt& a : m.attempts)
        text += "; " + show(a);
      return text;
    },
    [](const InventoryPage& m) {
      std::string text = fmt::format("inventory {}{}", m.page, m.last ? " (last)" : "");
      for (const Dataset& d : m.datasets)
        text += "\n            " + show(d);
      return text;
    },
    [](const DatasetChanged& m) {
      return fmt::format("changed{} {} gone {}", m.delta ? " (delta)" : "", show(m.dataset),
                         m.gone.size());
    },
    [](const DatasetRemoved& m) { return "removed " + m.dataset.str(); },
    [](const AttemptReport& m) { return "attempt " + show(m.attempt); },
    [](const StepResult& m) {
      return fmt::format("step {} {}", short_id(m.step.str()),
                         m.error ? "failed: " + m.error->describe() : "done");
    },
    [](const JournalStored& m) { return fmt::format("journal stored {}", m.seq); },
    [](const Notice& m) { return fmt::format("notice {}: {}", m.subject, m.text); },
    [](const Welcome& m) {
      return fmt::format("welcome term {} second {}", m.term.number, m.journal_second.str());
    },
    [](const Refused& m) { return "refused: " + m.error.describe(); },
    [](const StepOrder& m) { return show(m.step); },
    [](const CancelStep& m) { return "cancel step " + short_id(m.step.str()); },
    [](const AckExit& m) {
      return fmt::format("ack exit {} {}", short_id(m.job.str()), m.generation.brief());
    },
    [](const JournalRecords& m) {
      return fmt::format("journal records {}+{}{}", m.first_seq, m.records.size(),
                         m.reset ? " (reset)" : "");
    },
    [](const auto& m) { return std::string(std::decay_t<decltype(m)>::tag); },
};

template <class Message> std::string show_any(const Message& message) {
  return std::visit([](const auto& m) { return std::string(show_message(m)); }, message);
}

std::string prefixed(std::string_view prefix, std::string text) {
  return text.empty() ? text : std::string(prefix) + text;
}

bool reads_only(const env::StoreRequest& request) {
  return std::holds_alternative<env::ListDatasets>(request) ||
         std::holds_alternative<env::ChangedDatasets>(request) ||
         std::holds_alternative<env::InspectDataset>(request) ||
         std::holds_alternative<env::AskSpace>(request);
}

}  // namespace

std::string describe(const agent::Event& event) {
  return std::visit(
      Overloaded{
          [](const agent::Started& e) {
            std::string text = fmt::format("started, term {}", e.highest_term.number);
            for (const auto& a : e.attempts)
              text += fmt::format("; found {} {} {}", a.launch.attempt.generation.brief(),
                                  a.supervisor_alive ? "alive" : "not alive",
                                  a.exit ? to_string(a.exit->kind) : "no exit");
            return text;
          },
          [](const agent::ControllerConnected& e) { return fmt::format("link {} up", e.link); },
          [](const agent::ControllerGone& e) { return fmt::format("link {} gone", e.link); },
          [](const agent::ControllerSaid& e) {
            return prefixed(fmt::format("link {}: ", e.link), show_any(e.message));
          },
          [](const agent::StoreReturned& e) {
            return e.result ? std::string()
                            : fmt::format("store call {} failed: {}", e.effect,
                                          e.result.error().describe());
          },
          [](const agent::AttemptStarted& e) { return "attempt started: " + outcome(e.result); },
          [](const agent::SetupBegan& e) { return "setup of " + short_id(e.job.str()) + " began"; },
          [](const agent::JobBegan& e) { return "job " + short_id(e.job.str()) + " began"; },
          [](const agent::AttemptExited& e) {
            return fmt::format("attempt exited {} {}", e.generation.brief(),
                               to_string(e.exit.kind));
          },
          [](const agent::SupervisorLost&) { return std::string("supervisor lost"); },
          [](const agent::JobConnected& e) { return "job connected " + e.generation.brief(); },
          [](const agent::CheckpointAsked& e) {
            return fmt::format("checkpoint asked: request {} epoch {}", e.request.number,
                               e.request.epoch.value_or(0));
          },
          [](const agent::JobStopped&) { return std::string("job says stopped"); },
          [](const agent::TransferEnded& e) {
            return fmt::format("transfer {} {}", short_id(e.step.str()),
                               e.result ? "done" : e.result.error().describe());
          },
          [](const auto&) { return std::string(); }},
      event);
}

std::string describe(const agent::Effect& effect) {
  return std::visit(
      Overloaded{
          [](const agent::SayToController& e) {
            return prefixed(fmt::format("link {}: ", e.link), show_any(e.message));
          },
          [](const agent::CloseLink& e) { return fmt::format("close link {}", e.link); },
          [](const agent::CallStore& e) {
            return reads_only(e.request)
                       ? std::string()
                       : fmt::format("store call {}: {}", e.id, env::describe(e.request));
          },
          [](const agent::LaunchAttempt& e) { return "launch " + show(e.launch.attempt); },
          [](const agent::StopProcesses& e) {
            return fmt::format("stop processes {} {}", e.generation.brief(), to_string(e.mode));
          },
          [](const agent::ForgetAttempt& e) { return "forget " + e.generation.brief(); },
          [](const agent::AskJob& e) { return fmt::format("ask job: {}", to_string(e.ask)); },
          [](const agent::AnswerJob& e) {
            return fmt::format("answer job: request {} {}", e.reply.number,
                               e.reply.result ? e.reply.result->name
                                              : e.reply.result.error().describe());
          },
          [](const agent::StartTransfer& e) {
            return fmt::format("start transfer {} {} of {} ticket {}", short_id(e.step.str()),
                               e.role == agent::StartTransfer::Role::send ? "send" : "receive",
                               e.ticket.snapshot_name, short_id(e.ticket.id.str()));
          },
          [](const agent::CancelTransfer& e) {
            return "cancel transfer " + short_id(e.step.str());
          },
          [](const agent::SaveNodeState& e) {
            return fmt::format("save term {}", e.highest_term.number);
          },
          [](const auto&) { return std::string(); }},
      effect);
}

std::string describe(const controller::Event& event) {
  return std::visit(
      Overloaded{
          [](const controller::Started& e) {
            return fmt::format("started with {} records", e.records.size());
          },
          [](const controller::AgentConnected& e) { return fmt::format("link {} up", e.link); },
          [](const controller::AgentGone& e) { return fmt::format("link {} gone", e.link); },
          [](const controller::AgentSaid& e) {
            return prefixed(fmt::format("link {}: ", e.link), show_any(e.message));
          },
          [](const controller::Requested& e) {
            return std::visit(
                [](const auto& o) {
                  using O = std::decay_t<decltype(o)>;
                  if (!O::changes) return std::string();
                  return prefixed("asked ", std::string(O::tag) + " " + to_json(to_value(o)));
                },
                e.operation);
          },
          [](const controller::JournalWritten& e) {
            return fmt::format("journal written {} {}", e.seq, outcome(e.result));
          },
          [](const auto&) { return std::string(); }},
      event);
}

std::string describe(const controller::Effect& effect) {
  return std::visit(
      Overloaded{
          [](const controller::SayToAgent& e) {
            return prefixed(fmt::format("link {}: ", e.link), show_any(e.message));
          },
          [](const controller::CloseLink& e) { return fmt::format("close link {}", e.link); },
          [](const controller::WriteJournal& e) {
            return fmt::format("journal {}: {}", e.seq, e.record.substr(0, 300));
          },
          [](const controller::CompactJournal& e) {
            return fmt::format("compact to {} records, {}", e.records.size(), e.seq);
          },
          [](const controller::Answer& e) {
            return e.result ? std::string()
                            : fmt::format("answer {}: {}", e.request, e.result.error().describe());
          },
          [](const controller::Publish& e) {
            return fmt::format("event {} {}: {}", e.event.kind, e.event.subject, e.event.text);
          },
          [](const controller::StepDown& e) { return "steps down: " + e.error.describe(); }},
      effect);
}

}  // namespace zed::sim
