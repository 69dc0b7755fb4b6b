#pragma once
// How a machine or a person gets a certificate, and a new one before it ends: the messages of
// POST /enrol/<step>, and the asking side. docs/security.md tells the story.
//
//   join         a token and a signing request in; a certificate and where the fleet is out
//   renew        a signing request in, beneath the certificate that is to be renewed; a new one out
//   revocations  whom nobody believes any more; for everybody: who has to learn that its own
//                certificate is no longer believed has none to show
//   succession   where the controller is, and where it would be after a takeover; beneath a
//                certificate. The second node also gets what a controller there would go on with

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "http/client.hpp"
#include "pki/registry.hpp"
#include "pki/token.hpp"

namespace zed::http {

struct JoinRequest {
  std::string token;
  std::string request;  ///< PEM
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("token", self.token);
    visit("request", self.request);
  }
};

struct JoinReply {
  std::string chain;       ///< PEM
  std::string roots;       ///< PEM
  std::string controller;  ///< "zed_controller@server"
  std::uint16_t distribution_port = 0;
  std::string cookie;
  std::set<std::string> revoked = {};  ///< serials
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("chain", self.chain);
    visit("roots", self.roots);
    visit("controller", self.controller);
    visit("distribution_port", self.distribution_port);
    visit("cookie", self.cookie);
    visit("revoked", self.revoked);
  }
};

struct RenewRequest {
  std::string request;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("request", self.request);
  }
};

struct RenewReply {
  std::string chain;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("chain", self.chain);
  }
};

struct RevocationsReply {
  std::vector<std::string> serials;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("serials", self.serials);
  }
};

/// The authority as a controller's pki folder has it, less what signs without a passphrase.
struct AuthorityCopy {
  std::string sealed_key;  ///< PEM, encrypted with the passphrase
  pki::Registry registry;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("sealed_key", self.sealed_key);
    visit("registry", self.registry);
  }
};

struct SuccessionReply {
  std::string controller;  ///< "zed_controller@server", who answers
  std::uint16_t distribution_port = 0;
  std::string second;       ///< "workstation", the node with the journal's copy; may be empty
  std::string second_host;  ///< its address
  std::optional<AuthorityCopy> authority;  ///< for that node alone
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("controller", self.controller);
    visit("distribution_port", self.distribution_port);
    visit("second", self.second);
    visit("second_host", self.second_host);
    visit("authority", self.authority);
  }
};

/// What whoever joined keeps: its certificate and key never leave the machine together.
struct Membership {
  net::TlsIdentity identity;
  std::string roots;
  std::string controller;
  std::uint16_t distribution_port = 0;
  std::string cookie;
  std::set<std::string> revoked = {};
};

/// Makes a key, and gets a certificate for it from the controller of the token's fleet. The token
/// goes nowhere else: a server whose authority is not the token's is refused before it is sent.
/// Errors: `refused` (the token, or who answers there), those of Client.
Result<Membership> join(const net::Endpoint& controller, const pki::JoinToken& token);

/// A new certificate, with a new key, in the name of the one that `door` shows.
Result<net::TlsIdentity> renew(const RemoteDoor& door);

/// Serials of the certificates that are revoked. The door need show no certificate.
Result<std::set<std::string>> revocations(const RemoteDoor& door);

/// Errors: `refused` without a certificate.
Result<SuccessionReply> succession(const RemoteDoor& door);

}  // namespace zed::http
