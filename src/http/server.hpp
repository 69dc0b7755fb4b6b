#pragma once
// The HTTP/JSON door of a controller: a UNIX socket (mode 0600, the same user or root by the
// kernel's word) and, if asked for, TCP: with a certificate beneath TLS, or a bearer token.
//
//   POST /v1/<operation>     a JSON map of arguments in, the operation's reply out (api/operations)
//   GET  /v1/events?after=N  server-sent events; those after number N first, if N is given
//   GET  /v1/operations      the table
//   GET  /v1/openapi.json    the same for programs, with the types (http/openapi.hpp)
//   GET  /healthz            "ok"; needs no token
//   POST /enrol/<step>       a machine or person gets a certificate; TLS only, needs no token
//
// docs/zedctl.md has the wire forms. Everything runs on the loop's thread.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "api/operations.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "net/endpoint.hpp"
#include "net/loop.hpp"
#include "net/tls.hpp"

namespace zed::http {

/// Answers one request, at any time, from the loop's thread. Only the first call counts. If every
/// copy goes without a call the client gets `internal`, so that nobody waits for ever.
using Reply = std::function<void(Result<Value>)>;

/// Called if the client went away before the answer; may be empty. Never called after the answer.
using OnGone = std::function<void()>;

/// Carries out one operation. May reply inside the call. A value without "schema" gets it.
using Handler = std::function<OnGone(api::Request, api::Caller, Reply)>;

/// One step of somebody's enrolment (docs/security.md).
struct Enrolment {
  std::string step;
  Value body;
  std::optional<pki::CertificateInfo> certificate;  ///< of whoever asks, if it has one
  net::Endpoint from;
};
/// May reply inside the call.
using Enrol = std::function<void(Enrolment, Reply)>;

struct TcpDoor {
  net::Endpoint endpoint;                                 ///< port 0: any free one
  net::Exposure exposure = net::Exposure::loopback_only;  ///< without `tls`
  std::string token;            ///< an operator's: load_or_make_token (http/admit.hpp); never empty
  std::string view_token = {};  ///< a viewer's; empty: there is none
  std::shared_ptr<const net::Tls> tls = {};  ///< null: plain TCP
  Enrol enrol = {};
};

struct ServerLimits {
  std::size_t connections = 128;        ///< a door; one more is answered 503 and closed
  std::size_t followers = 32;           ///< of events, both doors together; one more gets 503
  Bytes header = kibibytes(16);         ///< 431 beyond
  Bytes body = mebibytes(10);           ///< 413 beyond; a cluster file has at most 4 MiB
  Millis header_time = seconds(30);     ///< from the connect or the last answer; then closed
  Millis body_time = seconds(30);       ///< then closed
  Millis write_time = seconds(30);      ///< of one answer or event; then closed
  Millis answer_time = minutes(60);     ///< of the handler; then 504. Imports of models are long
  Bytes follower_queue = mebibytes(1);  ///< events not yet taken; beyond it the follower is dropped
  Millis comment_every = seconds(15);   ///< keeps quiet event streams open
};

struct ServerOptions {
  std::string socket_path;
  std::optional<TcpDoor> tcp;
  ServerLimits limits;
};

class Server {
public:
  /// Listens on both doors. Errors: those of net::Listener; `invalid` for a TCP door without token.
  static Result<std::unique_ptr<Server>> open(net::Loop& loop, ServerOptions options,
                                              Handler handler);
  /// Closes everything; the handler is not called any more, and replies that come later are
  /// ignored.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// To everyone who follows. A follower whose queue is full gets `event: dropped` and is closed.
  void publish(const api::FleetEvent& event);

  /// Ends every connection of whoever shows one of these serials.
  void drop_revoked(const std::set<std::string>& serials);

  /// Where the TCP door is, with the port that the kernel chose; port 0 if there is none.
  net::Endpoint tcp_endpoint() const;
  std::size_t connections() const;

private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace zed::http
