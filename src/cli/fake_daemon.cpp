// Stands in for zed-controller and zed-agent in tests of `zedctl dev`: takes their options, writes
// pid.json, answers `nodes` by who is alive. Files in its state folder make it misbehave:
//   fail   says "port in use" and ends at once
//   deaf   ignores SIGTERM
//   job    the agent starts a supervisor (deaf too) with a job that forks

#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include <signal.h>
#include <unistd.h>

#include "base/describe.hpp"
#include "base/json.hpp"
#include "cli/dev_processes.hpp"
#include "http/server.hpp"
#include "net/signals.hpp"
#include "proc/launch.hpp"

namespace {

using namespace zed;
namespace fs = std::filesystem;

std::map<std::string, std::string> options_of(int argc, char** argv) {
  std::map<std::string, std::string> options;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t sign = word.find('=');
    if (sign != std::string::npos) options[word.substr(2, sign - 2)] = word.substr(sign + 1);
  }
  return options;
}

int supervise(const fs::path& folder) {
  ::signal(SIGTERM, SIG_IGN);
  if (::fork() == 0) {
    const std::string directory = "ZED_JOB_DIR=" + (folder.parent_path() / "job").string();
    const std::string script = "sleep 600 & env -i sleep 600 & wait";
    char* const environment[] = {const_cast<char*>(directory.c_str()),
                                 const_cast<char*>("PATH=/usr/bin:/bin"), nullptr};
    ::execle("/bin/sh", "sh", "-c", script.c_str(), nullptr, environment);
    ::_exit(127);
  }
  for (;;)
    ::pause();
}

api::NodesReply living_nodes(const fs::path& fleet) {
  api::NodesReply reply;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fleet / "nodes", error)) {
    api::NodeRow row;
    row.node.name = *NodeName::parse(entry.path().filename().string());
    row.node.status = cli::running_in(entry.path()) ? NodeStatus::up : NodeStatus::lost;
    reply.nodes.push_back(row);
  }
  return reply;
}

}  // namespace

int main(int argc, char** argv) {
  const fs::path self = argv[0];
  if (argc > 2 && std::string(argv[1]) == "supervise") return supervise(argv[2]);
  auto options = options_of(argc, argv);
  const fs::path state = options["state"];
  if (fs::exists(state / "fail")) {
    std::fprintf(stderr, "listen on 127.0.0.1:4371: port in use\n");
    return 1;
  }
  std::fprintf(stderr, "%s run", self.filename().c_str());
  for (const auto& [name, value] : options)
    std::fprintf(stderr, " %s=%s", name.c_str(), value.c_str());
  std::fprintf(stderr, "\n");
  if (fs::exists(state / "deaf")) ::signal(SIGTERM, SIG_IGN);
  if (fs::exists(state / "job") && ::fork() == 0) {
    ::setsid();
    ::execl(self.c_str(), self.c_str(), "supervise", (state / "attempts-1").c_str(), nullptr);
    ::_exit(127);
  }
  net::Loop loop;
  std::unique_ptr<http::Server> server;
  if (self.filename() == "zed-controller") {
    auto opened = http::Server::open(
        loop, {options["socket"], std::nullopt, {}},
        [&state](const api::Request&, const api::Caller&, const http::Reply& reply) {
          reply(api::encode_reply(living_nodes(state.parent_path())));
          return http::OnGone{};
        });
    if (!opened) return 1;
    server = std::move(*opened);
  }
  const auto identity = proc::identity_of(::getpid());
  if (!proc::write_file_durably(state / "pid.json", to_json(to_value(*identity)))) return 1;
  if (fs::exists(state / "deaf")) {
    loop.run();
    return 0;
  }
  auto signals = net::Signals::watch(loop, {SIGTERM}, [&loop](int) { loop.stop(); });
  if (!signals) return 1;
  loop.run();
  return 0;
}
