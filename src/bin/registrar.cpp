#include "bin/registrar.hpp"

#include "base/log.hpp"

namespace zed::bin {
namespace {

constexpr Millis day = minutes(60 * 24);
/// Short enough that a stolen certificate ends by itself, long enough for a laptop on leave.
constexpr Millis certificate_lifetime = day * 90;
constexpr Millis warn_of_issuing = day * 60;

pki::Role role_of(api::TokenRole role) {
  switch (role) {
  case api::TokenRole::agent: return pki::Role::agent;
  case api::TokenRole::operator_: return pki::Role::operator_;
  case api::TokenRole::viewer: return pki::Role::viewer;
  }
  return pki::Role::viewer;
}

api::CredentialRow row_of(const pki::IssuedRecord& record) {
  return {record.node, std::string(to_string(record.role)), record.not_after, record.serial};
}

}  // namespace

Registrar::Registrar(net::Loop& loop, RegistrarOptions options, pki::Issuer issuing,
                     pki::Registry registry, std::string roots, AuditLog& audit,
                     std::function<void(const std::set<std::string>&)> on_revoked)
    : loop_(loop), options_(std::move(options)), issuing_(std::move(issuing)),
      registry_(std::move(registry)), roots_(std::move(roots)), audit_(audit),
      on_revoked_(std::move(on_revoked)), worker_(loop, 1, 1024), daily_(loop) {}

Result<std::unique_ptr<Registrar>>
Registrar::open(net::Loop& loop, RegistrarOptions options, AuditLog& audit,
                std::function<void(const std::set<std::string>&)> on_revoked) {
  ZED_TRY(pki::Issuer issuing, options.files.load_issuing());
  ZED_TRY(pki::Registry registry, options.files.load_registry());
  ZED_TRY(std::string roots, options.files.load_roots());
  ZED_TRY(const auto root, pki::read_certificate(roots));
  ZED_TRY(const auto issuer, pki::read_certificate(issuing.chain));
  if (registry.record_issuer(issuer)) ZED_CHECK(options.files.save_registry(registry));
  const auto sealed_key = options.files.load_authority_key();
  std::unique_ptr<Registrar> registrar(new Registrar(loop, std::move(options), std::move(issuing),
                                                     std::move(registry), std::move(roots), audit,
                                                     std::move(on_revoked)));
  registrar->authority_ = root.fingerprint;
  registrar->sealed_key_ = sealed_key.value_or("");
  registrar->options_.tls->revoke(registrar->registry_.revoked());
  registrar->keep_own_certificate_young();
  return registrar;
}

void Registrar::save(std::function<void(Status)> done) {
  auto work = [files = options_.files, registry = registry_] {
    return files.save_registry(registry);
  };
  if (auto posted = worker_.run<Status>(std::move(work), done); !posted)
    loop_.post([done, posted] { done(fail(posted.error())); });
}

// --- Operations -------------------------------------------------------------------------------

void Registrar::create_token(const api::CreateToken& op, const http::Reply& reply) {
  const auto own = options_.tls->own();
  // A shell with a long name reaches only nodes with long names, and the other way round.
  const bool long_names = own && own->identity.host().find('.') != std::string::npos;
  auto identity = pki::identity_of(role_of(op.role), op.node, long_names);
  if (!identity) return reply(fail(std::move(identity).error()));
  const WallTime now = loop_.clocks().wall;
  auto token = registry_.add_token(*identity, authority_, pki::random_nonce(), now, op.expires);
  if (!token) return reply(fail(std::move(token).error()));
  api::TokenReply made{token->str(),
                       identity->node,
                       std::string(to_string(identity->role)),
                       {now.ms + op.expires.value}};
  save([made, reply](const Status& saved) {
    if (saved)
      reply(api::encode_reply(made));
    else
      reply(fail(saved.error()));
  });
}

Value Registrar::list() const {
  api::TokensReply reply;
  for (const pki::TokenRecord& token : registry_.tokens())
    reply.tokens.push_back({token.node, std::string(to_string(token.role)), token.expires, ""});
  for (const pki::IssuedRecord& issued : registry_.issued())
    reply.certificates.push_back(row_of(issued));
  return api::encode_reply(reply);
}

void Registrar::forget(const std::string& name, std::function<void(Result<bool>)> done) {
  std::set<std::string> nodes;
  const auto add = [&](const std::string& node, pki::Role role) {
    const pki::Identity identity{node, role};
    if (node == name || identity.name() == name) nodes.insert(node);
  };
  for (const pki::TokenRecord& token : registry_.tokens())
    add(token.node, token.role);
  for (const pki::IssuedRecord& issued : registry_.issued())
    add(issued.node, issued.role);
  if (nodes.empty()) return done(false);
  for (const std::string& node : nodes)
    (void)registry_.forget(node, loop_.clocks().wall);
  // At once: that it is not durable yet is no reason to go on believing it.
  options_.tls->revoke(registry_.revoked());
  on_revoked_(registry_.revoked());
  save([done](const Status& saved) { done(saved ? Result<bool>(true) : fail(saved.error())); });
}

// --- Enrolment --------------------------------------------------------------------------------

Result<std::string> Registrar::sign(const std::string& request, const pki::Identity& identity,
                                    const std::vector<std::string>& hosts) {
  const WallTime now = loop_.clocks().wall;
  ZED_TRY(std::string chain, pki::sign_request(request, issuing_, identity, hosts,
                                               pki::random_nonce(), now, certificate_lifetime));
  ZED_TRY(const auto made, pki::read_certificate(chain));
  registry_.prune(now);
  registry_.record(made);
  return chain;
}

Result<Value> Registrar::join(const Value& body, std::string& who) {
  ZED_TRY(const auto asked, from_value<http::JoinRequest>(body));
  ZED_TRY(const auto token, pki::JoinToken::parse(asked.token));
  who = token.identity.node;
  // Used up even if the request then turns out to be wrong: a token is tried once.
  ZED_TRY(const auto identity, registry_.take_token(token, loop_.clocks().wall));
  ZED_TRY(std::string chain, sign(asked.request, identity, {}));
  const auto own = options_.tls->own();
  return to_value(http::JoinReply{std::move(chain), roots_, own ? own->identity.node : "",
                                  options_.distribution_port, options_.cookie,
                                  registry_.revoked()});
}

Result<Value> Registrar::renew(const Value& body, const pki::CertificateInfo& certificate) {
  ZED_TRY(const auto asked, from_value<http::RenewRequest>(body));
  std::vector<std::string> hosts = certificate.hosts;
  // The first is the identity's own, which every certificate names.
  if (!hosts.empty()) hosts.erase(hosts.begin());
  ZED_TRY(std::string chain, sign(asked.request, certificate.identity, hosts));
  return to_value(http::RenewReply{std::move(chain)});
}

/// A certificate that TLS believed and the registry does not know was given out after the copy was
/// made that this controller began with: it is taken in, so that it can be revoked.
Status Registrar::learn(const pki::CertificateInfo& certificate) {
  if (pki::is_revoked(certificate, registry_.revoked()))
    return fail(ErrorCode::refused,
                "the certificate of " + certificate.identity.node + " was revoked",
                "join again with a new token");
  if (certificate.identity.role == pki::Role::controller || registry_.is_live(certificate.serial))
    return {};
  registry_.record(certificate);
  log_info("the certificate of " + certificate.identity.node + " is new to this controller");
  save([](const Status& saved) {
    if (!saved) log_error("the registry was not saved: " + saved.error().describe());
  });
  return {};
}

Result<Value> Registrar::succession(const pki::CertificateInfo& certificate) const {
  const auto own = options_.tls->own();
  http::SuccessionReply reply{own ? own->identity.node : "", options_.distribution_port, "", "",
                              std::nullopt};
  const auto second = options_.second ? options_.second() : std::nullopt;
  if (!second) return to_value(reply);
  reply.second = second->name;
  reply.second_host = second->host;
  const bool asks_itself =
      certificate.identity.role == pki::Role::agent && certificate.identity.host() == second->name;
  if (asks_itself && !sealed_key_.empty())
    reply.authority = http::AuthorityCopy{sealed_key_, registry_};
  return to_value(reply);
}

void Registrar::enrol(const http::Enrolment& enrolment, const http::Reply& reply) {
  const auto& certificate = enrolment.certificate;
  std::string who = certificate ? certificate->identity.node : "somebody";
  Result<Value> result = fail(ErrorCode::not_found, "there is no such step of an enrolment");
  if (enrolment.step == "revocations") {
    const auto serials = registry_.revoked();
    return reply(to_value(http::RevocationsReply{{serials.begin(), serials.end()}}));
  }
  const Status learnt = certificate ? learn(*certificate) : Status();
  if (enrolment.step == "join")
    result = join(enrolment.body, who);
  else if (!certificate)
    result = fail(ErrorCode::refused, "this needs a certificate", "join first");
  else if (!learnt)
    result = fail(learnt.error());
  else if (enrolment.step == "succession")
    return reply(succession(*certificate));
  else if (enrolment.step == "renew")
    result = renew(enrolment.body, *certificate);
  audit_.add({loop_.clocks().wall, who, "https", enrolment.from.str(), enrolment.step, Value(),
              result ? "ok" : result.error().describe()});
  if (!result)
    log_warning(enrolment.step + " of " + who + " at " + enrolment.from.str() +
                " refused: " + result.error().describe());
  save([reply, result](const Status& saved) {
    reply(saved ? result : Result<Value>(fail(saved.error())));
  });
}

// --- Its own ----------------------------------------------------------------------------------

Status Registrar::renew_own(const pki::CertificateInfo& own) {
  ZED_TRY(std::string key, pki::make_key());
  ZED_TRY(std::string request, pki::make_request(key, own.identity.node));
  std::vector<std::string> hosts = own.hosts;
  if (!hosts.empty()) hosts.erase(hosts.begin());
  ZED_TRY(std::string chain,
          pki::sign_request(request, issuing_, own.identity, hosts, pki::random_nonce(),
                            loop_.clocks().wall, certificate_lifetime));
  const net::TlsIdentity identity{std::move(chain), std::move(key)};
  ZED_CHECK(options_.files.save_identity(identity));
  return options_.tls->replace(identity);
}

void Registrar::keep_own_certificate_young() {
  daily_.start(day, [this] { keep_own_certificate_young(); });
  const WallTime now = loop_.clocks().wall;
  const auto issuing = pki::read_certificate(issuing_.chain);
  if (issuing && issuing->not_after.ms - now.ms < warn_of_issuing.value)
    log_warning("the issuing certificate ends soon: zed-controller issue makes a new one");
  const auto own = options_.tls->own();
  if (!own || !pki::is_due_for_renewal(*own, now)) return;
  if (auto renewed = renew_own(*own); !renewed)
    log_error("the controller's certificate could not be renewed: " + renewed.error().describe());
}

}  // namespace zed::bin
