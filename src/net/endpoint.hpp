#pragma once
// TCP addresses, and the rule which of them may be used without TLS.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace zed::net {

/// Where a socket may listen and connect to. Plain (not encrypted, not authenticated) TCP is for
/// this machine only; a closed network may say otherwise. Whoever speaks TLS may go anywhere.
enum class Exposure { loopback_only, plain_everywhere, encrypted };

struct Endpoint {
  std::string host;        ///< an address in numbers, or a name; IPv6 without brackets
  std::uint16_t port = 0;  ///< 0 when listening: any free port

  /// "127.0.0.1:4370", "[::1]:4370".
  std::string str() const;
  /// Errors: `invalid` naming what is missing.
  static Result<Endpoint> parse(std::string_view text);
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

/// 127.0.0.0/8, ::1, ::ffff:127.0.0.0/104, and the name "localhost".
bool is_loopback(std::string_view host);

/// `refused` if plain TCP may not use this address. A name other than "localhost" is refused as
/// well: check the address that it resolved to.
Status check_exposure(const Endpoint& endpoint, Exposure exposure);

}  // namespace zed::net
