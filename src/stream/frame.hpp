#pragma once
// The data connection between two agents, after docs/data-plane.md:
//
//   dialler -> listener   hello: "ZEDD", version 1, role of the dialler (S sender, R receiver),
//                         2 zero bytes, the ticket's 16 bytes
//   receiver -> sender    J {"resume": token}
//   sender -> receiver    J {"snapshot": …, "properties": …, "total": …, "resumed_at": …}
//                         D bytes, D bytes, …, E
//   receiver -> sender    J {"stored": true}
//   either, at any time   X {"code": …, "message": …}
//
// A frame is 4 bytes of length (big-endian), one byte of kind, the payload. Between machines all of
// it goes by TLS, and each end checks that the other's certificate is that of the ticket's node.

#include <atomic>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "base/value.hpp"
#include "core/identity.hpp"
#include "net/fd.hpp"
#include "net/tls.hpp"

namespace zed::stream {

enum class FrameKind : char { json = 'J', data = 'D', end = 'E', error = 'X' };

inline constexpr std::size_t longest_data_frame = std::size_t{1} << 20;
inline constexpr std::size_t longest_json_frame = std::size_t{256} << 10;

enum class End : char { sender = 'S', receiver = 'R' };

struct StreamHello {
  End end = End::sender;  ///< what the dialler is
  TransferId ticket;
};
inline constexpr std::size_t hello_size = 24;
std::string encode_hello(const StreamHello& hello);
/// Errors: `invalid` for anything else than a hello of this version.
Result<StreamHello> decode_hello(std::span<const std::byte> bytes);

struct Frame {
  FrameKind kind = FrameKind::end;
  std::vector<std::byte> payload;
};

/// A blocking socket that speaks frames. One thread reads and writes; stop() may be called from any
/// other and makes both fail with `cancelled`.
class FrameSocket {
public:
  /// `silence` bounds every wait for the other side: `timeout`.
  /// Beneath TLS it gets a session that is open, or one that is to begin (introduce() shakes hands
  /// then). `already_read` are bytes that whoever accepted the connection has taken from it.
  FrameSocket(net::Fd socket, Millis silence, std::optional<net::TlsSession> tls = std::nullopt,
              std::string already_read = {});

  /// The dialler's first words. Beneath TLS it shakes hands before, and checks that the other side
  /// is `node` ("zed@server"): else `refused`.
  Status introduce(const StreamHello& hello, const std::string& node);
  Status send(FrameKind kind, std::span<const std::byte> payload);
  Status send_json(const Value& value);
  /// Tells the other side why this one gives up, and takes in for a moment what it still sends, so
  /// that the word is not lost with the connection; best effort.
  void send_error(const Error& error);
  /// For a side that only sends: the error that the other side has sent meanwhile, if it has.
  Status check_for_error();
  /// The next frame into `frame`, whose buffer is reused. An X frame is returned as the Error that
  /// it carries. Errors: `corrupt`, `unavailable` (closed), `timeout`, `cancelled`.
  Status receive(Frame& frame);
  /// A frame that must be JSON.
  Result<Value> receive_json();

  /// Whether a frame has come. Not while another thread receives.
  bool has_heard() const { return heard_; }
  void stop();

private:
  Status read_exactly(std::span<std::byte> buffer);
  Status write_all(std::span<const std::byte> bytes);
  Result<std::size_t> read_some(std::span<std::byte> buffer);
  Result<std::size_t> receive_wire(std::span<std::byte> buffer, bool wait);
  Status decrypt_more(bool wait);
  Status flush_tls();
  Status send_wire(std::span<const std::byte> bytes);
  Error failure(int error_number, const char* what) const;

  net::Fd socket_;
  std::optional<net::TlsSession> tls_;
  std::string plain_;  ///< decrypted and not yet read, from plain_read_ on
  std::size_t plain_read_ = 0;
  std::vector<std::byte> wire_;  ///< read from the kernel, reused
  bool heard_ = false;
  std::atomic<bool> stopped_{false};
};

}  // namespace zed::stream
