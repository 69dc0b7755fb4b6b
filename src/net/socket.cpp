#include "net/socket.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/system.hpp"

namespace zed::net {
namespace {

/// What the kernel allows is often less; asking for more is harmless.
constexpr int backlog = 1024;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Result<Address> numeric_address(const Endpoint& endpoint) {
  const std::string host = endpoint.host == "localhost" ? "127.0.0.1" : endpoint.host;
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(endpoint.port);
    address.size = sizeof(sockaddr_in);
    return address;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(endpoint.port);
    address.size = sizeof(sockaddr_in6);
    return address;
  }
  return fail(ErrorCode::invalid, "\"" + endpoint.host.substr(0, 80) + "\" is not an IP address",
              "listen on an address in numbers, like 127.0.0.1");
}

Result<Address> unix_address(const std::string& path) {
  Address address;
  auto* un = reinterpret_cast<sockaddr_un*>(&address.storage);
  if (path.empty() || path.size() >= sizeof(un->sun_path) || path.find('\0') != std::string::npos)
    return fail(ErrorCode::invalid,
                "the path of a UNIX socket has 1 to " + std::to_string(sizeof(un->sun_path) - 1) +
                    " bytes, this one " + std::to_string(path.size()) + ": " + path.substr(0, 200),
                "choose a shorter folder");
  un->sun_family = AF_UNIX;
  std::memcpy(un->sun_path, path.data(), path.size());
  address.size = sizeof(sockaddr_un);
  return address;
}

Result<Fd> make_socket(int family, const std::string& what) {
#ifdef SOCK_CLOEXEC
  Fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
#else
  Fd fd(::socket(family, SOCK_STREAM, 0));
#endif
  if (!fd) return fail(system_error(errno, what));
  quiet(fd.get());
  return fd;
}

Status start_listening(int fd, const std::string& what) {
  if (::listen(fd, backlog) != 0) return fail(system_error(errno, what));
  if (::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) != 0)
    return fail(system_error(errno, what));
  return {};
}

/// Removes the socket file of a program that is gone. Anything else in the way is an error.
Status clear_the_way(const std::string& path, const std::string& what) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return {};
    return fail(system_error(errno, what));
  }
  if (!S_ISSOCK(info.st_mode))
    return fail(
        Error{ErrorCode::exists, "something that is no socket has that name", {}, {}}.with(what));
  if (auto somebody = connect_unix(path); somebody || somebody.error().code == ErrorCode::busy)
    return fail(Error{ErrorCode::busy, "another program listens there", {}, {}}
                    .hinted("stop it first")
                    .with(what));
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail(system_error(errno, what));
  return {};
}

Result<Endpoint> endpoint_of(const Address& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.storage.ss_family == AF_INET) {
    auto* v4 = reinterpret_cast<const sockaddr_in*>(&address.storage);
    ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
    return Endpoint{text, ntohs(v4->sin_port)};
  }
  if (address.storage.ss_family == AF_INET6) {
    auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
    ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
    return Endpoint{text, ntohs(v6->sin6_port)};
  }
  return fail(ErrorCode::unsupported, "the socket is not TCP");
}

}  // namespace

Result<Fd> listen_tcp(const Endpoint& endpoint, Exposure exposure) {
  const std::string what = "listen on " + endpoint.str();
  if (auto allowed = check_exposure(endpoint, exposure); !allowed)
    return fail(std::move(allowed).error().with(what));
  auto address = numeric_address(endpoint);
  if (!address) return fail(std::move(address).error().with(what));
  ZED_TRY(Fd fd, make_socket(address->storage.ss_family, what));
  // A restarted daemon takes its port back at once. This does not let two programs share it.
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), address->get(), address->size) != 0) return fail(system_error(errno, what));
  ZED_CHECK(start_listening(fd.get(), what));
  return fd;
}

Result<Fd> listen_unix(const std::string& path) {
  const std::string what = "listen on " + path;
  ZED_TRY(Address address, unix_address(path));
  ZED_CHECK(clear_the_way(path, what));
  ZED_TRY(Fd fd, make_socket(AF_UNIX, what));
  if (::bind(fd.get(), address.get(), address.size) != 0) return fail(system_error(errno, what));
  // Nobody can connect before listen(), so the mode is right before it matters.
  if (::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0) return fail(system_error(errno, what));
  ZED_CHECK(start_listening(fd.get(), what));
  return fd;
}

Result<Fd> connect_unix(const std::string& path) {
  const std::string what = "connect to " + path;
  ZED_TRY(Address address, unix_address(path));
  ZED_TRY(Fd fd, make_socket(AF_UNIX, what));
  int outcome = 0;
  do
    outcome = ::connect(fd.get(), address.get(), address.size);
  while (outcome != 0 && errno == EINTR);
  if (outcome != 0) return fail(system_error(errno, what));
  return fd;
}

namespace {

using AddressesPtr = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<AddressesPtr> resolve(const Endpoint& endpoint, int kind) {
  addrinfo hints{};
  hints.ai_socktype = kind;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(endpoint.port);
  if (::getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &found) != 0)
    return fail(ErrorCode::not_found, "no address is known for that name",
                "check the host's name, or give its address");
  return AddressesPtr(found, &::freeaddrinfo);
}

Status connect_within(int fd, const addrinfo& to, Millis limit) {
  if (::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) != 0)
    return fail(system_error(errno, "prepare a socket"));
  if (::connect(fd, to.ai_addr, to.ai_addrlen) == 0) return {};
  if (errno != EINPROGRESS) return fail(system_error(errno, "connect"));
  pollfd watched{fd, POLLOUT, 0};
  const int ready = ::poll(&watched, 1, static_cast<int>(limit.value));
  if (ready == 0)
    return fail(ErrorCode::timeout, "no answer within " + std::to_string(limit.value) + " ms");
  int error = ready < 0 ? errno : 0;
  socklen_t size = sizeof error;
  if (ready > 0) ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return fail(system_error(error, "connect"));
  return {};
}

Result<Fd> dial_one(const addrinfo& to, Exposure exposure, Millis limit) {
  Address shown;
  std::memcpy(&shown.storage, to.ai_addr,
              std::min<std::size_t>(to.ai_addrlen, sizeof shown.storage));
  ZED_TRY(Endpoint address, endpoint_of(shown));
  ZED_CHECK(check_exposure(address, exposure));
  ZED_TRY(Fd fd, make_socket(to.ai_family, "make a socket"));
  ZED_CHECK(connect_within(fd.get(), to, limit));
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

}  // namespace

Result<Fd> dial_tcp(const Endpoint& endpoint, Exposure exposure, Millis limit) {
  const std::string what = "connect to " + endpoint.str();
  auto addresses = resolve(endpoint, SOCK_STREAM);
  if (!addresses) return fail(std::move(addresses).error().with(what));
  Error last{ErrorCode::not_found, "the name has no address", {}, {}};
  for (const addrinfo* one = addresses->get(); one != nullptr; one = one->ai_next) {
    auto fd = dial_one(*one, exposure, limit);
    if (fd) return fd;
    last = std::move(fd).error();
  }
  last.frames.clear();
  return fail(std::move(last).with(what));
}

Result<std::string> source_address(const Endpoint& endpoint) {
  const std::string what = "find the own address towards " + endpoint.str();
  auto addresses = resolve(endpoint, SOCK_DGRAM);
  if (!addresses) return fail(std::move(addresses).error().with(what));
  const addrinfo& to = **addresses;
#ifdef SOCK_CLOEXEC
  const Fd fd(::socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
#else
  const Fd fd(::socket(to.ai_family, SOCK_DGRAM, 0));
#endif
  if (!fd || ::connect(fd.get(), to.ai_addr, to.ai_addrlen) != 0)
    return fail(system_error(errno, what));
  ZED_TRY(const Endpoint own, local_endpoint(fd.get()));
  return own.host;
}

Result<Endpoint> local_endpoint(int fd) {
  Address address;
  address.size = sizeof address.storage;
  if (::getsockname(fd, address.get(), &address.size) != 0)
    return fail(system_error(errno, "read the socket's address"));
  return endpoint_of(address);
}

Result<Endpoint> peer_endpoint(int fd) {
  Address address;
  address.size = sizeof address.storage;
  if (::getpeername(fd, address.get(), &address.size) != 0)
    return fail(system_error(errno, "read the peer's address"));
  return endpoint_of(address);
}

}  // namespace zed::net
