#include "bin/certificate_keeper.hpp"

#include "base/log.hpp"

namespace zed::bin {
namespace {

constexpr Millis first_after = seconds(5), again_after = minutes(10);

/// On the worker's thread. Revocations first: they matter more.
Status refresh(const IdentityFiles& files, net::Tls& tls, const http::RemoteDoor& door,
               WallTime now) {
  ZED_TRY(auto serials, http::revocations(door));
  ZED_TRY(const auto before, files.load_trust());
  if (serials != before.revoked) ZED_CHECK(files.save_revoked(serials));
  tls.revoke(std::move(serials));
  const auto own = tls.own();
  if (!own || !pki::is_due_for_renewal(*own, now)) return {};
  ZED_TRY(const auto renewed, http::renew(door));
  ZED_CHECK(files.save_identity(renewed));
  log_info("certificate renewed");
  return tls.replace(renewed);
}

}  // namespace

CertificateKeeper::CertificateKeeper(net::Loop& loop, IdentityFiles files,
                                     std::shared_ptr<net::Tls> tls, net::Endpoint controller)
    : loop_(loop), files_(std::move(files)), tls_(std::move(tls)),
      controller_(std::move(controller)), timer_(loop), worker_(loop, 1, 1) {
  timer_.start(first_after, [this] { ask(); });
}

void CertificateKeeper::ask() {
  timer_.start(again_after, [this] { ask(); });
  auto work = [files = files_, tls = tls_, door = http::RemoteDoor{controller_, tls_},
               now = loop_.clocks().wall] { return refresh(files, *tls, door, now); };
  // One that still waits for an answer keeps its place.
  (void)worker_.run<Status>(std::move(work), [this](const Status& refreshed) {
    if (!refreshed && !std::exchange(warned_, true))
      log_warning("certificates are as they were: " + refreshed.error().describe());
    if (refreshed) warned_ = false;
  });
}

}  // namespace zed::bin
