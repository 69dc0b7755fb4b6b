// What is wrong with this machine: what its agent's program finds, and whether a controller
// answers.

#include <algorithm>
#include <cstdlib>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/dev_processes.hpp"
#include "cli/render.hpp"
#include "net/tool.hpp"

namespace zed::cli {
namespace {

using Level = Finding::Level;

/// GPU tools have deadlines of ten seconds each, and there are a few of them.
constexpr Millis probe_patience = seconds(90);
constexpr Millis controller_patience = seconds(10);
/// People compare times of two machines; certificates forgive an hour.
constexpr Millis clocks_differ = seconds(2);
constexpr Millis clocks_refuse = minutes(50);

std::string agent_program() {
  if (auto beside = program_beside("zed-agent")) return beside->string();
  return net::find_tool("zed-agent");
}

Result<Findings> ask_agent(const std::string& program, const DoctorCommand& command) {
  std::vector<std::string> arguments{program, "doctor"};
  auto add = [&arguments](const char* name, const std::string& value) {
    if (!value.empty()) arguments.insert(arguments.end(), {name, value});
  };
  add("--state", command.state);
  add("--pool", command.pool);
  add("--store", command.store);
  ZED_TRY(auto answer, net::run_tool(arguments, probe_patience));
  ZED_TRY(Value value, parse_json(answer.out));
  return from_value<Findings>(value);
}

void look_at_machine(const DoctorCommand& command, Findings& findings) {
  const std::string program = agent_program();
  if (program.empty()) {
    findings.findings.push_back({Level::warn, "zed-agent",
                                 "it is not installed here: nothing of this machine was looked at",
                                 "install it beside zedctl, if this machine is to be a node"});
    return;
  }
  auto found = ask_agent(program, command);
  if (!found) {
    findings.findings.push_back({Level::fail, "zed-agent",
                                 program + " doctor: " + found.error().describe(),
                                 "run it by hand"});
    return;
  }
  for (Finding& finding : found->findings)
    findings.findings.push_back(std::move(finding));
}

/// By half of the way there and back; what the way itself takes is no difference.
Finding judge_difference(WallTime asked, WallTime answered, WallTime theirs) {
  const Millis way{answered.ms - asked.ms};
  const Millis difference{theirs.ms - (asked.ms + way.value / 2)};
  const Millis off{std::max<std::int64_t>(0, std::abs(difference.value) - way.value / 2)};
  if (off <= clocks_differ) return {Level::ok, "clock", "as the controller's", ""};
  return {off < clocks_refuse ? Level::warn : Level::fail, "clock",
          show(off) + (difference.value > 0 ? " behind" : " ahead of") + " the controller's",
          "timedatectl set-ntp true on both"};
}

void look_at_controller(Context& context, Findings& findings) {
  auto client = context.client();
  if (!client) {
    findings.findings.push_back(
        {Level::warn, "controller", client.error().describe(), client.error().hint});
    return;
  }
  (*client)->set_time_limit(controller_patience);
  const WallTime asked = wall_now();
  auto status = (*client)->call(api::GetStatus{});
  const WallTime answered = wall_now();
  if (!status) {
    findings.findings.push_back(
        {Level::fail, "controller", status.error().describe(), status.error().hint});
    return;
  }
  std::int64_t nodes = 0;
  for (const auto& entry : status->nodes)
    nodes += entry.second;
  findings.findings.push_back(
      {Level::ok, "controller",
       "on " + status->controller + ", " + plural(static_cast<std::size_t>(nodes), "node"), ""});
  // An older controller does not say what time it has.
  if (status->at.ms != 0)
    findings.findings.push_back(judge_difference(asked, answered, status->at));
}

}  // namespace

Result<ExitCode> carry_out(Context& context, const DoctorCommand& command) {
  Findings findings;
  look_at_machine(command, findings);
  look_at_controller(context, findings);
  if (context.options().json)
    context.print(to_json(to_value(findings).set("schema", api::schema_version)) + "\n");
  else
    context.print(render(findings, context.view()));
  for (const Finding& finding : findings.findings)
    if (finding.level == Level::fail) return ExitCode::error;
  return ExitCode::done;
}

}  // namespace zed::cli
