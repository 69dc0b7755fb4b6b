// A branch may go after a time that a person set.

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/names.hpp"
#include "controller/operations/handlers.hpp"

namespace zed::controller {
namespace {

constexpr std::size_t most_expiries = 10'000;
constexpr Millis a_day = minutes(24 * 60);
constexpr Millis ten_years{std::int64_t{3650} * 24 * 3600 * 1000};

struct Branch {
  DatasetName name;
  DatasetId uuid;
};

/// By its whole name, or by the last component.
Result<Branch> find_branch(const Machine& m, const std::string& typed) {
  std::vector<std::string> known;
  for (const auto& held : m.fleet.view().datasets)
    for (const auto& [name, dataset] : held.second) {
      if (dataset.property(property::branch_of).empty() || dataset.uuid.is_nil()) continue;
      if (name.str() == typed || name.leaf() == typed) return Branch{name, dataset.uuid};
      known.push_back(name.str());
    }
  return fail(ErrorCode::not_found, "there is no branch " + percent_encode(typed.substr(0, 200)),
              hint_for(typed, known, "branch"));
}

}  // namespace

void handle(const Asked& asked, const api::ExpireBranch& op) {
  Machine& m = asked.m;
  auto branch = find_branch(m, op.branch);
  if (!branch) return asked.refuse(branch.error());
  Expiry expiry;
  expiry.branch = branch->uuid;
  expiry.name = branch->name;
  expiry.by = asked.by();
  if (op.after) {
    if (*op.after < a_day || *op.after > ten_years)
      return asked.refuse(ErrorCode::invalid,
                          "a branch stays for a day at least, and ten years at most",
                          "zedctl expire " + branch->name.str() + " --after \"30 days\"");
    if (m.desired.expiries.size() >= most_expiries)
      return asked.refuse(ErrorCode::refused, "too many branches expire already");
    expiry.at = WallTime{m.now.wall.ms + op.after->value};
  }
  m.record(ExpirySet{expiry, !op.after.has_value()});
  m.announced.erase(branch->uuid);
  asked.audit("branch " + branch->name.str(),
              op.after ? "expires in " + show(*op.after) : "never expires");
  api::ExpireReply reply;
  reply.branch = branch->name.str();
  if (op.after) reply.at = expiry.at;
  asked.reply_when_durable([reply](Machine&) -> Result<Value> { return api::encode_reply(reply); });
}

}  // namespace zed::controller
