#pragma once
// TLS in front of code that speaks over a plain socket (Beast's HTTP sessions): the gate shakes
// hands, then passes bytes between the TLS connection and one end of a socket pair, whose other end
// it hands out. Two descriptors and a copy a connection: meant for a door, not for bulk data.

#include <functional>
#include <memory>
#include <optional>

#include "net/connection.hpp"

namespace zed::net {

struct TlsGateOptions {
  TlsPeer peer = TlsPeer::must_show_certificate;
  /// Connections that have shown no certificate, still shaking hands or with none to show; when one
  /// more comes, net/lobby.hpp says who makes room.
  std::size_t most_strangers = 256;
  std::size_t most_open = 256;  ///< with a certificate; more are closed
  Millis handshake = seconds(5);
};

/// Loop's thread only. Destroying it ends all connections.
class TlsGate {
public:
  /// The plain end, non-blocking; who is there (nothing without certificate); from where.
  using OnOpen = std::function<void(Fd, std::optional<pki::CertificateInfo>, Endpoint)>;

  TlsGate(Loop& loop, std::shared_ptr<const Tls> tls, TlsGateOptions options, OnOpen on_open);
  ~TlsGate();
  TlsGate(const TlsGate&) = delete;
  TlsGate& operator=(const TlsGate&) = delete;

  void accept(Fd socket);
  /// Ends every connection of whoever shows one of these serials, or what one of them signed.
  void drop(const std::set<std::string>& serials);

private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace zed::net
