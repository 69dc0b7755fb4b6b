#pragma once
// Keeps what an agent knows of its fleet fresh, by asking the controller: its certificate young,
// whom nobody believes any more, where the controller is and would be after a takeover, and, on the
// second node, the copy of the authority that a takeover there goes on with.

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bin/identity_files.hpp"
#include "net/loop.hpp"
#include "net/workers.hpp"

namespace zed::bin {

struct KeeperOptions {
  IdentityFiles files;
  std::shared_ptr<net::Tls> tls;  ///< changed in place
  std::string cookie;
  std::vector<net::Endpoint> doors;  ///< HTTP doors of controllers, the likeliest first
  bool follows = true;               ///< what the fleet says of its controller is kept and used
};

struct KeeperHandlers {
  /// All serials that are revoked, whenever there are more.
  std::function<void(const std::set<std::string>&)> revoked;
  /// Where the controller or its second node is has changed. Only with `follows`.
  std::function<void(const JoinRecord&)> moved;
};

/// Loop's thread only; asks from a thread of its own. What fails is tried again later.
class CertificateKeeper {
public:
  /// The first question comes soon after the start.
  CertificateKeeper(net::Loop& loop, KeeperOptions options, KeeperHandlers handlers);

private:
  void ask();
  /// Warns of a failure once, until it is over.
  void note(const Status& status);
  void go_along(const JoinRecord& moved);

  net::Loop& loop_;
  KeeperOptions options_;
  KeeperHandlers handlers_;
  bool warned_ = false;
  net::Timer timer_;
  net::WorkerPool worker_;  ///< last: it ends before what its work uses
};

}  // namespace zed::bin
