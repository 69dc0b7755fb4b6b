// A fleet of agents that do nothing, in one process: each is a node of its own with its own
// connection, says hello, an empty inventory, and a heartbeat every 2 s. What it measures is the
// other end, the controller.
//
//   agents_bench --controller NAME@HOST:PORT --cookie-file FILE --count N [--first N] [--pki
//   FOLDER]
//
// Each agent listens and dials, two files, so ten thousand of them may need several such processes:
// their names are sim-FIRST and up.
//
// With --pki, the controller's own folder of that name, each agent has a certificate of the fleet's
// issuer and everything is TLS.
//
// Prints "ready N" when all are welcome, "lost NAME" for each that loses its connection, and runs
// until it is told to stop.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "beam/node.hpp"
#include "beam/term_value.hpp"
#include "bin/daemon.hpp"
#include "bin/identity_files.hpp"
#include "bin/links.hpp"
#include "core/message.hpp"
#include "net/loop.hpp"
#include "net/signals.hpp"
#include "net/tls.hpp"
#include "pki/authority.hpp"
#include "pki/keys.hpp"

namespace {

using namespace zed;

constexpr Millis heartbeat_every = seconds(2);
constexpr Millis dial_deadline = seconds(20);
constexpr Millis certificate_lifetime = minutes(60);
constexpr std::size_t most_joining = 64;

/// What gives each agent its certificate.
struct Issue {
  pki::Issuer issuer;
  std::string roots;
};

struct Options {
  bin::ControllerAddress controller;
  std::string cookie;
  std::size_t first = 1;
  std::size_t count = 1;
  std::optional<Issue> issue;  ///< nothing: plain TCP
};

Result<std::shared_ptr<const net::Tls>> certified(const Issue& issue, const NodeName& name) {
  ZED_TRY(const auto identity, pki::identity_of(pki::Role::agent, name.str()));
  ZED_TRY(const std::string key, pki::make_key());
  ZED_TRY(const std::string request, pki::make_request(key, name.str()));
  ZED_TRY(std::string chain,
          pki::sign_request(request, issue.issuer, identity, {}, pki::random_nonce(), wall_now(),
                            certificate_lifetime));
  ZED_TRY(std::shared_ptr<const net::Tls> tls,
          net::Tls::make({std::move(chain), key}, {issue.roots, {}, {}}));
  return tls;
}

NodeName name_of(std::size_t number) {
  std::string digits = std::to_string(number);
  return NodeName::parse("sim-" + std::string(5 - std::min<std::size_t>(5, digits.size()), '0') +
                         digits)
      .value();
}

Gpu gpu_of(const NodeName& node, int position) {
  Gpu gpu;
  gpu.uuid = "GPU-" + node.str() + "-" + std::to_string(position);
  gpu.vendor = GpuVendor::nvidia;
  gpu.model = "NVIDIA A100-SXM4-80GB";
  gpu.vram_reported = mebibytes(81920);
  gpu.vram_nominal_gb = 80;
  gpu.arch = "8.0";
  gpu.driver = "550.54.15";
  gpu.cuda = "12.4";
  return gpu;
}

Hello hello_of(const NodeName& name, NodeId id) {
  Hello hello;
  hello.node = id;
  hello.name = name;
  hello.facts.version = "bench";
  hello.facts.os = "linux";
  hello.facts.cpu_arch = "x86_64";
  hello.facts.cpus = 32;
  hello.facts.memory = gibibytes(256);
  hello.facts.pool = "tank";
  hello.facts.simulated = true;
  hello.facts.data_address = "127.0.0.1:9";
  hello.gpus = {gpu_of(name, 0), gpu_of(name, 1)};
  return hello;
}

class IdleAgent {
public:
  static Result<std::unique_ptr<IdleAgent>> open(net::Loop& loop, const Options& options,
                                                 std::size_t number,
                                                 std::function<void()> on_welcome) {
    std::unique_ptr<IdleAgent> agent(new IdleAgent(loop, name_of(number), std::move(on_welcome)));
    beam::NodeOptions node;
    node.name = "zed@" + agent->name_.str();
    node.cookie = options.cookie;
    node.listen = {"127.0.0.1", 0};
    if (options.issue) {
      ZED_TRY(node.tls, certified(*options.issue, agent->name_));
    }
    ZED_TRY(agent->node_, beam::Node::start(loop, std::move(node), agent->handlers()));
    agent->node_->connect(options.controller.peer, options.controller.endpoint, dial_deadline,
                          [name = agent->name_](Status connected) {
                            if (connected) return;
                            std::fprintf(stderr, "agents_bench: %s: %s\n", name.str().c_str(),
                                         connected.error().describe().c_str());
                            std::exit(1);
                          });
    return agent;
  }

private:
  IdleAgent(net::Loop& loop, NodeName name, std::function<void()> on_welcome)
      : name_(std::move(name)), on_welcome_(std::move(on_welcome)), heartbeat_(loop) {}

  beam::NodeHandlers handlers() {
    beam::NodeHandlers events;
    events.admit = [](const std::string& peer) { return peer.starts_with("zed_controller@"); };
    events.on_up = [this](const std::string& peer) {
      peer_ = peer;
      say(hello_of(name_, NodeId{bin::SystemIds().next()}));
      InventoryPage page;
      page.last = true;
      say(page);
      beat();
    };
    events.on_down = [this](const std::string&, const Error& why) {
      heartbeat_.cancel();
      std::printf("lost %s: %s\n", name_.str().c_str(), why.describe().c_str());
      std::fflush(stdout);
    };
    events.on_message = [this](const beam::Message& message) { heard(message); };
    return events;
  }

  void beat() {
    say(Heartbeat{gibibytes(1000), gibibytes(200)});
    heartbeat_.start(heartbeat_every, [this] { beat(); });
  }

  void heard(const beam::Message& message) {
    auto value = beam::value_of(message.content);
    auto said = value ? from_value<ControllerMessage>(*value)
                      : Result<ControllerMessage>(fail(value.error()));
    if (!said) return;
    if (std::holds_alternative<Welcome>(*said)) on_welcome_();
    if (auto* refused = std::get_if<Refused>(&*said)) {
      std::fprintf(stderr, "agents_bench: %s: %s\n", name_.str().c_str(),
                   refused->error.describe().c_str());
      std::exit(1);
    }
    // One of us is chosen to hold the journal's copy: pretend that it does.
    if (auto* records = std::get_if<JournalRecords>(&*said))
      say(JournalStored{records->term, records->first_seq + records->records.size() - 1});
  }

  void say(const AgentMessage& message) {
    auto term = beam::term_of(to_value(message), [](std::string_view) { return false; });
    if (auto sent = node_->send(peer_, term); !sent)
      std::fprintf(stderr, "agents_bench: %s\n", sent.error().describe().c_str());
  }

  NodeName name_;
  std::function<void()> on_welcome_;
  net::Timer heartbeat_;
  std::unique_ptr<beam::Node> node_;
  std::string peer_;
};

Result<std::size_t> number_of(const std::map<std::string, std::string>& given, const char* option) {
  const auto found = given.find(option);
  const int number = found == given.end() ? 1 : std::atoi(found->second.c_str());
  if (number < 1 || number > 16'000)
    return fail(ErrorCode::invalid, std::string(option) + " is not 1 to 16000");
  return static_cast<std::size_t>(number);
}

Result<Options> options_of(int argc, char** argv) {
  std::map<std::string, std::string> given;
  for (int i = 1; i + 1 < argc; i += 2)
    given[argv[i]] = argv[i + 1];
  if (given.count("--controller") == 0 || given.count("--cookie-file") == 0)
    return fail(ErrorCode::invalid, "--controller and --cookie-file are missing");
  Options options;
  ZED_TRY(options.controller, bin::ControllerAddress::parse(given["--controller"]));
  ZED_TRY(options.cookie, bin::read_cookie(given["--cookie-file"], false));
  ZED_TRY(options.first, number_of(given, "--first"));
  ZED_TRY(options.count, number_of(given, "--count"));
  if (given.count("--pki") > 0) {
    const auto files = bin::IdentityFiles::at(given["--pki"]);
    options.issue.emplace();
    ZED_TRY(options.issue->issuer, files.load_issuing());
    ZED_TRY(options.issue->roots, files.load_roots());
  }
  return options;
}

Status run(const Options& options) {
  bin::raise_open_files();
  net::Loop loop;
  std::size_t welcome = 0;
  std::vector<std::unique_ptr<IdleAgent>> agents;
  auto on_welcome = [&welcome, &options] {
    // All have joined, and later: all have heard of another declared fleet.
    if (++welcome % options.count != 0) return;
    std::printf("ready %zu\n", options.count);
    std::fflush(stdout);
  };
  ZED_TRY(auto signals, net::Signals::watch(loop, {SIGTERM, SIGINT}, [&](int) { loop.stop(); }));
  // A millisecond apart, so that heartbeats are spread as those of real machines are, and only some
  // at once: who still shakes hands waits in a lobby that has an end.
  net::Timer opener(loop);
  Status opened;
  std::function<void()> open_next = [&] {
    if (agents.size() == options.count) return;
    opener.start(Millis{1}, open_next);
    if (agents.size() - std::min(agents.size(), welcome) >= most_joining) return;
    auto agent = IdleAgent::open(loop, options, options.first + agents.size(), on_welcome);
    if (!agent) {
      opened = fail(std::move(agent).error());
      return loop.stop();
    }
    agents.push_back(std::move(*agent));
  };
  open_next();
  if (opened) loop.run();
  return opened;
}

}  // namespace

int main(int argc, char** argv) {
  auto options = options_of(argc, argv);
  Status status = options ? run(*options) : Status(fail(options.error()));
  if (status) return 0;
  std::fprintf(stderr, "agents_bench: %s\n", status.error().describe().c_str());
  return 1;
}
