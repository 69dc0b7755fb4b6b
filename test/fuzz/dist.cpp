// A peer that says anything at any time, before and after the handshake. What we answer must always
// be well-formed. The first byte chooses where the conversation stands; the second how bytes are
// cut.
#include <algorithm>
#include <cstdlib>

#include "beam/session.hpp"
#include "beam/wire.hpp"

namespace {

using namespace zed;
using namespace zed::beam;

SessionOptions options_for(const char* name) {
  SessionOptions options;
  options.self = {name, 77, "secret"};
  options.random = [next = std::uint32_t{1}]() mutable { return next++; };
  options.next_process = [next = std::uint64_t{1}]() mutable { return ++next; };
  options.allows_rpc = [](std::string_view module, std::string_view, std::size_t) {
    return module == "m";
  };
  // Small, so that short inputs reach them.
  options.limits.max_output = 4096;
  options.limits.max_monitors = 4;
  options.limits.max_spawned = 4;
  options.limits.frames = {4096, 8192, 4};
  options.limits.terms = {4096, 1024, 16};
  return options;
}

/// Plays the owner: lets everybody in, answers everything.
void perform(Session& session, const std::vector<SessionEvent>& events) {
  for (const SessionEvent& event : events) {
    if (std::holds_alternative<PeerNamed>(event)) perform(session, session.answer(Verdict::ok));
    if (auto* call = std::get_if<Call>(&event)) (void)session.reply(*call, call->request);
    if (auto* rpc = std::get_if<RpcCall>(&event)) {
      if (rpc->arguments.size() == 1) (void)session.return_value(rpc->id, rpc->arguments[0]);
      if (rpc->arguments.size() == 2) (void)session.raise(rpc->id, rpc->arguments[0]);
    }
  }
}

void bring_up(Session& ours) {
  Session theirs = Session::dial(options_for("peer@h"), "zed@h", {});
  for (int i = 0; i < 4; ++i) {
    perform(ours, ours.receive(bytes_of(theirs.take_output({})), {}));
    (void)theirs.receive(bytes_of(ours.take_output({})), {});
  }
  if (!ours.is_up()) std::abort();
}

void check_output(Session& session, FrameReader& reader, Instant now) {
  const std::string output = session.take_output(now);
  if (!session.is_up()) return;
  auto bytes = bytes_of(output);
  while (!bytes.empty())
    if (!reader.receive(bytes)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const int stage = data[0] % 3;
  const std::size_t piece = data[1] == 0 ? size : data[1];
  std::span<const std::uint8_t> bytes(data + 2, size - 2);
  Session session = stage == 1 ? Session::dial(options_for("zed@h"), "peer@h", {})
                               : Session::accept(options_for("zed@h"), {});
  if (stage == 2) bring_up(session);
  const bool was_up = session.is_up();
  FrameReader reader;
  Instant now;
  while (!bytes.empty() && !session.is_over()) {
    const auto some = bytes.first(std::min(piece, bytes.size()));
    bytes = bytes.subspan(some.size());
    now = now + Millis{1000};
    perform(session, session.receive(some, now));
    perform(session, session.on_time(now));
    if (was_up) check_output(session, reader, now);
  }
  session.say_goodbye(atom("shutdown"));
  if (was_up) check_output(session, reader, now);
  return 0;
}
