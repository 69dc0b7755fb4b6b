#include "net/listener.hpp"

#include <cerrno>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "net/asio.hpp"
#include "net/socket.hpp"
#include "net/system.hpp"

namespace zed::net {
namespace {

/// How long to wait when accept fails for lack of descriptors or memory: it would fail again at
/// once.
constexpr Millis accept_retry{100};
/// Accepted in one turn of the loop, so that a flood of connections does not starve the others.
constexpr int accepts_a_turn = 64;

}  // namespace

struct Listener::State : std::enable_shared_from_this<Listener::State> {
  State(Loop& loop, Fd socket, OnAccept accept)
      : acceptor(context(loop), socket.release()), on_accept(std::move(accept)), retry(loop) {}

  void wait() {
    acceptor.async_wait(boost::asio::posix::descriptor_base::wait_read,
                        [self = shared_from_this()](const boost::system::error_code& error) {
                          if (!error && self->open) self->accept();
                        });
  }

  void accept() {
    for (int i = 0; i < accepts_a_turn && open; ++i) {
      Fd fd = accept_now(acceptor.native_handle());
      if (fd) {
        on_accept(std::move(fd));
        continue;
      }
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      if (errno == ECONNABORTED || errno == EINTR) continue;
      retry.start(accept_retry, [self = shared_from_this()] {
        if (self->open) self->wait();
      });
      return;
    }
    if (open) wait();
  }

  void close() {
    open = false;
    retry.cancel();
    boost::system::error_code ignored;
    acceptor.close(ignored);
    remove_file();
  }

  void remove_file() {
    struct stat info {};
    if (path.empty() || ::stat(path.c_str(), &info) != 0) return;
    if (info.st_dev == device && info.st_ino == inode) ::unlink(path.c_str());
  }

  boost::asio::posix::stream_descriptor acceptor;
  OnAccept on_accept;
  Timer retry;
  bool open = true;
  std::string path;
  dev_t device = 0;
  ino_t inode = 0;
};

Listener::Listener(std::shared_ptr<State> state) : state_(std::move(state)) {
  state_->wait();
}
Listener::~Listener() {
  if (state_) state_->close();
}
Listener::Listener(Listener&&) noexcept = default;
Listener& Listener::operator=(Listener&& other) noexcept {
  if (this == &other) return *this;
  if (state_) state_->close();
  state_ = std::move(other.state_);
  return *this;
}

Result<Listener> Listener::tcp(Loop& loop, const Endpoint& endpoint, Exposure exposure,
                               OnAccept on_accept) {
  ZED_TRY(Fd fd, listen_tcp(endpoint, exposure));
  return Listener(std::make_shared<State>(loop, std::move(fd), std::move(on_accept)));
}

Result<Listener> Listener::local(Loop& loop, const std::string& path, OnAccept on_accept) {
  ZED_TRY(Fd fd, listen_unix(path));
  auto state = std::make_shared<State>(loop, std::move(fd), std::move(on_accept));
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) {
    state->path = path;
    state->device = info.st_dev;
    state->inode = info.st_ino;
  }
  return Listener(std::move(state));
}

Endpoint Listener::endpoint() const {
  return local_endpoint(state_->acceptor.native_handle()).value_or(Endpoint{});
}

}  // namespace zed::net
