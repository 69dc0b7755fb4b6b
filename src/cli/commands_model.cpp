// model show, fit: what is known of models.

#include <filesystem>

#include "api/model_memory.hpp"
#include "cli/commands.hpp"
#include "cli/orders.hpp"
#include "cli/render_models.hpp"
#include "cli/typed.hpp"
#include "model/properties.hpp"
#include "modelio/source_files.hpp"

namespace zed::cli {
namespace {

/// A name has no '/'; "./model" is the file of that name.
bool is_path(const std::string& model) {
  return model.find('/') != std::string::npos || model.ends_with(".gguf") ||
         model.ends_with(".safetensors");
}

/// What an import would find, without one: no controller is asked.
Result<api::ShowModelReply> look_into(const ShowModelCommand& command) {
  modelio::SourceRules rules;
  rules.follow_links = true;
  std::error_code error;
  if (!std::filesystem::exists(command.model, error))
    return fail(ErrorCode::not_found, "there is no " + command.model + " on this machine",
                "zedctl models lists those of the fleet, which are called by name alone");
  ZED_TRY(auto entries, modelio::list_source(command.model, rules));
  modelio::DiskFiles files(entries);
  ZED_TRY(auto facts, model::read_facts(files));
  if (!facts)
    return fail(ErrorCode::unsupported, command.model + " is no model that Zed can read",
                "it reads GGUF and safetensors; others are imported as they are");
  ZED_TRY(auto workload, api::workload_of(command.use, command.gpus));
  api::ShowModelReply reply;
  reply.use = command.use;
  reply.model.name = facts->name.empty() ? command.model : facts->name;
  reply.model.size = facts->tensor_bytes;
  reply.model.properties = model::properties_of(*facts);
  reply.model.requirement = reply.model.properties["requires"];
  reply.notes = facts->notes;
  if (!facts->claimed_label.empty())
    reply.notes.push_back("it calls itself " + facts->claimed_label +
                          ", its weights say otherwise");
  reply.memory = api::memory_of(facts->geometry, workload);
  return reply;
}

}  // namespace

Result<ExitCode> carry_out(Context& context, const ShowModelCommand& command) {
  if (is_path(command.model)) {
    ZED_TRY(auto reply, look_into(command));
    print_reply(context, reply);
    return ExitCode::done;
  }
  api::ShowModel question{command.model, command.use, command.gpus};
  return ask_and_print(context, question, [&](const api::ShowModelReply& reply) {
    return render(reply, context.view());
  });
}

Result<ExitCode> carry_out(Context& context, const FitModelCommand& command) {
  ZED_TRY(http::Client * client, context.client());
  const api::FitModel question{command.model, command.use};
  ZED_TRY(std::string json, client->call_text(api::FitModel::tag, to_value(question)));
  ZED_TRY(auto reply, http::Client::read_reply<api::FitReply>(json));
  context.print(context.options().json  ? json
                : context.options().csv ? to_csv(api::encode_reply(reply))
                                        : render(reply, context.view()));
  for (const api::FitRow& row : reply.nodes)
    if (row.context > 0) return ExitCode::done;
  return ExitCode::unplaceable;
}

Result<ExitCode> carry_out(Context& context, const RegisterModelCommand& command) {
  ZED_TRY(JobAt target, parse_job_at(command.target));
  api::RegisterModel request;
  request.job = target.job;
  request.checkpoint = target.checkpoint;
  request.name = command.name;
  request.version = command.version;
  request.path = command.path;
  request.alias = command.alias;
  ZED_TRY(request.requirement, parse_requirement(command.requires_));
  for (const std::string& text : command.properties) {
    ZED_TRY(auto property, parse_property(text));
    request.properties.insert(std::move(property));
  }
  ZED_TRY(auto reply, order(context, request, "registering " + command.target, moving_limit));
  print_reply(context, reply);
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const AliasModelCommand& command) {
  ZED_TRY(auto reply, order(context, command.request, "setting " + command.request.alias));
  print_reply(context, reply);
  return ExitCode::done;
}

Result<ExitCode> carry_out(Context& context, const RemoveModelCommand& command) {
  api::RemoveModel request = command.request;
  if (!request.dry_run && !context.options().yes) {
    request.dry_run = true;
    ZED_TRY(auto preview, order(context, request, "looking"));
    context.note(render(preview, context.error_view()));
    request.dry_run = false;
    ZED_TRY(bool agreed, context.confirm("Destroy it?"));
    if (!agreed) return fail(ErrorCode::refused, "nothing was destroyed", "as you said");
  }
  ZED_TRY(auto reply, order(context, request, "removing " + request.model));
  print_reply(context, reply);
  return ExitCode::done;
}

}  // namespace zed::cli
