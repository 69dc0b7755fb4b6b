#pragma once
// The distribution handshake, version 6, as a pure state machine: bytes in, bytes out, no clock and
// no socket. Reference: "Distribution Protocol", ERTS user's guide; facts in docs/beam.md.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>

#include "base/result.hpp"
#include "beam/digest.hpp"

namespace zed::beam {

/// Capability bits, DFLAG_* of the ERTS user's guide.
namespace flag {
inline constexpr std::uint64_t published = 0x1, extended_references = 0x4, dist_monitor = 0x8,
                               fun_tags = 0x10, dist_monitor_name = 0x20, new_fun_tags = 0x80,
                               extended_pids_ports = 0x100, export_ptr_tag = 0x200,
                               bit_binaries = 0x400, new_floats = 0x800, small_atom_tags = 0x4000,
                               utf8_atoms = 0x10000, map_tag = 0x20000, big_creation = 0x40000,
                               fragments = 0x800000, handshake_23 = 0x1000000,
                               unlink_id = 0x2000000, mandatory_25_digest = 0x4000000,
                               spawn = std::uint64_t{1} << 32, name_me = std::uint64_t{2} << 32,
                               v4_nc = std::uint64_t{4} << 32, alias = std::uint64_t{8} << 32;

/// What every peer must have: the set that is mandatory since OTP 25.
inline constexpr std::uint64_t mandatory =
    extended_references | fun_tags | new_fun_tags | extended_pids_ports | export_ptr_tag |
    bit_binaries | new_floats | utf8_atoms | map_tag | big_creation | handshake_23;
/// What we have. Not `published`: a hidden node gets no traffic of `global` and `rex`. Not the atom
/// cache, not exit payloads, not trace tokens: nothing here needs them.
inline constexpr std::uint64_t ours = mandatory | mandatory_25_digest | v4_nc | unlink_id |
                                      dist_monitor | dist_monitor_name | small_atom_tags | spawn |
                                      alias | fragments;
}  // namespace flag

/// What the accepting side answers to a name.
enum class Verdict {
  ok,               ///< go on
  ok_simultaneous,  ///< go on; our own attempt to reach that node is given up
  nok,              ///< our own attempt to reach that node goes on instead
  not_allowed,      ///< that node may not connect
  alive,            ///< a connection from that name is up: take it over only if the peer insists
};

/// What the accepting side knows of the node that dials it.
enum class Existing { none, dialling, up };

/// The rule of two nodes that dial one another at once: the greater name's attempt survives.
Verdict verdict_for(const std::string& self, const std::string& peer, Existing existing);

struct PeerInfo {
  std::string name;            ///< "zed@server"
  std::uint32_t creation = 0;  ///< differs between two starts of one node
  std::uint64_t flags = 0;     ///< what both sides have
  friend bool operator==(const PeerInfo&, const PeerInfo&) = default;
};

/// "name@host": one '@', both parts 1 or more of the characters that BEAMs accept in node names
/// (letters, digits, '_', '-'; '.' and ':' in the host), at most 255 bytes.
bool is_node_name(std::string_view name);

class Handshake {
public:
  struct Identity {
    std::string name;
    std::uint32_t creation = 0;
    std::string cookie;
    /// Of a message's length: 2, and 4 beneath TLS (OTP's inet_tls_dist).
    std::size_t length_bytes = 2;
  };
  /// A source of 32 unpredictable bits.
  using Random = std::function<std::uint32_t()>;

  /// The side that dialled `peer`; its first message is in output() at once.
  static Handshake dial(Identity self, std::string peer, Random random);
  /// The side that was dialled.
  static Handshake accept(Identity self, Random random);

  struct Waiting {};  ///< more bytes are needed
  struct Named {
    std::string peer;
  };  ///< answer() is owed
  struct Done {
    PeerInfo peer;
  };  ///< the cookie is verified; later bytes are frames
  using Progress = std::variant<Waiting, Named, Done>;

  /// Takes at most one message's bytes from the front of `bytes` and shortens it. Call until
  /// `Waiting` with nothing left, or `Done`. Errors end the handshake: `refused` (cookie, name, not
  /// allowed), `busy` (the peer's own attempt goes on), `unsupported` (flags), `corrupt`.
  Result<Progress> receive(std::span<const std::uint8_t>& bytes);
  /// The accepting side's answer to Named. After nok and not_allowed the handshake is over: send
  /// output() and close.
  void answer(Verdict verdict);
  /// Bytes to send; empties.
  std::string take_output();

private:
  enum class State {
    await_name,
    await_answer,
    await_insistence,
    await_reply,
    await_status,
    await_challenge,
    await_ack,
    over,
  };

  Handshake(Identity self, Random random, State state);
  Result<Progress> on_message(std::span<const std::uint8_t> message);
  Result<Progress> on_name(std::span<const std::uint8_t> message);
  Result<Progress> on_insistence(std::span<const std::uint8_t> message);
  Result<Progress> on_reply(std::span<const std::uint8_t> message);
  Result<Progress> on_status(std::span<const std::uint8_t> message);
  Result<Progress> on_challenge(std::span<const std::uint8_t> message);
  Result<Progress> on_ack(std::span<const std::uint8_t> message);
  Status adopt(std::uint64_t flags);
  void send(std::string message);
  void send_challenge();

  Identity self_;
  Random random_;
  State state_;
  PeerInfo peer_;
  std::uint32_t challenge_ = 0;
  std::string partial_;
  std::string output_;
};

}  // namespace zed::beam
