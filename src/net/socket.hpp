#pragma once
// Sockets as descriptors: for whoever drives them by asio, by Beast or by a blocking thread. For
// message traffic on the loop see net/connection.hpp. All are close-on-exec.

#include <optional>
#include <string>

#include <sys/types.h>

#include "base/result.hpp"
#include "base/units.hpp"
#include "net/endpoint.hpp"
#include "net/fd.hpp"

namespace zed::net {

/// A listening, non-blocking TCP socket. The host is an address in numbers or "localhost". Errors:
/// `refused` by `exposure`, `busy` if the port is in use, `invalid` for a name.
Result<Fd> listen_tcp(const Endpoint& endpoint, Exposure exposure);

/// A listening, non-blocking UNIX socket of mode 0600. A dead socket file in the way (nobody
/// accepts) is replaced. Errors: `busy` if somebody listens there, `exists` if the path is
/// something else, `invalid` if the path is longer than the platform's sockaddr_un takes (about 100
/// bytes).
Result<Fd> listen_unix(const std::string& path);

/// Connects at once or fails; blocking mode. Errors: `not_found`, `unavailable` (nobody listens).
Result<Fd> connect_unix(const std::string& path);

/// Connects by TCP and waits for it, as long as `limit` (name resolution beside: the system's own
/// limits); for programs without a loop. The socket is non-blocking. A name's addresses are tried
/// in order, those that `exposure` forbids never. Errors: as net::connect_tcp.
Result<Fd> dial_tcp(const Endpoint& endpoint, Exposure exposure, Millis limit);

/// The own address from which this machine would send to `endpoint`, by the kernel's routes;
/// nothing is sent. Errors: `not_found` (name), `unavailable` (no route).
Result<std::string> source_address(const Endpoint& endpoint);

struct PeerCredentials {
  uid_t uid = 0;
  gid_t gid = 0;
  std::optional<pid_t> pid;  ///< where the platform tells (Linux)
};
/// Who is at the other end of a UNIX socket, by the kernel's word at connect time.
Result<PeerCredentials> peer_credentials(int fd);

/// The address that a TCP socket is bound to (with the port that the kernel chose), or its peer's.
Result<Endpoint> local_endpoint(int fd);
Result<Endpoint> peer_endpoint(int fd);

}  // namespace zed::net
