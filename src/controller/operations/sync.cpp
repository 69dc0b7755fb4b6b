// A person sends one snapshot to another machine: the same transfers that policies make, now.

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "controller/names.hpp"
#include "controller/operations/handlers.hpp"
#include "repl/transfers.hpp"

namespace zed::controller {
namespace {

constexpr Millis sync_patience = minutes(120);
/// Transfers beyond one for each snapshot of the source: those that others had begun.
constexpr std::size_t spare_rounds = 8;

std::string quoted(std::string_view text) {
  return "\"" + percent_encode(text.substr(0, 200)) + "\"";
}

/// "nvme/models/llama": a pool and what lies in it.
struct Place {
  std::string pool;
  DatasetName dataset;
};

Result<Place> place_of(std::string_view text) {
  std::size_t slash = text.find('/');
  auto pool = DatasetName::parse(text.substr(0, slash));
  if (!pool) return fail(std::move(pool).error().with("read " + quoted(text)));
  if (slash == std::string_view::npos)
    return fail(ErrorCode::invalid, quoted(text) + " names a pool and no dataset",
                "write it like tank/models/llama");
  auto dataset = DatasetName::parse(text.substr(slash + 1));
  if (!dataset) return fail(std::move(dataset).error().with("read " + quoted(text)));
  return Place{pool->str(), std::move(*dataset)};
}

struct Source {
  NodeName node;
  DatasetName dataset;
  DatasetId uuid;
  CheckpointId snapshot;
  std::string snapshot_name;
};

/// The one node that has that pool and that snapshot in it.
Result<Source> source_of(const Machine& m, const std::string& typed) {
  const std::size_t at = typed.find('@');
  const std::string word = at == std::string::npos ? "" : typed.substr(at + 1);
  if (!is_snapshot_word(word))
    return fail(ErrorCode::invalid, quoted(typed) + " names no snapshot",
                "write it like nvme/models/llama@v1");
  ZED_TRY(Place place, place_of(std::string_view(typed).substr(0, at)));
  std::vector<Source> found;
  std::vector<std::string> with_pool;
  std::vector<std::string> snapshots;
  for (const auto& [name, node] : m.fleet.view().nodes) {
    if (node.facts.pool != place.pool) continue;
    with_pool.push_back(name.str());
    auto held = m.fleet.view().datasets.find(name);
    if (held == m.fleet.view().datasets.end()) continue;
    auto dataset = held->second.find(place.dataset);
    if (dataset == held->second.end()) continue;
    for (const Snapshot& snapshot : dataset->second.snapshots)
      snapshots.push_back("@" + snapshot.name);
    if (const Snapshot* snapshot = dataset->second.find(word))
      found.push_back({name, place.dataset, dataset->second.uuid, snapshot->id, word});
  }
  if (found.size() == 1) return std::move(found.front());
  if (found.size() > 1) {
    std::vector<std::string> names;
    for (const Source& source : found)
      names.push_back(source.node.str());
    return fail(ErrorCode::refused,
                fmt::format("{} is on {}: which of them is to send it is not said", quoted(typed),
                            join(names, ", ")),
                "give their pools different names, or let a policy (`replicate`) choose");
  }
  if (with_pool.empty())
    return fail(ErrorCode::not_found, "no node has a pool " + quoted(place.pool), "zedctl nodes");
  if (snapshots.empty())
    return fail(ErrorCode::not_found,
                fmt::format("there is no {} with snapshots in the pool of {}", place.dataset.str(),
                            join(with_pool, ", ")),
                "zedctl models and zedctl jobs list what there is");
  return fail(ErrorCode::not_found, quoted(typed) + " is not there",
              hint_for("@" + word, snapshots, "snapshot"));
}

/// The host of "[user@]host", checked: it may become a word of ssh's command line.
Result<std::string> host_of(const std::string& destination) {
  if (!is_ssh_destination(destination))
    return fail(ErrorCode::invalid, quoted(destination) + " is not [user@]host",
                "write it like root@workstation");
  return destination.substr(destination.find('@') + 1);
}

/// The node of that host: by its name, or by the address that the cluster file gives it.
const Node* node_of(const Machine& m, const std::string& host) {
  if (auto name = NodeName::parse(host))
    if (const Node* node = m.fleet.node(*name)) return node;
  for (const auto& entry : m.fleet.view().nodes)
    if (entry.second.declared && entry.second.declared->address == host) return &entry.second;
  return nullptr;
}

/// By ssh to a machine without an agent: one step of the node that has it.
void send_to_host(const Asked& asked, const Source& source, const std::string& host,
                  const api::SyncToRemote& op) {
  Machine& m = asked.m;
  const Node* node = m.fleet.node(source.node);
  if (node->facts.store != StoreKind::zfs)
    return asked.refuse(ErrorCode::unsupported,
                        fmt::format("{} is no node of this fleet, and node {} keeps its data in a "
                                    "`dir` store: only an OpenZFS dataset can be sent over ssh to "
                                    "a machine without an agent",
                                    host, source.node.str()),
                        "run zed-agent on " + host + ": then the agents send it to one another");
  if (auto ready = check_ready(m, source.node); !ready) return asked.refuse(ready.error());
  SendToHost send{source.dataset,       source.uuid,    source.snapshot,
                  source.snapshot_name, op.destination, op.dataset};
  PlanStep step;
  step.node = source.node;
  step.action = send;
  step.expect = m.expect();
  step.why = "sync by " + asked.by();
  const std::string need = "host:" + op.destination + ":" + op.dataset;
  const auto same = [&](const auto& entry) {
    return entry.second.need == need && entry.second.step.action == step.action;
  };
  const auto& live = m.steps.all();
  if (m.steps.is_live(need) && std::none_of(live.begin(), live.end(), same))
    return asked.refuse(ErrorCode::busy,
                        "another snapshot is on its way to " + op.destination + ":" + op.dataset,
                        "zedctl transfers shows it; try again afterwards");
  // A person asks: an earlier failure is no reason to wait.
  m.steps.forgive(need);
  m.steps.want(need, JobId{}, {step}, m.fleet, m.now.monotonic, m.ids, m.out);
  if (!m.steps.is_live(need))
    return asked.refuse(ErrorCode::unavailable, "node " + source.node.str() + " went away",
                        "try again");
  const std::string what = source.dataset.str() + "@" + source.snapshot_name;
  asked.audit(what, "sync from " + source.node.str() + " to " + op.destination + " by ssh");
  asked.reply_on_need(
      need, source.node, sync_patience,
      fmt::format("send {} from {} to {} by ssh", what, source.node.str(), op.destination),
      [what, op, from = source.node](Machine&, const NeedOutcome& outcome) {
        api::SyncReply reply{what,  from.str(), op.destination, op.dataset,
                             false, true,       outcome.moved};
        reply.was_there = outcome.moved == Bytes{};
        return api::encode_reply(reply);
      });
}

struct Sync {
  Source source;
  NodeName target;
  std::string pool;  ///< the target's
  std::size_t rounds_left = 0;
  bool was_there = true;
};

/// Who sends and who receives, or why it cannot be done.
Result<Sync> sync_of(const Machine& m, const api::SyncToRemote& op, Source source,
                     const Node* target) {
  ZED_TRY(Place place, place_of(op.dataset));
  if (target->facts.pool != place.pool)
    return fail(ErrorCode::invalid,
                fmt::format("the pool of node {} is {}, not {}", target->name.str(),
                            target->facts.pool, place.pool),
                "write " + target->facts.pool + "/" + place.dataset.str());
  if (place.dataset != source.dataset)
    return fail(ErrorCode::unsupported,
                fmt::format("inside the fleet a copy keeps its dataset's name: {}, not {}",
                            source.dataset.str(), place.dataset.str()),
                "write " + target->facts.pool + "/" + source.dataset.str());
  if (target->name == source.node)
    return fail(ErrorCode::invalid, "node " + source.node.str() + " would send it to itself",
                "it is there already");
  if (source.uuid.is_nil())
    return fail(ErrorCode::unsupported,
                source.dataset.str() + " was made by hand and has no com.zed:uuid: no copy could "
                                       "be told from another dataset",
                "import it: zedctl model add");
  const DesiredJob* job = m.desired.find(JobId{source.uuid.bytes});
  if (job != nullptr && job->home != source.node)
    return fail(ErrorCode::refused,
                fmt::format("the copy of job {} that others follow is on {}, not on {}",
                            job->job.name.str(), job->home.str(), source.node.str()),
                "send it from there");
  const Dataset* from = m.fleet.copy(source.node, source.uuid);
  std::size_t rounds = (from != nullptr ? from->snapshots.size() : 0) + spare_rounds;
  return Sync{std::move(source), target->name, place.pool, rounds, true};
}

/// Why nothing was ordered although the snapshot is missing.
Error not_ordered(const Machine& m, const Sync& sync) {
  for (const NodeName& node : {sync.source.node, sync.target})
    if (auto ready = check_ready(m, node); !ready) return ready.error();
  auto transfer =
      repl::due_transfer(m.fleet.view(), sync.source.uuid, sync.source.node, sync.target, "sync");
  if (!transfer)
    return {ErrorCode::refused,
            fmt::format("{} may not be sent from {} to {}: others follow its home",
                        sync.source.dataset.str(), sync.source.node.str(), sync.target.str()),
            {},
            "send it from its home, to another node"};
  if (const auto* conflict = std::get_if<repl::Conflict>(&transfer->step))
    return {ErrorCode::conflict,
            fmt::format("{} on {} has nothing in common with that on {}: {}",
                        sync.source.dataset.str(), sync.target.str(), sync.source.node.str(),
                        conflict->why),
            {},
            "rename or remove the one on " + sync.target.str() + " first"};
  return {ErrorCode::busy,
          "the two nodes send and receive as much as they may at once",
          {},
          "try again; zedctl transfers shows what is moving"};
}

/// Orders the next transfer until the snapshot is there.
void go_on(const Asked& asked, Sync sync) {
  Machine& m = asked.m;
  const Dataset* copy = m.fleet.copy(sync.target, sync.source.uuid);
  const std::string what = sync.source.dataset.str() + "@" + sync.source.snapshot_name;
  if (copy != nullptr && copy->find(sync.source.snapshot) != nullptr)
    return asked.reply(api::SyncReply{what,
                                      sync.source.node.str(),
                                      sync.target.str(),
                                      sync.pool + "/" + copy->name.str(),
                                      sync.was_there,
                                      false,
                                      {}});
  if (sync.rounds_left-- == 0)
    return asked.refuse(ErrorCode::conflict, what + " did not come to " + sync.target.str(),
                        "zedctl events tells what happened");
  sync.was_there = false;
  const std::string need = copy_need(sync.source.uuid, sync.target);
  // A person asks: an earlier failure is no reason to wait.
  m.steps.forgive(need);
  bring(m, sync.source.uuid, sync.source.node, sync.target, JobId{}, "sync by " + asked.by());
  if (!m.steps.is_live(need)) return asked.refuse(not_ordered(m, sync));
  asked.continue_on_need(
      need, sync.target, sync_patience,
      fmt::format("send {} from {} to {}", what, sync.source.node.str(), sync.target.str()),
      [sync](const Asked& again) { go_on(again, sync); });
}

}  // namespace

void handle(const Asked& asked, const api::SyncToRemote& op) {
  const Machine& m = asked.m;
  auto source = source_of(m, op.snapshot);
  if (!source) return asked.refuse(source.error());
  auto host = host_of(op.destination);
  if (!host) return asked.refuse(host.error());
  if (auto place = place_of(op.dataset); !place) return asked.refuse(place.error());
  const Node* target = node_of(m, *host);
  if (target == nullptr) return send_to_host(asked, *source, *host, op);
  auto sync = sync_of(m, op, std::move(*source), target);
  if (!sync) return asked.refuse(sync.error());
  asked.audit(sync->source.dataset.str() + "@" + sync->source.snapshot_name,
              "sync from " + sync->source.node.str() + " to " + sync->target.str());
  go_on(asked, std::move(*sync));
}

}  // namespace zed::controller
