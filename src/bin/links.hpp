#pragma once
// An agent's connections to its controllers: dials again and again, numbers each connection.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "beam/node.hpp"
#include "core/message.hpp"
#include "net/loop.hpp"

namespace zed::bin {

struct ControllerAddress {
  std::string peer;  ///< "zed_controller@server"
  net::Endpoint endpoint;

  /// "NAME@HOST:PORT", or "HOST:PORT" where the controller's node is named after the host. Errors:
  /// `invalid`.
  static Result<ControllerAddress> parse(const std::string& text);
};

using LinkId = std::uint64_t;

struct LinkHandlers {
  std::function<void(LinkId)> connected;
  std::function<void(LinkId, ControllerMessage)> said;
  std::function<void(LinkId)> gone;
};

/// Loop's thread only.
class ControllerLinks {
public:
  /// Errors: those of beam::Node::start.
  static Result<std::unique_ptr<ControllerLinks>> open(net::Loop& loop, beam::NodeOptions options,
                                                       std::vector<ControllerAddress> controllers,
                                                       LinkHandlers handlers);

  /// From now on this one is dialled, and `standby` while no controller at all is connected. What
  /// is connected stays.
  void follow(ControllerAddress controller, std::optional<ControllerAddress> standby);
  /// Ends every connection of whoever shows one of these serials, or what one of them signed.
  void drop_revoked(const std::set<std::string>& serials);

  /// A message that cannot be sent ends the link: its hello says everything again.
  void say(LinkId link, const AgentMessage& message);
  /// Ends a link; `gone` is not called for it. It is dialled again later.
  void close(LinkId link);

private:
  ControllerLinks(net::Loop& loop, std::vector<ControllerAddress> controllers,
                  LinkHandlers handlers);
  void dial();
  /// That nobody is there is said of one that `is_awaited`; a standby's place is empty as a rule.
  void dial(const ControllerAddress& controller, bool is_awaited);
  void up(const std::string& peer);
  void down(const std::string& peer, const Error& why);
  void heard(const beam::Message& message);
  bool is_controller(const std::string& peer) const;
  /// Says why, once, and leaves that controller alone for a while.
  void note_refusal(const std::string& peer, const Error& error);
  const std::string* peer_of(LinkId link) const;

  struct Refusal {
    Instant until;
    std::string text;
  };

  net::Loop& loop_;
  std::vector<ControllerAddress> controllers_;
  std::optional<ControllerAddress> standby_;
  LinkHandlers handlers_;
  std::unique_ptr<beam::Node> node_;
  net::Timer redial_;
  std::map<std::string, LinkId> links_;     ///< by peer
  std::map<std::string, Refusal> refused_;  ///< by peer, until it says something else
  LinkId next_link_ = 0;
  bool reported_away_ = false;
};

}  // namespace zed::bin
