#pragma once
// The thin shell around the controller's state machine: journal, agents, clients.

#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "beam/node.hpp"
#include "bin/daemon.hpp"
#include "controller/controller.hpp"
#include "controller/effects.hpp"
#include "http/server.hpp"
#include "journal/journal.hpp"
#include "net/loop.hpp"
#include "net/workers.hpp"

namespace zed::bin {

struct ControllerConfig {
  NodeName machine;
  std::filesystem::path state;  ///< journal, identity
  beam::NodeOptions beam;
  http::ServerOptions http;
  std::optional<Millis> lost_after;
};

class ControllerShell {
public:
  /// Opens the journal and all doors. Blocks on the disk. `on_step_down` is called once if another
  /// controller has taken over.
  static Result<std::unique_ptr<ControllerShell>> start(net::Loop& loop, ControllerConfig config,
                                                        std::function<void()> on_step_down);
  ~ControllerShell();

private:
  struct Performer;

  ControllerShell(net::Loop& loop, ControllerConfig config, journal::Journal journal,
                  std::function<void()> on_step_down);
  Status open_doors();
  void take(controller::Event event);
  void tick();
  void write_journal();
  void agent_up(const std::string& peer);
  void agent_down(const std::string& peer);
  void agent_said(const beam::Message& message);
  void drop(const std::string& peer);
  void called(const beam::Call& call);
  http::OnGone requested(api::Request request, api::Caller caller, http::Reply reply);
  const std::string* peer_of(controller::LinkId link) const;

  net::Loop& loop_;
  ControllerConfig config_;
  journal::Journal journal_;
  std::function<void()> on_step_down_;
  SystemIds ids_;
  controller::State state_;
  net::WorkerPool journal_worker_;  ///< one thread: records reach the disk in order
  net::Timer tick_timer_;
  std::unique_ptr<beam::Node> node_;
  std::unique_ptr<http::Server> server_;

  /// What waits for the disk: records are written together with those that came meanwhile.
  std::deque<std::pair<std::uint64_t, std::string>> to_write_;
  std::optional<controller::CompactJournal> to_compact_;
  bool writing_ = false;

  std::map<std::string, controller::LinkId> links_;  ///< by peer
  controller::LinkId next_link_ = 0;
  std::map<controller::RequestId, http::Reply> requests_;
  controller::RequestId next_request_ = 0;
};

}  // namespace zed::bin
