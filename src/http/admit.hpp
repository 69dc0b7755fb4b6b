#pragma once
// Who may come in by which door. Pure.
//
// A UNIX socket proves who is there by the kernel's word; TCP on loopback proves nothing: any
// program of any user, and any web page that this machine's browser shows, can connect. So TCP asks
// for a certificate (beneath TLS) or a token, and both doors turn away what a browser sends for a
// stranger's page (Origin, a Host that is not ours: DNS rebinding).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace zed::http {

enum class Door { socket, tcp };

struct Admission {
  Door door = Door::socket;
  std::string token;               ///< of the TCP door: an operator's; empty: there is none
  std::vector<std::string> hosts;  ///< "127.0.0.1:4372", "localhost:4372": whom the TCP door is
  std::string view_token = {};     ///< a viewer's; empty: there is none
  bool encrypted = false;          ///< pages of this door begin with https
};

/// What a request says of itself; empty where it says nothing.
struct Presented {
  std::string_view host;
  std::string_view origin;
  std::string_view authorization;
};

struct Refused {
  unsigned status = 403;
  Error error;
};

/// Nothing if it may come in. 403 for a foreign Host or Origin, 401 for a missing or wrong token.
std::optional<Refused> refusal_of(const Presented& presented, const Admission& admission,
                                  bool needs_token);

/// Whether the token that came is a viewer's.
bool only_views(const Presented& presented, const Admission& admission);

/// The names under which a browser or client may reach a listener on `host`:`port`.
std::vector<std::string> own_hosts(const std::string& host, std::uint16_t port);

/// Compares in a time that depends on the lengths alone.
bool equal_in_constant_time(std::string_view a, std::string_view b);

/// The token of a file: 32 or more printable characters on one line, mode 0600 and ours. Makes the
/// file with a random token if it is not there. Errors: `refused` if others may read it, `invalid`
/// if it holds no token, those of open().
Result<std::string> load_or_make_token(const std::string& path);

}  // namespace zed::http
