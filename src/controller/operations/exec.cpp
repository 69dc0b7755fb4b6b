// Commands beside a running job.

#include <fmt/format.h>

#include "base/id.hpp"
#include "controller/names.hpp"
#include "controller/operations/daily.hpp"

namespace zed::controller {
namespace {

constexpr std::size_t longest_argv = 64 * 1024;

Status check(const api::Exec& op) {
  if (!bytes_of_hex(op.command))
    return fail(ErrorCode::invalid, "command is not 32 hexadecimal digits");
  std::size_t size = 0;
  for (const std::string& word : op.argv)
    size += word.size() + 1;
  if (op.argv.empty() || size > longest_argv)
    return fail(ErrorCode::invalid, "a command has 1 word or more, and 64 KiB or less",
                "zedctl exec JOB -- COMMAND");
  return {};
}

}  // namespace

void handle(const Asked& asked, const api::Exec& op) {
  Machine& m = asked.m;
  if (Status fits = check(op); !fits) return asked.refuse(fits.error());
  DesiredJob* job = job_or_refuse(asked, op.job);
  if (job == nullptr) return;
  const Attempt* attempt = visible_attempt(m, *job);
  const std::string& name = job->job.name.str();
  if (attempt == nullptr || !is_live(*attempt) || !m.fleet.is_connected(job->placed->node))
    return asked.refuse(
        ErrorCode::refused,
        fmt::format("job {} does not run: it is {}", name, to_string(state_of(m, *job))),
        fmt::format("zedctl cp {}@CHECKPOINT:PATH . copies its files", name));
  const NodeName node = job->placed->node;
  StartCommand start{op.command,  job->job.id, attempt->generation, op.argv,
                     op.terminal, op.rows,     op.columns};
  asked.audit("job " + name, "exec " + op.argv.front());
  ask_node_for<CommandState>(asked, node, std::move(start),
                             "start " + op.argv.front() + " beside job " + name,
                             [reply = api::ExecReply{op.command, name, node.str()}](
                                 const Asked& again, const CommandState&) { again.reply(reply); });
}

void handle(const Asked& asked, const api::ExecTend& op) {
  auto node = find_node(asked.m.desired, asked.m.fleet.view(), op.node);
  if (!node) return asked.refuse(node.error());
  ask_node_for<CommandState>(asked, *node, op.tend, "tend a command on " + op.node,
                             [](const Asked& again, const CommandState& state) {
                               again.reply(api::ExecTendReply{state});
                             });
}

}  // namespace zed::controller
