#include "bin/door_keeper.hpp"

namespace zed::bin {
namespace {

bool changes(const api::Request& request) {
  return std::visit([](const auto& op) { return std::decay_t<decltype(op)>::changes; }, request);
}

AuditEntry entry_of(const api::Request& request, const api::Caller& caller) {
  AuditEntry entry{{}, caller.who, caller.door, caller.from, "", Value(), ""};
  std::visit(
      [&entry](const auto& op) {
        entry.what = std::string(std::decay_t<decltype(op)>::tag);
        entry.arguments = to_value(op);
      },
      request);
  return entry;
}

Error may_only_look(const api::Caller& caller) {
  return {ErrorCode::refused,
          caller.who + " may look at the fleet, not change it",
          {},
          "an operator can: zedctl token create --role operator"};
}

}  // namespace

Result<std::unique_ptr<DoorKeeper>> DoorKeeper::open(net::Loop& loop,
                                                     const std::filesystem::path& state,
                                                     std::optional<RegistrarOptions> registrar,
                                                     OnRevoked on_revoked) {
  std::unique_ptr<DoorKeeper> keeper(new DoorKeeper(loop));
  ZED_TRY(keeper->audit_, AuditLog::open(loop, state));
  if (registrar) {
    ZED_TRY(keeper->registrar_,
            Registrar::open(loop, std::move(*registrar), *keeper->audit_, std::move(on_revoked)));
  }
  return keeper;
}

/// Writes its line when the answer is known, or when nobody waits for it any more.
struct DoorKeeper::Change {
  Change(DoorKeeper& owner, AuditEntry about) : keeper(owner), entry(std::move(about)) {}
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;
  ~Change() { note("whoever asked left before the answer"); }
  void note(std::string result) {
    if (std::exchange(noted, true)) return;
    entry.at = keeper.loop_.clocks().wall;
    entry.result = std::move(result);
    keeper.audit_->add(entry);
  }
  DoorKeeper& keeper;
  AuditEntry entry;
  bool noted = false;
};

http::Reply DoorKeeper::audited(const api::Request& request, const api::Caller& caller,
                                http::Reply reply) {
  auto change = std::make_shared<Change>(*this, entry_of(request, caller));
  return [change, reply = std::move(reply)](Result<Value> result) {
    change->note(result ? "ok" : result.error().describe());
    reply(std::move(result));
  };
}

/// A node that is forgotten is not believed any more either.
http::OnGone DoorKeeper::forget(const api::ForgetNode& op, const api::Caller& caller,
                                http::Reply reply, const http::Handler& next) {
  // A name that only has a certificate (a person's) is unknown to the fleet, and that is fine.
  const auto conclude = [reply](Result<Value> result, bool revoked) {
    const bool only_certificate = !result && result.error().code == ErrorCode::not_found && revoked;
    reply(only_certificate ? Result<Value>(api::encode_reply(api::NodesReply{}))
                           : std::move(result));
  };
  // By force it is put out first: what is connected is not forgotten.
  if (op.force) {
    registrar_->forget(op.node, [op, caller, reply, next, conclude](const Result<bool>& revoked) {
      if (!revoked) return reply(fail(revoked.error()));
      next(op, caller,
           [conclude, was = *revoked](Result<Value> result) { conclude(std::move(result), was); });
    });
    return {};
  }
  return next(op, caller, [this, node = op.node, reply, conclude](Result<Value> result) {
    if (!result && result.error().code != ErrorCode::not_found) {
      Error error = std::move(result).error();
      error.hint += std::string(error.hint.empty() ? "" : "; ") +
                    "--force also puts a connected machine out, at once";
      return reply(fail(std::move(error)));
    }
    registrar_->forget(node, [reply, conclude, result](const Result<bool>& revoked) {
      if (!revoked) return reply(fail(revoked.error()));
      conclude(result, *revoked);
    });
  });
}

http::OnGone DoorKeeper::pass(api::Request request, api::Caller caller, http::Reply reply,
                              const http::Handler& next) {
  if (changes(request)) {
    reply = audited(request, caller, std::move(reply));
    if (!caller.may_change) {
      reply(fail(may_only_look(caller)));
      return {};
    }
  }
  if (!registrar_) return next(std::move(request), std::move(caller), std::move(reply));
  if (const auto* create = std::get_if<api::CreateToken>(&request)) {
    registrar_->create_token(*create, reply);
    return {};
  }
  if (std::holds_alternative<api::ListTokens>(request)) {
    reply(registrar_->list());
    return {};
  }
  if (const auto* node = std::get_if<api::ForgetNode>(&request))
    return forget(*node, caller, std::move(reply), next);
  return next(std::move(request), std::move(caller), std::move(reply));
}

void DoorKeeper::enrol(const http::Enrolment& enrolment, const http::Reply& reply) {
  if (registrar_) return registrar_->enrol(enrolment, reply);
  reply(fail(ErrorCode::unsupported, "this fleet has no certificate authority"));
}

void DoorKeeper::set_distribution_port(std::uint16_t port) {
  if (registrar_) registrar_->set_distribution_port(port);
}

}  // namespace zed::bin
