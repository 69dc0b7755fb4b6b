#pragma once
// Keeps an agent's certificate young, and its list of revoked ones fresh, by asking the controller.

#include <memory>

#include "bin/identity_files.hpp"
#include "net/loop.hpp"
#include "net/workers.hpp"

namespace zed::bin {

/// Loop's thread only; asks from a thread of its own. What fails is tried again later.
class CertificateKeeper {
public:
  /// `tls` is changed in place. The first question comes soon after the start.
  CertificateKeeper(net::Loop& loop, IdentityFiles files, std::shared_ptr<net::Tls> tls,
                    net::Endpoint controller);

private:
  void ask();

  net::Loop& loop_;
  IdentityFiles files_;
  std::shared_ptr<net::Tls> tls_;
  net::Endpoint controller_;
  bool warned_ = false;
  net::Timer timer_;
  net::WorkerPool worker_;  ///< last: it ends before what its work uses
};

}  // namespace zed::bin
