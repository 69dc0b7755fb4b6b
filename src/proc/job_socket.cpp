#include "proc/job_socket.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <map>

#include "base/describe.hpp"
#include "net/beneath.hpp"
#include "net/listener.hpp"
#include "net/socket.hpp"
#include "net/system.hpp"
#include "proc/line_connection.hpp"

namespace zed::proc {
namespace {

constexpr std::size_t longest_line = 64 * 1024;
constexpr std::size_t most_connections = 16;
constexpr std::size_t most_metrics = 200;
constexpr std::size_t most_paths = 1000;
constexpr std::int64_t job_protocol = 1;
/// Request numbers lie below, so that no JSON reader rounds them.
constexpr std::uint64_t request_end = std::uint64_t{1} << 53U;

/// A checkpoint request as it stands on the wire.
struct WireRequest {
  std::uint64_t request = 0;
  Generation generation;
  std::int64_t deadline_ms = 0;
  std::optional<std::int64_t> epoch;
  std::optional<std::int64_t> step;
  std::map<std::string, Value> metrics;
  std::vector<std::string> paths;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("request", self.request);
    visit("generation", self.generation);
    visit("deadline_ms", self.deadline_ms);
    visit("epoch", self.epoch);
    visit("step", self.step);
    visit("metrics", self.metrics);
    visit("paths", self.paths);
  }
};

std::optional<double> metric_of(const Value& value) {
  if (auto* number = value.as_double()) return *number;
  if (auto* number = value.as_int()) return static_cast<double>(*number);
  const std::string* word = value.as_text();  // JSON has no NaN
  if (word == nullptr) return std::nullopt;
  if (*word == "NaN") return std::nan("");
  if (*word == "Infinity") return HUGE_VAL;
  if (*word == "-Infinity") return -HUGE_VAL;
  return std::nullopt;
}

Result<env::CheckpointRequest> request_of(const Value& value,
                                          const std::filesystem::path& directory) {
  ZED_TRY(WireRequest wire, from_value<WireRequest>(value));
  if (wire.request == 0 || wire.request >= request_end)
    return fail(ErrorCode::invalid, "\"request\" is not a positive integer below 2^53");
  if (wire.epoch.value_or(0) < 0 || wire.step.value_or(0) < 0)
    return fail(ErrorCode::invalid, "\"epoch\" or \"step\" is negative");
  if (wire.metrics.size() > most_metrics)
    return fail(ErrorCode::invalid, "more than 200 metrics in one checkpoint");
  if (wire.paths.size() > most_paths)
    return fail(ErrorCode::invalid, "more than 1,000 paths in one checkpoint");
  env::CheckpointRequest request;
  request.number = wire.request;
  request.generation = wire.generation;
  request.deadline = {wire.deadline_ms};
  request.epoch = wire.epoch;
  request.step = wire.step;
  for (const auto& [name, metric] : wire.metrics) {
    auto number = metric_of(metric);
    if (!number) return fail(ErrorCode::invalid, "metric \"" + name + "\" is not a number");
    request.metrics[name] = *number;
  }
  for (const std::string& path : wire.paths)
    ZED_CHECK(check_job_path(directory, path));
  request.paths = std::move(wire.paths);
  return request;
}

Value policy_value(const CheckpointPolicy& policy) {
  if (policy.unit == CheckpointPolicy::Unit::explicit_only) return {};
  Value value = Value::map();
  switch (policy.unit) {
  case CheckpointPolicy::Unit::explicit_only: break;
  case CheckpointPolicy::Unit::epochs: value.set("unit", "epoch"); break;
  case CheckpointPolicy::Unit::steps: value.set("unit", "step"); break;
  case CheckpointPolicy::Unit::time: value.set("unit", "minutes"); break;
  }
  bool timed = policy.unit == CheckpointPolicy::Unit::time;
  value.set("count", timed ? policy.every.value / 60'000 : policy.count);
  return value;
}

Value error_value(const Error& error) {
  // The hint has its own member: whoever shows both must not show it twice.
  const Error without_hint{error.code, error.message, error.frames, ""};
  Value value = Value::map();
  value.set("code", std::string(to_string(error.code)));
  value.set("message", without_hint.describe());
  value.set("hint", error.hint);
  return value;
}

}  // namespace

Status check_job_path(const std::filesystem::path& directory, const std::string& path) {
  std::filesystem::path relative(path);
  for (const auto& part : relative)
    if (relative.is_absolute() || part == "..")
      return fail(ErrorCode::invalid, "path \"" + path + "\" leaves the job's folder",
                  "paths of a checkpoint are relative to ZED_JOB_DIR");
  const std::string below = relative.lexically_normal().string();
  net::Fd folder(::open(directory.c_str(), net::place_only | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return fail(net::system_error(errno, "open the job's folder"));
  if (below == "." || below.empty()) return {};
  auto found = net::open_beneath(folder.get(),
                                 below.ends_with('/') ? below.substr(0, below.size() - 1) : below,
                                 net::place_only);
  if (found) return {};
  if (found.error().code == ErrorCode::not_found)
    return fail(ErrorCode::not_found, "\"" + path + "\" is not in the job's folder",
                "write and close the files before asking for the checkpoint");
  return fail(ErrorCode::invalid, "\"" + path + "\" goes through a symbolic link or a file");
}

struct JobSocket::Core {
  Core(net::Loop& loop_, std::optional<uid_t> owner_, std::function<JobGreeting()> greeting_,
       std::uint64_t& next, JobSocketHandlers handlers_)
      : loop(loop_), owner(owner_), greeting(std::move(greeting_)), next_connection(next),
        handlers(std::move(handlers_)) {}

  void accept(net::Fd socket);
  void heard(std::uint64_t id, const Value& value);
  void greet(std::uint64_t id, const Value& value);
  void refuse(std::uint64_t id, const Value& request, const Error& error);
  void drop(std::uint64_t id, const Error& error);
  void gone(std::uint64_t id);
  void send(std::uint64_t id, Value value);

  net::Loop& loop;
  std::optional<uid_t> owner;
  std::function<JobGreeting()> greeting;
  std::uint64_t& next_connection;
  JobSocketHandlers handlers;
  std::optional<net::Listener> listener;
  std::map<std::uint64_t, std::unique_ptr<LineConnection>> connections;
};

void JobSocket::Core::accept(net::Fd socket) {
  auto peer = net::peer_credentials(socket.get());
  bool known = peer && (peer->uid == ::geteuid() || peer->uid == owner.value_or(::geteuid()));
  if (!known || connections.size() >= most_connections) return;
  std::uint64_t id = ++next_connection;
  LineConnection::Handlers events;
  events.on_value = [this, id](const Value& value) { heard(id, value); };
  events.on_garbage = [this, id](const Error& error) { drop(id, error); };
  events.on_closed = [this, id] { gone(id); };
  connections[id] =
      std::make_unique<LineConnection>(loop, std::move(socket), longest_line, std::move(events));
}

void JobSocket::Core::heard(std::uint64_t id, const Value& value) {
  const Value* version = value.find("v");
  const std::int64_t* number = version != nullptr ? version->as_int() : nullptr;
  if (number == nullptr || *number != job_protocol)
    return drop(id, {ErrorCode::unsupported, "each line is an object with \"v\":1", {}, {}});
  const Value* op = value.find("op");
  const std::string* word = op != nullptr ? op->as_text() : nullptr;
  std::string operation = word != nullptr ? *word : "";
  if (operation == "hello") {
    greet(id, value);
  } else if (operation == "checkpoint") {
    auto request = request_of(value, greeting().directory);
    if (request)
      handlers.checkpoint(id, std::move(*request));
    else
      refuse(id, value, request.error());
  } else if (operation == "stopped") {
    handlers.stopped(id);
  } else {
    refuse(id, value,
           {ErrorCode::unsupported, "unknown \"op\": know hello, checkpoint, stopped", {}, {}});
  }
}

void JobSocket::Core::greet(std::uint64_t id, const Value& value) {
  JobGreeting about = greeting();
  const Value* generation = value.find("generation");
  const std::string* text = generation != nullptr ? generation->as_text() : nullptr;
  if (text == nullptr || *text != about.generation.str()) {
    refuse(id, value,
           {ErrorCode::stale, "this socket belongs to another attempt of the job", {}, {}});
    return;
  }
  Value reply = Value::map();
  reply.set("ok", true);
  reply.set("job", about.job);
  reply.set("attempt", about.attempt);
  reply.set("checkpoint", about.checkpoint.empty() ? Value() : Value(about.checkpoint));
  reply.set("checkpoint_every", policy_value(about.policy));
  send(id, std::move(reply));
  if (connections.count(id) > 0) handlers.connected(id);
}

void JobSocket::Core::refuse(std::uint64_t id, const Value& request, const Error& error) {
  Value reply = Value::map();
  const Value* number = request.find("request");
  if (number != nullptr) reply.set("request", *number);
  reply.set("ok", false);
  reply.set("error", error_value(error));
  send(id, std::move(reply));
}

/// Says why and closes: after garbage nobody knows where the next line begins.
void JobSocket::Core::drop(std::uint64_t id, const Error& error) {
  refuse(id, Value::map(), error);
  auto connection = connections.find(id);
  if (connection != connections.end()) connection->second->finish();
  gone(id);
}

void JobSocket::Core::gone(std::uint64_t id) {
  if (connections.erase(id) > 0) handlers.disconnected(id);
}

void JobSocket::Core::send(std::uint64_t id, Value value) {
  auto connection = connections.find(id);
  if (connection == connections.end()) return;
  value.set("v", job_protocol);
  // A job that does not read loses its answers, and trains on.
  if (!connection->second->send(value)) gone(id);
}

JobSocket::JobSocket(std::shared_ptr<Core> core) : core_(std::move(core)) {}
JobSocket::~JobSocket() = default;

Result<std::unique_ptr<JobSocket>>
JobSocket::open(net::Loop& loop, const std::filesystem::path& path, std::optional<uid_t> owner,
                std::function<JobGreeting()> greeting, std::uint64_t& next_connection,
                JobSocketHandlers handlers) {
  auto core = std::make_shared<Core>(loop, owner, std::move(greeting), next_connection,
                                     std::move(handlers));
  ZED_TRY(auto listener,
          net::Listener::local(loop, path.string(), [weak = std::weak_ptr<Core>(core)](net::Fd fd) {
            if (auto self = weak.lock()) self->accept(std::move(fd));
          }));
  core->listener.emplace(std::move(listener));
  if (owner && ::chown(path.c_str(), *owner, static_cast<gid_t>(-1)) != 0)
    return fail(net::system_error(errno, "give " + path.string() + " to the job's user"));
  return std::unique_ptr<JobSocket>(new JobSocket(std::move(core)));
}

bool JobSocket::has(std::uint64_t connection) const {
  return core_->connections.count(connection) > 0;
}

void JobSocket::ask(std::uint64_t connection, env::Ask ask, Instant deadline,
                    const std::string& reason) {
  Value message = Value::map();
  message.set("ask", std::string(to_string(ask)));
  message.set("deadline_ms", deadline.ms);
  message.set("reason", reason);
  core_->send(connection, std::move(message));
}

void JobSocket::answer(std::uint64_t connection, const env::CheckpointReply& reply) {
  Value message = Value::map();
  message.set("request", to_value(reply.number));
  message.set("ok", reply.result.has_value());
  if (reply.result) {
    message.set("id", reply.result->id.str());
    message.set("snapshot", reply.result->name);
    message.set("seq", to_value(reply.seq));
    message.set("ms", reply.took.value);
  } else {
    message.set("error", error_value(reply.result.error()));
  }
  core_->send(connection, std::move(message));
}

}  // namespace zed::proc
