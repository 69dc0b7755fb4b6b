#include "cli/fleets.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "net/files.hpp"
#include "net/private_folder.hpp"
#include "pki/authority.hpp"
#include "pki/keys.hpp"
#include "proc/launch.hpp"

namespace zed::cli {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_fleet_name(const std::string& name) {
  return !name.empty() && name.size() <= 100 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

Status save_identity(const KnownFleet& fleet, const net::TlsIdentity& identity) {
  return proc::write_file_durably(folder_of(fleet) / "node.pem", identity.chain + identity.key);
}

}  // namespace

fs::path fleets_folder() {
  const std::string config = environment("XDG_CONFIG_HOME");
  const std::string home = environment("HOME");
  return fs::path(config.empty() ? home + "/.config" : config) / "zed" / "fleets";
}

fs::path folder_of(const KnownFleet& fleet) {
  return fleets_folder() / fleet.name;
}

std::vector<std::string> known_fleets() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fleets_folder(), error))
    if (fs::exists(entry.path() / "fleet.json", error))
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

Result<KnownFleet> load_fleet(const std::string& name) {
  const auto known = known_fleets();
  if (std::find(known.begin(), known.end(), name) == known.end())
    return fail(ErrorCode::not_found,
                "no fleet \"" + percent_encode(name.substr(0, 80)) + "\" is known to this machine",
                known.empty() ? "zedctl login HOST --token TOKEN" : "known: " + join(known, ", "));
  const fs::path path = fleets_folder() / name / "fleet.json";
  ZED_TRY(KnownFleet fleet, net::read_record<KnownFleet>(path));
  fleet.name = name;
  return fleet;
}

Result<std::optional<KnownFleet>> current_fleet() {
  std::string name = environment("ZED_FLEET");
  if (name.empty()) {
    auto text = proc::read_file(fleets_folder() / "current", kibibytes(1));
    if (!text || trim(*text).empty()) return std::optional<KnownFleet>{};
    name = std::string(trim(*text));
  }
  ZED_TRY(KnownFleet fleet, load_fleet(name));
  return std::optional<KnownFleet>(std::move(fleet));
}

Status switch_to(const std::string& name) {
  ZED_CHECK(net::make_private_folder(fleets_folder()));
  return proc::write_file_durably(fleets_folder() / "current", name + "\n");
}

Status save_place(const KnownFleet& fleet) {
  return net::write_record(folder_of(fleet) / "fleet.json", fleet);
}

Status save_fleet(const KnownFleet& fleet, const http::Membership& membership) {
  if (!is_fleet_name(fleet.name))
    return fail(ErrorCode::invalid, "\"" + fleet.name.substr(0, 80) + "\" cannot name a fleet",
                "give --as NAME: letters, digits, '-', '_' and '.'");
  const fs::path folder = folder_of(fleet);
  ZED_CHECK(net::make_private_folder(fleets_folder()));
  ZED_CHECK(net::make_private_folder(folder));
  ZED_CHECK(proc::write_file_durably(folder / "ca.pem", membership.roots));
  ZED_CHECK(save_identity(fleet, membership.identity));
  return save_place(fleet);
}

Result<http::RemoteDoor> door_of(const KnownFleet& fleet) {
  const fs::path folder = folder_of(fleet);
  ZED_TRY(std::string own, proc::read_file(folder / "node.pem"));
  ZED_TRY(std::string roots, proc::read_file(folder / "ca.pem"));
  ZED_TRY(pki::ChainAndKey parts, pki::split_pem(own));
  ZED_TRY(auto tls, net::Tls::make({parts.chain, parts.key}, {roots, {}, ""}));
  http::RemoteDoor door{{fleet.host, fleet.http_port}, tls};
  const auto certificate = tls->own();
  if (!certificate || !pki::is_due_for_renewal(*certificate, wall_now())) return door;
  // The old one does until it ends: a renewal that fails is tried by the next command.
  if (auto renewed = http::renew(door)) {
    ZED_CHECK(save_identity(fleet, *renewed));
    ZED_CHECK(tls->replace(*renewed));
  }
  return door;
}

}  // namespace zed::cli
