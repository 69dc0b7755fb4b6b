#include "bin/init.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "bin/daemon.hpp"
#include "bin/identity_files.hpp"
#include "net/fd.hpp"
#include "proc/launch.hpp"

namespace zed::bin {
namespace {

constexpr Millis day = minutes(60 * 24);
constexpr Millis root_lifetime = day * 3650, issuing_lifetime = day * 730, own_lifetime = day * 90;
constexpr std::uint16_t http_port = 4372;

/// The terminal without echo, as long as it lives.
class Silence {
public:
  explicit Silence(int terminal) : terminal_(terminal) {
    if (::tcgetattr(terminal_, &before_) != 0) return;
    termios quiet = before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    changed_ = ::tcsetattr(terminal_, TCSAFLUSH, &quiet) == 0;
  }
  ~Silence() {
    if (changed_) ::tcsetattr(terminal_, TCSAFLUSH, &before_);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

private:
  int terminal_;
  termios before_{};
  bool changed_ = false;
};

Result<std::string> ask(int terminal, std::string_view question) {
  const Silence silence(terminal);
  std::string line;
  [[maybe_unused]] auto asked = ::write(terminal, question.data(), question.size());
  char c = 0;
  while (line.size() < 1000 && ::read(terminal, &c, 1) == 1 && c != '\n')
    line += c;
  [[maybe_unused]] auto ended = ::write(terminal, "\n", 1);
  if (line.empty()) return fail(ErrorCode::invalid, "no passphrase was given");
  return line;
}

/// Makes issuing certificate and own, and writes both.
Status issue(const IdentityFiles& files, const pki::Issuer& root, const pki::Identity& own,
             const std::vector<std::string>& hosts) {
  ZED_TRY(std::string issuing_key, pki::make_key());
  ZED_TRY(pki::Issuer issuing,
          pki::make_issuing(root, issuing_key, pki::random_nonce(), wall_now(), issuing_lifetime));
  ZED_TRY(std::string key, pki::make_key());
  ZED_TRY(std::string request, pki::make_request(key, own.node));
  ZED_TRY(std::string chain, pki::sign_request(request, issuing, own, hosts, pki::random_nonce(),
                                               wall_now(), own_lifetime));
  ZED_CHECK(files.save_issuing(issuing));
  return files.save_identity({std::move(chain), std::move(key)});
}

struct Authority {
  pki::Issuer root;
  std::string sealed;
  pki::Registry registry;
};

Result<Authority> make_authority(const std::string& passphrase) {
  ZED_TRY(std::string key, pki::make_key());
  ZED_TRY(std::string sealed, pki::encrypt_key(key, passphrase));
  ZED_TRY(pki::Issuer root, pki::make_root(key, pki::random_nonce(), wall_now(), root_lifetime));
  return Authority{std::move(root), std::move(sealed), {}};
}

/// With the registry, so that what was revoked stays so.
Result<Authority> take_authority(const std::filesystem::path& pki_folder,
                                 const std::string& passphrase, bool revoke_issued) {
  const IdentityFiles from = IdentityFiles::at(pki_folder);
  ZED_TRY(std::string roots, from.load_roots());
  ZED_TRY(std::string sealed, from.load_authority_key());
  ZED_TRY(std::string key, pki::decrypt_key(sealed, passphrase));
  auto registry = from.load_registry_that_is_there();
  if (!registry)
    return fail(std::move(registry).error().hinted(
        "copy it along with ca-key.pem: without it whoever was revoked would be believed again"));
  if (revoke_issued) registry->revoke_issuers(wall_now());
  return Authority{{std::move(roots), std::move(key)}, std::move(sealed), std::move(*registry)};
}

/// The cookie lies in the copy, or beside it where the whole folder of a controller was copied.
/// Without one a new one is made later, and nobody who has joined gets in.
Status take_cookie(const std::filesystem::path& authority, const std::filesystem::path& state) {
  std::error_code error;
  if (std::filesystem::exists(state / "cookie", error)) return {};
  for (const auto& folder : {authority, authority.parent_path()}) {
    if (!std::filesystem::exists(folder / "cookie", error)) continue;
    ZED_TRY(const std::string cookie, read_cookie(folder / "cookie", false));
    return proc::write_file_durably(state / "cookie", cookie + "\n");
  }
  return fail(ErrorCode::not_found, "there is no cookie in " + authority.string(),
              "copy the file `cookie` of the former controller, or of an agent, there");
}

Result<net::Endpoint> http_door_of(const std::string& text) {
  const bool has_port = text.find(':') != std::string::npos;
  return net::Endpoint::parse(has_port ? text : text + ":" + std::to_string(http_port));
}

}  // namespace

std::filesystem::path default_state(const std::string& program) {
  if (::geteuid() == 0) return std::filesystem::path("/var/lib/zed") / program;
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != '\0')
    return std::filesystem::path(state) / "zed" / program;
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : ".") / ".local/state/zed" / program;
}

std::string machine_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "";
  const std::string text = name.data();
  return text.substr(0, text.find('.'));
}

Result<std::string> read_passphrase(const std::string& file, bool twice) {
  if (!file.empty()) {
    ZED_TRY(std::string text, proc::read_file(file, kibibytes(4)));
    std::string first = text.substr(0, text.find('\n'));
    if (first.empty()) return fail(ErrorCode::invalid, file + " holds no passphrase");
    return first;
  }
  const net::Fd terminal(::open("/dev/tty", O_RDWR | O_CLOEXEC));
  if (!terminal)
    return fail(ErrorCode::refused, "there is no terminal to ask for the passphrase",
                "give --passphrase-file FILE");
  ZED_TRY(std::string first, ask(terminal.get(), "Passphrase of the certificate authority: "));
  if (!twice) return first;
  ZED_TRY(const std::string again, ask(terminal.get(), "Once more: "));
  if (first != again) return fail(ErrorCode::invalid, "the two passphrases differ", "try again");
  return first;
}

Result<std::string> init_fleet(const InitOptions& options) {
  const IdentityFiles files(options.state);
  if (files.load_authority_key())
    return fail(ErrorCode::exists, files.folder().string() + " holds a fleet's authority already",
                "zed-controller issue renews its certificates");
  ZED_TRY(const auto own, pki::identity_of(pki::Role::controller, options.name));
  ZED_CHECK(make_private_folder(options.state));
  ZED_TRY(const Authority authority,
          options.authority.empty()
              ? make_authority(options.passphrase)
              : take_authority(options.authority, options.passphrase, options.revoke_issued));
  if (!options.authority.empty()) ZED_CHECK(take_cookie(options.authority, options.state));
  ZED_CHECK(files.save_roots(authority.root.chain));
  ZED_CHECK(files.save_registry(authority.registry));
  ZED_CHECK(issue(files, authority.root, own, options.hosts));
  // Last: what is here before is made anew when init is repeated after a crash.
  ZED_CHECK(files.save_authority_key(authority.sealed));
  ZED_TRY(const auto info, pki::read_certificate(authority.root.chain));
  return info.fingerprint;
}

Status issue_anew(const std::filesystem::path& state, const std::string& passphrase,
                  bool revoke_issued) {
  const IdentityFiles files(state);
  ZED_TRY(std::string roots, files.load_roots());
  ZED_TRY(std::string sealed, files.load_authority_key());
  ZED_TRY(std::string key, pki::decrypt_key(sealed, passphrase));
  ZED_TRY(auto tls, files.load_tls());
  const auto own = tls->own();
  if (!own) return fail(ErrorCode::corrupt, "the controller's own certificate is missing");
  std::vector<std::string> hosts = own->hosts;
  if (!hosts.empty()) hosts.erase(hosts.begin());
  if (revoke_issued) {
    ZED_TRY(const pki::Issuer issuing, files.load_issuing());
    ZED_TRY(const auto issuer, pki::read_certificate(issuing.chain));
    ZED_TRY(pki::Registry registry, files.load_registry());
    registry.record_issuer(issuer);
    registry.revoke_issuers(wall_now());
    ZED_CHECK(files.save_registry(registry));
  }
  return issue(files, {std::move(roots), std::move(key)}, own->identity, hosts);
}

Result<std::optional<std::string>> take_over_identity(const TakeoverIdentity& options) {
  const IdentityFiles own(options.state), agent(options.agent_state);
  std::optional<std::string> node;
  if (agent.has_identity()) {
    ZED_TRY(const auto tls, agent.load_tls());
    if (const auto certificate = tls->own()) node = certificate->identity.host();
  }
  const bool is_there = own.has_identity() && own.load_authority_key();
  if (is_there || (!node && options.authority.empty())) return node;
  const auto authority = options.authority.empty() ? agent.authority_copy() : options.authority;
  if (auto roots = IdentityFiles::at(authority).load_roots(); !roots)
    return fail(std::move(roots).error().hinted(
        "--authority names a copy of the former controller's pki folder"));
  ZED_TRY(const std::string passphrase, read_passphrase(options.passphrase_file, false));
  const std::string name = options.name.empty() ? node.value_or(machine_name()) : options.name;
  ZED_CHECK(init_fleet(
      {options.state, name, options.hosts, passphrase, authority, options.revoke_issued}));
  return node;
}

Result<std::string> join_fleet(const JoinOptions& options) {
  const IdentityFiles files(options.state);
  if (files.has_identity())
    return fail(ErrorCode::exists,
                "this machine has joined a fleet already (" + files.folder().string() + ")",
                "remove that folder to join anew; the old certificate: zedctl node forget");
  ZED_TRY(const auto token, pki::JoinToken::parse(options.token));
  if (token.identity.role != pki::Role::agent)
    return fail(ErrorCode::invalid,
                "this token is for " + std::string(to_string(token.identity.role)) + "s",
                "people use it with zedctl login");
  ZED_TRY(const auto door, http_door_of(options.controller));
  // Before the token is used up: that the result can be kept.
  ZED_CHECK(make_private_folder(options.state));
  ZED_CHECK(make_private_folder(files.folder()));
  ZED_TRY(const auto membership, http::join(door, token));
  ZED_CHECK(files.save_roots(membership.roots));
  ZED_CHECK(proc::write_file_durably(options.state / "cookie", membership.cookie + "\n"));
  ZED_CHECK(save_join(files,
                      {membership.controller, door.host, membership.distribution_port, door.port}));
  ZED_CHECK(files.save_revoked(membership.revoked));
  // Last: it is what says that this machine has joined.
  ZED_CHECK(files.save_identity(membership.identity));
  return token.identity.name();
}

}  // namespace zed::bin
