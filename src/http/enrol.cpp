#include "http/enrol.hpp"

#include "base/clock.hpp"
#include "pki/authority.hpp"

namespace zed::http {
namespace {

template <class Reply>
Result<Reply> ask(const RemoteDoor& door, const std::string& step, const Value& request) {
  ClientOptions options;
  options.remote = door;
  Client client(std::move(options));
  ZED_TRY(std::string text, client.post("/enrol/" + step, request));
  return Client::read_reply<Reply>(text);
}

/// That what came is what was asked for, before anything is kept.
Status check(const JoinReply& reply, const pki::JoinToken& token) {
  ZED_TRY(const auto root, pki::read_certificate(reply.roots));
  if (root.fingerprint != token.authority)
    return fail(ErrorCode::refused, "the controller gave another authority than the token names");
  ZED_TRY(const auto own, pki::verify(reply.chain, {reply.roots, {}, ""}, wall_now()));
  if (own.identity != token.identity)
    return fail(ErrorCode::refused, "the controller gave a certificate of " + own.identity.node +
                                        ", not of " + token.identity.node);
  return {};
}

}  // namespace

Result<Membership> join(const net::Endpoint& controller, const pki::JoinToken& token) {
  ZED_TRY(auto tls, net::Tls::make({}, {"", {}, token.authority}));
  ZED_TRY(std::string key, pki::make_key());
  ZED_TRY(std::string request, pki::make_request(key, token.identity.node));
  ZED_TRY(JoinReply reply,
          ask<JoinReply>({controller, tls}, "join", to_value(JoinRequest{token.str(), request})));
  ZED_CHECK(check(reply, token));
  Membership membership{{std::move(reply.chain), std::move(key)},
                        std::move(reply.roots),
                        std::move(reply.controller),
                        reply.distribution_port,
                        std::move(reply.cookie),
                        std::move(reply.revoked)};
  // Certificate and key belong together, or the files would be useless later.
  ZED_CHECK(net::Tls::make(membership.identity, {membership.roots, {}, ""}));
  return membership;
}

Result<net::TlsIdentity> renew(const RemoteDoor& door) {
  const auto own = door.tls->own();
  if (!own) return fail(ErrorCode::invalid, "there is no certificate to renew");
  ZED_TRY(std::string key, pki::make_key());
  ZED_TRY(std::string request, pki::make_request(key, own->identity.node));
  ZED_TRY(RenewReply reply, ask<RenewReply>(door, "renew", to_value(RenewRequest{request})));
  ZED_TRY(const auto renewed, pki::read_certificate(reply.chain));
  if (renewed.identity != own->identity)
    return fail(ErrorCode::refused, "the controller gave a certificate of another name");
  return net::TlsIdentity{std::move(reply.chain), std::move(key)};
}

Result<std::set<std::string>> revocations(const RemoteDoor& door) {
  ZED_TRY(auto reply, ask<RevocationsReply>(door, "revocations", Value::map()));
  return std::set<std::string>(reply.serials.begin(), reply.serials.end());
}

Result<SuccessionReply> succession(const RemoteDoor& door) {
  return ask<SuccessionReply>(door, "succession", Value::map());
}

}  // namespace zed::http
