#include <cerrno>

#include <sys/socket.h>

#include "net/socket.hpp"

namespace zed::net {

Result<PeerCredentials> peer_credentials(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
    return fail(system_error(errno, "read the peer's credentials"));
  // The kernel answers for a TCP socket too, with nobody's: that must not pass for a uid.
  if (credentials.pid == 0)
    return fail(ErrorCode::unsupported, "the socket is no UNIX socket: it has no peer credentials");
  return PeerCredentials{credentials.uid, credentials.gid, credentials.pid};
}

}  // namespace zed::net
