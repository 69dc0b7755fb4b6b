#pragma once
// Our node with a loop of its own, and real shells that know its port.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "beam/node.hpp"
#include "beam/term_value.hpp"
#include "erl.hpp"
#include "net/socket.hpp"

namespace zed::interop {

using beam::atom;
using beam::binary;
using beam::Term;
using beam::tuple;

inline constexpr Millis patience = seconds(60);

/// Our node, with a loop of its own, and shells that know its port.
class Interop : public testing::Test {
protected:
  void SetUp() override {
    if (!is_installed("erl")) GTEST_SKIP() << "erl is not installed: apt-get install erlang-base";
    start({});
  }

  void start(beam::NodeOptions options) {
    options.name = "zed@localhost";
    options.cookie = "secret";
    options.listen = {"127.0.0.1",
                      options.listen.port == 4370 ? std::uint16_t{0} : options.listen.port};
    options.allows_rpc = [](std::string_view module, std::string_view function, std::size_t arity) {
      return module == "Elixir.Zed" && function == "list" && arity == 1;
    };
    beam::NodeHandlers handlers;
    handlers.admit = [](const std::string& peer) { return peer.rfind("stranger", 0) != 0; };
    handlers.on_up = [this](const std::string& peer) { log += "+" + peer; };
    handlers.on_down = [this](const std::string& peer, const Error&) { log += "-" + peer; };
    handlers.on_call = [this](beam::Call call) { on_call(std::move(call)); };
    handlers.on_message = [this](beam::Message message) {
      messages.push_back(show(message.content));
      if (!message.content.is_atom("release")) return;
      for (const beam::RpcCall& call : held)
        (void)node->return_value(call, atom("done"));
    };
    handlers.on_rpc = [this](beam::RpcCall call) {
      if (show(call.arguments[0]) == "hold") return held.push_back(call);
      if (show(call.arguments[0]) == "fail") return (void)node->raise(call, atom("badarg"));
      (void)node->return_value(call, tuple({atom("ok"), call.arguments[0]}));
    };
    handlers.on_process_down = [this](const beam::ProcessDown& down) {
      downs.push_back(down.process);
    };
    auto started = beam::Node::start(loop, std::move(options), std::move(handlers));
    ASSERT_TRUE(started) << started.error().describe();
    node = std::move(*started);
  }

  void on_call(beam::Call call) {
    calls.push_back(show(call.request));
    if (answer && answer(call)) return;
    if (call.request.is_atom("silence")) return;
    if (call.request.is_atom("later")) {
      later = call;
      return;
    }
    if (call.request.is_atom("die")) return node.reset();
    if (call.request.is_atom("big")) {
      (void)node->reply(call, binary(std::string(900'000, 'b')));
      return;
    }
    (void)node->reply(call, tuple({atom("echo"), call.request}));
  }

  std::vector<std::string> shell(const std::string& name, const std::string& expression,
                                 const std::string& cookie = "secret") {
    const std::string port = std::to_string(node->endpoint().port);
    return {"erl",
            "-noshell",
            "-sname",
            name + "@localhost",
            "-setcookie",
            cookie,
            "-start_epmd",
            "false",
            "-erl_epmd_port",
            port,
            "-dist_listen",
            "false",
            "-eval",
            "N = 'zed@localhost', R = (fun() -> " + expression +
                " end)(), io:format(\"~0tp~n\", [R]), halt(0)."};
  }

  /// What the expression gives in a shell, as Erlang prints it.
  std::string eval(const std::string& expression, const std::string& name = "shell",
                   const std::string& cookie = "secret") {
    Child child(shell(name, expression, cookie));
    const Outcome outcome = child.wait(loop, patience);
    EXPECT_TRUE(outcome.ended) << "no answer; it printed: " << outcome.output;
    std::string text = outcome.output;
    while (!text.empty() && text.back() == '\n')
      text.pop_back();
    // What a crashed shell prints may hold a whole message.
    constexpr std::size_t longest = 2000;
    return text.substr(0, longest);
  }

  static std::uint16_t free_port() {
    auto socket = net::listen_tcp({"127.0.0.1", 0}, net::Exposure::loopback_only);
    return net::local_endpoint(socket->get())->port;
  }

  /// Asks at most every 200 ms, by a child of its own.
  bool known_to_epmd(const std::string& port) {
    if (loop.now() < next_question) return false;
    next_question = loop.now() + Millis{200};
    Child names({"epmd", "-port", port, "-names"});
    return names.wait(loop, seconds(5)).output.find("zed at port") != std::string::npos;
  }

  /// A shell that others can dial: it listens on `port`, where it believes every node to be.
  static std::vector<std::string> listener(const std::string& name, std::uint16_t port,
                                           const std::string& expression) {
    return {"erl",
            "-noshell",
            "-sname",
            name + "@localhost",
            "-setcookie",
            "secret",
            "-start_epmd",
            "false",
            "-erl_epmd_port",
            std::to_string(port),
            "-kernel",
            "inet_dist_use_interface",
            "{127,0,0,1}",
            "-eval",
            "io:format(\"up~n\"), " + expression + ", halt(0)."};
  }

  /// A test's own answer to a call; false: the usual one.
  std::function<bool(const beam::Call&)> answer;
  Instant next_question;
  net::Loop loop;
  std::unique_ptr<beam::Node> node;
  std::vector<std::string> calls;
  std::vector<std::string> messages;
  std::vector<beam::Pid> downs;
  std::vector<beam::RpcCall> held;
  std::optional<beam::Call> later;
  std::string log;
};

}  // namespace zed::interop
