#include "bin/links.hpp"

#include <utility>

#include "base/log.hpp"
#include "beam/term_value.hpp"
#include "net/refusal_log.hpp"

namespace zed::bin {
namespace {

constexpr Millis redial_every = Millis{500};
constexpr Millis dial_deadline = seconds(5);
// A refusal stays until a person does something: to ask again soon only fills logs.
constexpr Millis refused_for = seconds(10);

}  // namespace

Result<ControllerAddress> ControllerAddress::parse(const std::string& text) {
  std::size_t at = text.find('@');
  bool named = at != std::string::npos;
  auto endpoint = net::Endpoint::parse(named ? text.substr(at + 1) : text);
  if (!endpoint) return fail(std::move(endpoint).error().with("controller \"" + text + "\""));
  std::string host = named ? text.substr(0, at) : endpoint->host;
  return ControllerAddress{"zed_controller@" + host, std::move(*endpoint)};
}

ControllerLinks::ControllerLinks(net::Loop& loop, std::vector<ControllerAddress> controllers,
                                 LinkHandlers handlers)
    : loop_(loop), controllers_(std::move(controllers)), handlers_(std::move(handlers)),
      redial_(loop) {}

Result<std::unique_ptr<ControllerLinks>>
ControllerLinks::open(net::Loop& loop, beam::NodeOptions options,
                      std::vector<ControllerAddress> controllers, LinkHandlers handlers) {
  std::unique_ptr<ControllerLinks> links(
      new ControllerLinks(loop, std::move(controllers), std::move(handlers)));
  ControllerLinks* self = links.get();
  beam::NodeHandlers events;
  events.admit = [self](const std::string& peer) { return self->is_controller(peer); };
  events.on_up = [self](const std::string& peer) { self->up(peer); };
  events.on_down = [self](const std::string& peer, const Error& why) { self->down(peer, why); };
  events.on_message = [self](const beam::Message& message) { self->heard(message); };
  events.on_refused = [refusals = std::make_shared<net::RefusalLog>(loop)](
                          const net::Endpoint& from, const Error& why) {
    refusals->add("connection from " + from.str() + " refused: " + why.describe());
  };
  ZED_TRY(links->node_, beam::Node::start(loop, std::move(options), std::move(events)));
  links->dial();
  return links;
}

bool ControllerLinks::is_controller(const std::string& peer) const {
  return peer.starts_with("zed_controller@");
}

const std::string* ControllerLinks::peer_of(LinkId link) const {
  for (const auto& [peer, id] : links_)
    if (id == link) return &peer;
  return nullptr;
}

void ControllerLinks::dial() {
  for (const ControllerAddress& controller : controllers_)
    dial(controller, true);
  if (standby_ && links_.empty()) dial(*standby_, false);
  redial_.start(redial_every, [this] { dial(); });
}

void ControllerLinks::dial(const ControllerAddress& controller, bool is_awaited) {
  if (node_->is_up(controller.peer)) return;
  const auto refused = refused_.find(controller.peer);
  if (refused != refused_.end() && loop_.now() < refused->second.until) return;
  node_->connect(controller.peer, controller.endpoint, dial_deadline,
                 [this, is_awaited](Status connected) {
                   if (connected || connected.error().code == ErrorCode::exists) return;
                   if (!is_awaited || std::exchange(reported_away_, true)) return;
                   log_warning("no controller yet, jobs go on: " + connected.error().describe());
                 });
}

void ControllerLinks::follow(ControllerAddress controller,
                             std::optional<ControllerAddress> standby) {
  controllers_ = {std::move(controller)};
  standby_ = std::move(standby);
}

void ControllerLinks::drop_revoked(const std::set<std::string>& serials) {
  node_->drop_revoked(serials);
}

void ControllerLinks::up(const std::string& peer) {
  reported_away_ = false;
  LinkId link = ++next_link_;
  links_[peer] = link;
  if (!refused_.contains(peer)) log_info("connected to " + peer);
  handlers_.connected(link);
}

void ControllerLinks::down(const std::string& peer, const Error& why) {
  auto found = links_.find(peer);
  if (found == links_.end()) return;
  LinkId link = found->second;
  links_.erase(found);
  if (!refused_.contains(peer)) log_warning("lost " + peer + ": " + why.describe());
  handlers_.gone(link);
}

void ControllerLinks::heard(const beam::Message& message) {
  auto link = links_.find(message.peer);
  if (link == links_.end()) return;
  auto value = beam::value_of(message.content);
  auto said = value ? from_value<ControllerMessage>(*value)
                    : Result<ControllerMessage>(fail(value.error()));
  if (!said)
    return log_warning("message from " + message.peer + " dropped: " + said.error().describe());
  if (const auto* refusal = std::get_if<Refused>(&*said))
    note_refusal(message.peer, refusal->error);
  else
    refused_.erase(message.peer);
  handlers_.said(link->second, std::move(*said));
}

void ControllerLinks::note_refusal(const std::string& peer, const Error& error) {
  // One whose term is over is followed by another, which may be there any moment.
  if (error.code == ErrorCode::stale) return log_info(peer + ": " + error.describe());
  Refusal& refusal = refused_[peer];
  refusal.until = loop_.now() + refused_for;
  const std::string text = error.describe();
  if (std::exchange(refusal.text, text) != text)
    log_warning(peer + " refuses this node, jobs go on: " + text);
}

void ControllerLinks::say(LinkId link, const AgentMessage& message) {
  const std::string* peer = peer_of(link);
  if (peer == nullptr) return;
  // No word becomes an atom: only shells want those.
  auto sent = node_->send(*peer, beam::term_of(to_value(message), nullptr));
  if (sent) return;
  log_warning("link to " + *peer + " ended: " + sent.error().describe());
  node_->disconnect(*peer);
  links_.erase(*peer);
  // Never from inside the state machine's own step.
  loop_.post([this, link] { handlers_.gone(link); });
}

void ControllerLinks::close(LinkId link) {
  const std::string* peer = peer_of(link);
  if (peer == nullptr) return;
  node_->disconnect(*peer);
  links_.erase(*peer);
}

}  // namespace zed::bin
