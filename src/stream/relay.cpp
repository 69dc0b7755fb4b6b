#include "stream/relay.hpp"

#include <chrono>

#include "base/describe.hpp"
#include "stream/throttle.hpp"

namespace zed::stream {
namespace {

Instant monotonic_now() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::milliseconds>(now).count()};
}

/// What the receiver asks for.
struct ResumeRequest {
  std::string resume;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("resume", self.resume);
  }
};

/// What the sender announces.
struct StreamHeader {
  CheckpointId snapshot;
  std::string name;
  Properties properties;
  Bytes total;
  Bytes resumed_at;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("snapshot", self.snapshot);
    visit("name", self.name);
    visit("properties", self.properties);
    visit("total", self.total);
    visit("resumed_at", self.resumed_at);
  }
};

Result<Snapshot> find_snapshot(env::Store& store, const Ticket& ticket) {
  ZED_TRY(Dataset dataset, store.inspect(ticket.dataset));
  if (dataset.uuid != ticket.uuid)
    return fail(ErrorCode::stale, ticket.dataset.str() + " is another dataset now");
  const Snapshot* snapshot = dataset.find(ticket.snapshot);
  if (snapshot == nullptr)
    return fail(ErrorCode::not_found,
                ticket.dataset.str() + "@" + ticket.snapshot_name + " is not here any more");
  return *snapshot;
}

Result<Outcome> send_all(env::Store& store, const Ticket& ticket, FrameSocket& socket,
                         const ReportProgress& report, const Pause& pause) {
  ZED_TRY(Snapshot snapshot, find_snapshot(store, ticket));
  ZED_TRY(Value asked, socket.receive_json());
  ZED_TRY(ResumeRequest request, from_value<ResumeRequest>(asked));
  env::SendRequest send{ticket.dataset, ticket.snapshot, ticket.base, ticket.kind, request.resume};
  ZED_TRY(auto source, store.send(send));
  StreamHeader header{snapshot.id, snapshot.name, snapshot.properties, source->total(),
                      source->resumed_at()};
  ZED_CHECK(socket.send_json(to_value(header)));
  Throttle throttle(ticket.max_rate, monotonic_now());
  std::vector<std::byte> buffer(ticket.max_rate ? std::size_t{64} << 10 : longest_data_frame);
  Bytes moved;
  for (;;) {
    ZED_TRY(std::size_t n, source->read(buffer));
    if (n == 0) break;
    ZED_CHECK(socket.check_for_error());
    ZED_CHECK(socket.send(FrameKind::data, std::span(buffer).first(n)));
    moved += Bytes{static_cast<std::int64_t>(n)};
    report(header.resumed_at + moved, header.total);
    Millis wait = throttle.take({static_cast<std::int64_t>(n)}, monotonic_now());
    if (wait.value > 0 && !pause(wait))
      return fail(ErrorCode::cancelled, "the transfer was cancelled");
  }
  ZED_CHECK(socket.send(FrameKind::end, {}));
  // Not done before the other end says so: only then does the snapshot count there.
  ZED_CHECK(socket.receive_json());
  return Outcome{moved, std::nullopt};
}

Result<Outcome> receive_all(env::Store& store, const TransferRequest& request, FrameSocket& socket,
                            const ReportProgress& report) {
  const Ticket& ticket = request.ticket;
  ZED_TRY(std::string token, store.resume_token(ticket.target_dataset, ticket.snapshot));
  ZED_CHECK(socket.send_json(to_value(ResumeRequest{token})));
  ZED_TRY(Value announced, socket.receive_json());
  ZED_TRY(StreamHeader header, from_value<StreamHeader>(announced));
  if (header.snapshot != ticket.snapshot)
    return fail(ErrorCode::refused, "the sender offers another snapshot than the ticket names");
  env::ReceiveRequest receive{ticket.target_dataset,   ticket.base, header.name, header.properties,
                              request.dataset_changes, ticket.kind};
  ZED_TRY(auto sink, store.receive(receive));
  Bytes moved;
  Frame frame;
  for (;;) {
    ZED_CHECK(socket.receive(frame));
    if (frame.kind == FrameKind::end) break;
    if (frame.kind != FrameKind::data)
      return fail(ErrorCode::corrupt, "expected data from the sender");
    ZED_CHECK(sink->write(frame.payload));
    moved += Bytes{static_cast<std::int64_t>(frame.payload.size())};
    report(header.resumed_at + moved, header.total);
  }
  ZED_TRY(Snapshot snapshot, sink->finish());
  Value stored = Value::map();
  stored.set("stored", true);
  // The snapshot is here and verified; that the sender does not hear of it changes nothing.
  (void)socket.send_json(stored);
  return Outcome{moved, std::move(snapshot)};
}

Result<Outcome> with_farewell(Result<Outcome> result, FrameSocket& socket, std::string frame) {
  if (result) return result;
  socket.send_error(result.error());
  return fail(std::move(result).error().with(std::move(frame)));
}

}  // namespace

Result<Outcome> send_snapshot(env::Store& store, const Ticket& ticket, FrameSocket& socket,
                              const ReportProgress& report, const Pause& pause) {
  return with_farewell(send_all(store, ticket, socket, report, pause), socket,
                       "send " + ticket.dataset.str() + "@" + ticket.snapshot_name + " to " +
                           ticket.target.str());
}

Result<Outcome> receive_snapshot(env::Store& store, const TransferRequest& request,
                                 FrameSocket& socket, const ReportProgress& report) {
  const Ticket& ticket = request.ticket;
  return with_farewell(receive_all(store, request, socket, report), socket,
                       "receive " + ticket.target_dataset.str() + "@" + ticket.snapshot_name +
                           " from " + ticket.source.str());
}

}  // namespace zed::stream
