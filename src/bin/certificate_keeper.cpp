#include "bin/certificate_keeper.hpp"

#include "base/clock.hpp"
#include "base/log.hpp"
#include "bin/joined.hpp"

namespace zed::bin {
namespace {

constexpr Millis first_after = seconds(5), again_after = minutes(10);

/// What a round of questions came to. Each part counts even if another failed.
struct Round {
  Status status;                                 ///< the first that failed
  std::optional<std::set<std::string>> revoked;  ///< all, if there are more than before
  std::optional<JoinRecord> moved;

  void note(Status result) {
    if (status && !result) status = std::move(result);
  }
};

/// Whose own certificate is revoked asks without one: it has to learn whom else not to believe. The
/// refusal may arrive as an end of the connection, so any answer but silence is tried again.
Result<std::set<std::string>> ask_revocations(const http::RemoteDoor& door,
                                              const IdentityFiles& files) {
  auto serials = http::revocations(door);
  if (serials || serials.error().code == ErrorCode::timeout) return serials;
  ZED_TRY(pki::Trust trust, files.load_trust());
  ZED_TRY(auto nobody, net::Tls::make({}, std::move(trust)));
  return http::revocations({door.endpoint, std::move(nobody)});
}

/// Every door is asked, and what was revoked stays so: whoever has a stolen controller's machine
/// cannot hide from this one what the others know.
Status learn_revocations(const KeeperOptions& options, Round& round) {
  ZED_TRY(const pki::Trust trust, options.files.load_trust());
  std::set<std::string> all = trust.revoked;
  bool answered = false;
  Status failed;
  for (const net::Endpoint& door : options.doors) {
    auto serials = ask_revocations({door, options.tls}, options.files);
    answered |= serials.has_value();
    if (serials)
      all.merge(*serials);
    else if (failed)
      failed = fail(std::move(serials).error());
  }
  if (all != trust.revoked) {
    ZED_CHECK(options.files.save_revoked(all));
    options.tls->revoke(all);
    round.revoked = std::move(all);
  }
  return answered ? Status() : failed;
}

/// The second node keeps what a controller here would go on with; another one keeps nothing.
Status keep_authority(const KeeperOptions& options, const http::SuccessionReply& reply) {
  const auto own = options.tls->own();
  if (own && own->identity.host() == reply.second)
    return reply.authority ? options.files.save_authority_copy(*reply.authority, options.cookie)
                           : Status();
  return options.files.remove_authority_copy();
}

Status follow(const KeeperOptions& options, const net::Endpoint& door,
              const http::SuccessionReply& reply, Round& round) {
  if (!options.follows) return {};
  ZED_TRY(const JoinRecord before, load_join(options.files));
  JoinRecord now{reply.controller, door.host,    reply.distribution_port,
                 door.port,        reply.second, reply.second_host};
  if (now == before) return {};
  ZED_CHECK(save_join(options.files, now));
  round.moved = std::move(now);
  return {};
}

Status renew(const KeeperOptions& options, const http::RemoteDoor& door) {
  const auto own = options.tls->own();
  if (!own || !pki::is_due_for_renewal(*own, wall_now())) return {};
  ZED_TRY(const auto renewed, http::renew(door));
  ZED_CHECK(options.files.save_identity(renewed));
  log_info("certificate renewed");
  return options.tls->replace(renewed);
}

/// Of the first controller that answers.
Status ask_a_controller(const KeeperOptions& options, Round& round) {
  Status failed;
  for (const net::Endpoint& endpoint : options.doors) {
    const http::RemoteDoor door{endpoint, options.tls};
    const auto reply = http::succession(door);
    if (!reply) {
      if (failed) failed = fail(reply.error());
      continue;
    }
    round.note(keep_authority(options, *reply));
    round.note(follow(options, endpoint, *reply, round));
    return renew(options, door);
  }
  return failed;
}

/// On the worker's thread. Revocations first: they matter more.
Round ask_all(const KeeperOptions& options) {
  Round round;
  round.note(learn_revocations(options, round));
  round.note(ask_a_controller(options, round));
  return round;
}

}  // namespace

CertificateKeeper::CertificateKeeper(net::Loop& loop, KeeperOptions options,
                                     KeeperHandlers handlers)
    : loop_(loop), options_(std::move(options)), handlers_(std::move(handlers)), timer_(loop),
      worker_(loop, 1, 1) {
  timer_.start(first_after, [this] { ask(); });
}

void CertificateKeeper::ask() {
  timer_.start(again_after, [this] { ask(); });
  // One that still waits for an answer keeps its place.
  (void)worker_.run<Round>([options = options_] { return ask_all(options); },
                           [this](const Round& round) {
                             note(round.status);
                             if (round.revoked && handlers_.revoked)
                               handlers_.revoked(*round.revoked);
                             if (round.moved) go_along(*round.moved);
                           });
}

void CertificateKeeper::note(const Status& status) {
  if (!status && !std::exchange(warned_, true))
    log_warning("certificates are as they were: " + status.error().describe());
  if (status) warned_ = false;
}

void CertificateKeeper::go_along(const JoinRecord& moved) {
  options_.doors = {{moved.host, moved.http_port}};
  if (const auto standby = standby_of(moved))
    options_.doors.push_back({standby->endpoint.host, moved.http_port});
  if (handlers_.moved) handlers_.moved(moved);
}

}  // namespace zed::bin
