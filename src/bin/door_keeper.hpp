#pragma once
// Between the controller's doors and its state machine: answers what is about certificates itself,
// and writes down who changed what.

#include <cstdint>
#include <memory>
#include <optional>

#include "api/operations.hpp"
#include "bin/audit.hpp"
#include "bin/registrar.hpp"
#include "http/server.hpp"

namespace zed::bin {

/// Loop's thread only.
class DoorKeeper {
public:
  using OnRevoked = std::function<void(const std::set<std::string>&)>;

  /// The audit goes to `state`. Without `registrar` nobody is given certificates. Errors: those of
  /// the files.
  static Result<std::unique_ptr<DoorKeeper>> open(net::Loop& loop,
                                                  const std::filesystem::path& state,
                                                  std::optional<RegistrarOptions> registrar,
                                                  OnRevoked on_revoked);

  /// A request from any door; `next` carries out what is not the keeper's own.
  http::OnGone pass(api::Request request, api::Caller caller, http::Reply reply,
                    const http::Handler& next);
  void enrol(const http::Enrolment& enrolment, const http::Reply& reply);
  void set_distribution_port(std::uint16_t port);

private:
  struct Change;
  explicit DoorKeeper(net::Loop& loop) : loop_(loop) {}
  http::Reply audited(const api::Request& request, const api::Caller& caller, http::Reply reply);
  http::OnGone forget(const api::ForgetNode& op, const api::Caller& caller, http::Reply reply,
                      const http::Handler& next);

  net::Loop& loop_;
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<Registrar> registrar_;
};

}  // namespace zed::bin
