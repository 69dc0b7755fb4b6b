#pragma once
// The cookie's part in the handshake.

#include <array>
#include <cstdint>
#include <string_view>

namespace zed::beam {

using Digest = std::array<std::uint8_t, 16>;

/// MD5 of the cookie followed by the challenge in decimal digits, as the distribution protocol has
/// it. It tags a cluster; it is not what keeps a stranger out (mutual TLS is).
Digest challenge_digest(std::string_view cookie, std::uint32_t challenge);

/// Takes the same time whatever the bytes are.
bool same_digest(const Digest& a, const Digest& b);

}  // namespace zed::beam
