#include "net/endpoint.hpp"

#include <boost/asio/ip/address.hpp>

#include "base/number.hpp"

namespace zed::net {

std::string Endpoint::str() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Endpoint> Endpoint::parse(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0)
    return fail(ErrorCode::invalid,
                "\"" + std::string(text.substr(0, 80)) + "\" is not an address with a port",
                "write it like 127.0.0.1:4370");
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!bracketed && host.find(':') != std::string_view::npos)
    return fail(ErrorCode::invalid, "an IPv6 address needs brackets before its port",
                "write it like [::1]:4370");
  const std::string_view digits = text.substr(colon + 1);
  const auto port = parse_number<std::uint16_t>(digits);
  if (!port)
    return fail(ErrorCode::invalid,
                "\"" + std::string(digits.substr(0, 20)) + "\" is not a port (0 to 65535)");
  return Endpoint{std::string(host), *port};
}

bool is_loopback(std::string_view host) {
  if (host == "localhost") return true;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(std::string(host), error);
  if (error) return false;
  if (address.is_v4()) return address.to_v4().is_loopback();
  const auto v6 = address.to_v6();
  if (v6.is_v4_mapped())
    return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, v6).is_loopback();
  return v6.is_loopback();
}

Status check_exposure(const Endpoint& endpoint, Exposure exposure) {
  if (exposure != Exposure::loopback_only || is_loopback(endpoint.host)) return {};
  return fail(
      ErrorCode::refused,
      "plain TCP is for this machine only, and " + endpoint.str() + " is not loopback",
      "use 127.0.0.1; other machines are reached by TLS: zed-controller init, zed-agent join");
}

}  // namespace zed::net
