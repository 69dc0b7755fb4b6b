#pragma once
// The thin shell around the controller's state machine: journal, agents, clients.

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "beam/node.hpp"
#include "bin/daemon.hpp"
#include "bin/door_keeper.hpp"
#include "bin/erlang_door.hpp"
#include "bin/erlang_watchers.hpp"
#include "controller/controller.hpp"
#include "controller/effects.hpp"
#include "http/server.hpp"
#include "journal/journal.hpp"
#include "net/loop.hpp"
#include "net/workers.hpp"

namespace zed::bin {

/// A person's takeover on another machine: what the fleet is asked before the new term begins.
struct Takeover {
  Millis ask_for = seconds(5);  ///< how long agents may take to say which term they know
  bool force = false;           ///< although agents name another machine as the one with the copy
};

struct ControllerConfig {
  NodeName machine;
  std::filesystem::path state;  ///< journal, identity
  beam::NodeOptions beam;
  http::ServerOptions http;
  /// Certificates of the fleet; none: plain TCP, on this machine. `http.tcp` is opened with them.
  std::optional<IdentityFiles> identity;
  std::optional<Millis> lost_after;
  std::optional<Takeover> takeover;
};

class ControllerShell {
public:
  /// Opens the journal and all doors. Blocks on the disk. `on_end` is called once if another
  /// controller has taken over, or if this takeover is refused.
  static Result<std::unique_ptr<ControllerShell>> start(net::Loop& loop, ControllerConfig config,
                                                        std::function<void(Error)> on_end);
  ~ControllerShell();

private:
  struct Performer;

  ControllerShell(net::Loop& loop, ControllerConfig config, journal::Journal journal,
                  std::function<void(Error)> on_end);
  Status open_doors();
  void take(controller::Event event);
  void tick();
  void write_journal();
  void agent_up(const std::string& peer);
  void agent_down(const std::string& peer);
  void agent_said(const beam::Message& message);
  void drop(const std::string& peer);
  void called(const beam::Call& call);
  void called_remotely(const beam::RpcCall& call);
  void watch_events(const beam::Call& call, std::optional<std::uint64_t> after,
                    const http::Reply& reply);
  const DeclaredNames& declared_names();
  /// From any door.
  http::OnGone requested(api::Request request, api::Caller caller, http::Reply reply);
  http::OnGone carry_out(api::Request request, api::Caller caller, http::Reply reply);
  api::Caller caller_of(const std::string& peer) const;
  Status open_keeper();
  std::optional<SecondNode> second_node() const;
  void drop_revoked(const std::set<std::string>& serials);
  const std::string* peer_of(controller::LinkId link) const;
  /// Forgets the connection of a peer; none if it has no link.
  std::optional<controller::LinkId> unlink(const std::string& peer);
  void begin(controller::Started started);
  /// No later start goes on from this disk, until a person says so.
  void mark_loss(const Error& why) const;
  void ask_agents(controller::Started started);
  void answered(controller::Started started);

  net::Loop& loop_;
  ControllerConfig config_;
  journal::Journal journal_;
  std::function<void(Error)> on_end_;
  SystemIds ids_;
  controller::State state_;
  net::WorkerPool journal_worker_;  ///< one thread: records reach the disk in order
  net::Timer tick_timer_;
  std::unique_ptr<DoorKeeper> keeper_;
  std::unique_ptr<beam::Node> node_;
  std::unique_ptr<ErlangWatchers> watchers_;
  DeclaredNames names_;  ///< of the desired state of that revision
  std::uint64_t names_revision_ = 0;
  std::unique_ptr<http::Server> server_;

  /// What waits for the disk: records are written together with those that came meanwhile.
  std::deque<std::pair<std::uint64_t, std::string>> to_write_;
  std::optional<controller::CompactJournal> to_compact_;
  bool writing_ = false;

  /// What agents said of terms and copies while a takeover asks; none once the term has begun.
  struct Asked {
    ControllerTerm highest;
    std::map<NodeName, std::int64_t> seconds;  ///< by how many agents each is named
  };
  std::optional<Asked> asked_;
  net::Timer ask_timer_;
  net::Timer end_timer_;

  std::map<std::string, controller::LinkId> links_;            ///< by peer
  std::unordered_map<controller::LinkId, std::string> peers_;  ///< the other way round
  controller::LinkId next_link_ = 0;
  std::map<controller::RequestId, http::Reply> requests_;
  controller::RequestId next_request_ = 0;
};

}  // namespace zed::bin
