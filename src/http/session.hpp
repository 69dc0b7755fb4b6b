#pragma once
// INTERNAL to src/http: one connection, without Beast in sight.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "http/admit.hpp"
#include "http/server.hpp"
#include "net/fd.hpp"
#include "pki/certificate.hpp"

namespace zed::http {

class Session {
public:
  virtual ~Session() = default;
  /// Ends now, without a word.
  virtual void close() = 0;
  virtual bool is_closed() const = 0;
};

/// Whoever asked for the events.
class Follower {
public:
  virtual ~Follower() = default;
  /// An event, encoded once for all.
  virtual void push(std::uint64_t number, std::shared_ptr<const std::string> text) = 0;
};

/// What all sessions of one server share. `handler` is empty once the server is gone.
struct Core {
  net::Loop& loop;
  ServerLimits limits;
  Handler handler;
  Enrol enrol;
  std::set<Session*> sessions;
  std::set<Follower*> followers;
};

struct Visitor {
  api::Caller caller;
  std::optional<Error> stranger;  ///< why whoever is there gets no answer but this
  std::optional<pki::CertificateInfo> certificate = std::nullopt;
  net::Endpoint from = {};

  /// A person who has shown a certificate needs no token.
  bool is_certified() const {
    return certificate && (certificate->identity.role == pki::Role::operator_ ||
                           certificate->identity.role == pki::Role::viewer);
  }
};

/// Owns itself until the connection ends. `admission` outlives it with `core`.
std::shared_ptr<Session> start_session(std::shared_ptr<Core> core,
                                       std::shared_ptr<const Admission> admission, net::Fd socket,
                                       Visitor visitor);

/// "id: 17\nevent: fleet\ndata: {…}\n\n"
std::string encode_event(std::uint64_t number, const Value& event);

}  // namespace zed::http
