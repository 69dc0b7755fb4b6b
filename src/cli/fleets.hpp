#pragma once
// The fleets that this person has logged in to, on disk:
//
//   <config>/current          the name of the one in use
//   <config>/<name>/node.pem  certificate and key (0600)
//                  /ca.pem    the fleet's authority
//                  /fleet.json
//
// <config> is $XDG_CONFIG_HOME/zed/fleets, else ~/.config/zed/fleets.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.hpp"
#include "http/enrol.hpp"

namespace zed::cli {

struct KnownFleet {
  std::string name;  ///< not in the file: the folder's
  std::string host;
  std::uint16_t http_port = 0;
  std::string controller;  ///< "zed_controller@server"
  std::uint16_t distribution_port = 0;
  std::string cookie;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("host", self.host);
    visit("http_port", self.http_port);
    visit("controller", self.controller);
    visit("distribution_port", self.distribution_port);
    visit("cookie", self.cookie);
  }
};

std::filesystem::path fleets_folder();
std::filesystem::path folder_of(const KnownFleet& fleet);

/// Names, sorted.
std::vector<std::string> known_fleets();
/// Errors: `not_found`, naming those that there are.
Result<KnownFleet> load_fleet(const std::string& name);
/// $ZED_FLEET, or the one that was switched to; nothing if there is none.
Result<std::optional<KnownFleet>> current_fleet();
/// Empty: none.
Status switch_to(const std::string& name);
/// Where its controller is, of a fleet that is known. Errors: those of the file.
Status save_place(const KnownFleet& fleet);
Status save_fleet(const KnownFleet& fleet, const http::Membership& membership);

/// The way to its controller, with a certificate that is renewed in time.
Result<http::RemoteDoor> door_of(const KnownFleet& fleet);

}  // namespace zed::cli
