#include "http/admit.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/id.hpp"
#include "base/text.hpp"
#include "net/fd.hpp"

namespace zed::http {
namespace {

constexpr std::size_t shortest_token = 32;

Refused forbidden(std::string message, std::string hint) {
  return {403, Error{ErrorCode::refused, std::move(message), {}, std::move(hint)}};
}

bool is_own_host(std::string_view host, const std::vector<std::string>& hosts) {
  const std::string wanted = lower(host);
  return std::find(hosts.begin(), hosts.end(), wanted) != hosts.end();
}

bool is_own_origin(std::string_view origin, const std::vector<std::string>& hosts,
                   std::string_view scheme) {
  return origin.substr(0, scheme.size()) == scheme &&
         is_own_host(origin.substr(scheme.size()), hosts);
}

std::string_view bearer_of(std::string_view authorization) {
  constexpr std::string_view scheme = "bearer ";
  if (lower(authorization.substr(0, scheme.size())) != scheme) return {};
  return trim(authorization.substr(scheme.size()));
}

std::string random_token() {
  std::random_device source;
  std::string token;
  for (int half = 0; half < 2; ++half) {
    std::array<std::uint8_t, 16> bytes{};
    for (auto& byte : bytes)
      byte = static_cast<std::uint8_t>(source());
    token += hex_of(bytes);
  }
  return token;
}

Result<std::string> read_token(const std::string& path) {
  const std::string what = "read the token in " + path;
  net::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return fail(net::system_error(errno, what));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return fail(net::system_error(errno, what));
  if (info.st_uid != ::geteuid() || (info.st_mode & 077) != 0)
    return fail(
        Error{ErrorCode::refused, "others than its owner may read it", {}, {}}.with(what).hinted(
            "chmod 600 " + path + ", and take a new token if it has been read"));
  std::array<char, 1024> bytes{};
  const ssize_t n = ::read(file.get(), bytes.data(), bytes.size());
  if (n < 0) return fail(net::system_error(errno, what));
  const std::string token(trim(std::string_view(bytes.data(), static_cast<std::size_t>(n))));
  const bool printable =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (token.size() < shortest_token || !printable)
    return fail(Error{ErrorCode::invalid, "it holds no token of 32 or more characters", {}, {}}
                    .with(what)
                    .hinted("remove the file: a new one is made"));
  return token;
}

}  // namespace

std::optional<Refused> refusal_of(const Presented& presented, const Admission& admission,
                                  bool needs_token) {
  if (admission.door == Door::socket) {
    if (!presented.origin.empty())
      return forbidden("this socket is not for web pages, and an Origin header says it is one",
                       "a proxy in front of the socket must not let browsers through");
    return std::nullopt;
  }
  if (!is_own_host(presented.host, admission.hosts))
    return forbidden("the Host header names another machine",
                     (admission.encrypted ? "ask for https://" : "ask for http://") +
                         (admission.hosts.empty() ? "localhost" : admission.hosts.front()));
  if (!presented.origin.empty() && !is_own_origin(presented.origin, admission.hosts,
                                                  admission.encrypted ? "https://" : "http://"))
    return forbidden("a web page of another origin asked", "");
  const std::string_view token = bearer_of(presented.authorization);
  const bool known = equal_in_constant_time(token, admission.token) ||
                     equal_in_constant_time(token, admission.view_token);
  if (needs_token && !known)
    return Refused{401, Error{ErrorCode::refused,
                              "no valid token came with the request",
                              {},
                              "send \"Authorization: Bearer <token>\" with the token of the "
                              "controller's token file, or a certificate (zedctl login)"}};
  return std::nullopt;
}

bool only_views(const Presented& presented, const Admission& admission) {
  return equal_in_constant_time(bearer_of(presented.authorization), admission.view_token);
}

std::vector<std::string> own_hosts(const std::string& host, std::uint16_t port) {
  const std::string suffix = ":" + std::to_string(port);
  std::vector<std::string> hosts{"127.0.0.1" + suffix, "localhost" + suffix, "[::1]" + suffix};
  const bool is_v6 = host.find(':') != std::string::npos;
  std::string own = (is_v6 ? "[" + lower(host) + "]" : lower(host)) + suffix;
  if (std::find(hosts.begin(), hosts.end(), own) == hosts.end()) hosts.push_back(std::move(own));
  return hosts;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size() || a.empty()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |=
        static_cast<unsigned>(static_cast<unsigned char>(a[i])) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

Result<std::string> load_or_make_token(const std::string& path) {
  const std::string what = "make the token file " + path;
  net::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file && errno == EEXIST) return read_token(path);
  if (!file) return fail(net::system_error(errno, what));
  const std::string token = random_token();
  const std::string line = token + "\n";
  const ssize_t n = ::write(file.get(), line.data(), line.size());
  if (n != static_cast<ssize_t>(line.size())) {
    const int reason = n < 0 ? errno : ENOSPC;
    ::unlink(path.c_str());
    return fail(net::system_error(reason, what));
  }
  return token;
}

}  // namespace zed::http
