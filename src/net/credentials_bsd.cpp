// macOS and FreeBSD.
#include <cerrno>

#include <unistd.h>

#include "net/socket.hpp"

namespace zed::net {

Result<PeerCredentials> peer_credentials(int fd) {
  PeerCredentials credentials;
  if (::getpeereid(fd, &credentials.uid, &credentials.gid) != 0)
    return fail(system_error(errno, "read the peer's credentials"));
  return credentials;
}

}  // namespace zed::net
