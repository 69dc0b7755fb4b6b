#pragma once
// What commands that change something share: sending an order while telling what happens, and
// giving its reply.

#include <string>

#include "base/json.hpp"
#include "cli/commands.hpp"
#include "cli/csv.hpp"
#include "cli/progress.hpp"
#include "cli/render.hpp"

namespace zed::cli {

inline constexpr Millis order_limit = minutes(10);
/// Of orders that move much: imports, copies.
inline constexpr Millis moving_limit = minutes(24 * 60);

/// Marks a submit, so that sending it twice is one job. 32 hexadecimal digits.
Result<std::string> random_uuid();

/// Whether it has succeeded, failed, or was stopped or cancelled.
bool is_over(JobState state);

/// A job by its identity, whatever its name means by now. Errors: `not_found`, those of the client.
Result<api::JobRow> find_job(http::Client& client, const JobId& id);

/// Sends an order that may take a while, and tells what happens meanwhile.
template <class Operation>
Result<typename Operation::Reply> order(Context& context, const Operation& operation,
                                        const std::string& doing, Millis limit = order_limit) {
  ZED_TRY(http::Client * client, context.client());
  client->set_time_limit(limit);
  Narrator narrator(context, "");
  return client->call(operation, {seconds(1), [&] { narrator.tell_elapsed(doing); }});
}

template <class Reply> void print_reply(Context& context, const Reply& reply) {
  if (context.options().json)
    context.print(to_json(api::encode_reply(reply)) + "\n");
  else if (context.options().csv)
    context.print(to_csv(api::encode_reply(reply)));
  else
    context.print(render(reply, context.view()));
}

}  // namespace zed::cli
