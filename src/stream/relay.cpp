#include "stream/relay.hpp"

#include <thread>

#include "base/clock.hpp"
#include "base/describe.hpp"
#include "core/travelling.hpp"
#include "stream/pipeline.hpp"
#include "stream/throttle.hpp"

namespace zed::stream {
namespace {

/// What the receiver asks for.
struct ResumeRequest {
  std::string resume;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("resume", self.resume);
  }
};

Result<Snapshot> find_snapshot(env::Store& store, const Ticket& ticket) {
  ZED_TRY(Dataset dataset, store.inspect(ticket.dataset));
  if (dataset.uuid != ticket.uuid)
    return fail(ErrorCode::stale, ticket.dataset.str() + " is another dataset now");
  const Snapshot* found = dataset.find(ticket.snapshot);
  if (found == nullptr)
    return fail(ErrorCode::not_found,
                ticket.dataset.str() + "@" + ticket.snapshot_name + " is not here any more");
  Snapshot snapshot = *found;
  snapshot.properties = travelling_properties(snapshot);
  return snapshot;
}

/// Reads a snapshot ahead of the socket, in a thread of its own. Blocks are full but for the last.
class ReadAhead {
public:
  ReadAhead(env::SendStream& source, std::size_t block_size)
      : thread_([this, &source, block_size] { read(source, block_size); }) {}
  ~ReadAhead() {
    pipe_.close();
    if (thread_.joinable()) thread_.join();
  }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// The next block, whose bytes are valid until the next call; empty at the end.
  Result<std::span<const std::byte>> next() {
    pipe_.give_back(std::exchange(block_, {}));
    auto taken = pipe_.take();
    if (taken) {
      block_ = std::move(*taken);
      return std::span<const std::byte>(block_);
    }
    if (thread_.joinable()) thread_.join();  // it has ended the pipe: what it says last is settled
    ZED_CHECK(result_);
    return std::span<const std::byte>();
  }

private:
  void read(env::SendStream& source, std::size_t block_size) {
    for (bool more = true; more;) {
      Block block = pipe_.spare();
      block.resize(block_size);
      auto filled = fill(source, block);
      if (!filled) result_ = fail(filled.error());
      more = filled && *filled == block_size;
      block.resize(filled ? *filled : 0);
      if (!block.empty() && !pipe_.put(std::move(block))) return;
    }
    pipe_.end();
  }
  static Result<std::size_t> fill(env::SendStream& source, std::span<std::byte> block) {
    std::size_t filled = 0;
    while (filled < block.size()) {
      ZED_TRY(std::size_t n, source.read(block.subspan(filled)));
      if (n == 0) break;
      filled += n;
    }
    return filled;
  }

  BlockPipe pipe_;
  Block block_;
  Status result_;
  std::thread thread_;  // last: it uses the others
};

/// Writes what the socket brings, in a thread of its own.
class WriteBehind {
public:
  explicit WriteBehind(env::ReceiveStream& sink) : thread_([this, &sink] { write(sink); }) {}
  ~WriteBehind() {
    pipe_.close();
    if (thread_.joinable()) thread_.join();
  }
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  /// Takes the bytes and leaves another buffer. An error may be of an earlier block.
  Status put(Block& bytes) {
    if (!pipe_.put(std::exchange(bytes, {}))) return finish();
    bytes = pipe_.spare();
    return {};
  }
  /// Until everything is written.
  Status finish() {
    pipe_.end();
    if (thread_.joinable()) thread_.join();
    return result_;
  }

private:
  void write(env::ReceiveStream& sink) {
    while (auto block = pipe_.take()) {
      result_ = sink.write(*block);
      if (!result_) return pipe_.close();
      pipe_.give_back(std::move(*block));
    }
  }

  BlockPipe pipe_;
  Status result_;
  std::thread thread_;  // last: it uses the others
};

/// Where a sender's bytes come from: the next block, empty at the end.
using NextBlock = std::function<Result<std::span<const std::byte>>()>;

Result<std::string> asked_token(FrameSocket& socket) {
  ZED_TRY(Value asked, socket.receive_json());
  ZED_TRY(ResumeRequest request, from_value<ResumeRequest>(asked));
  return request.resume;
}

/// Everything after the header, until the other end has stored it.
Result<Outcome> send_blocks(const NextBlock& next, const Ticket& ticket, const StreamHeader& header,
                            FrameSocket& socket, const ReportProgress& report, const Pause& pause) {
  Throttle throttle(ticket.max_rate, monotonic_now());
  Bytes moved;
  for (;;) {
    ZED_TRY(auto block, next());
    if (block.empty()) break;
    ZED_CHECK(socket.check_for_error());
    ZED_CHECK(socket.send(FrameKind::data, block));
    const Bytes size{static_cast<std::int64_t>(block.size())};
    moved += size;
    report(header.resumed_at + moved, header.total);
    Millis wait = throttle.take(size, monotonic_now());
    if (wait.value > 0 && !pause(wait))
      return fail(ErrorCode::cancelled, "the transfer was cancelled");
  }
  ZED_CHECK(socket.send(FrameKind::end, {}));
  // Not done before the other end says so: only then does the snapshot count there.
  ZED_CHECK(socket.receive_json());
  return Outcome{moved, std::nullopt};
}

Result<Outcome> send_all(env::Store& store, const Ticket& ticket, FrameSocket& socket,
                         const ReportProgress& report, const Pause& pause) {
  ZED_TRY(Snapshot snapshot, find_snapshot(store, ticket));
  ZED_TRY(std::string token, asked_token(socket));
  env::SendRequest send{ticket.dataset, ticket.snapshot, ticket.base, ticket.kind, token};
  ZED_TRY(auto source, store.send(send));
  StreamHeader header{snapshot.id,     snapshot.name,        snapshot.properties,
                      source->total(), source->resumed_at(), 0};
  ZED_CHECK(socket.send_json(to_value(header)));
  ReadAhead blocks(*source, ticket.max_rate ? std::size_t{64} << 10 : longest_data_frame);
  return send_blocks([&blocks] { return blocks.next(); }, ticket, header, socket, report, pause);
}

Result<Outcome> pass_all(Passing& passing, const Ticket& ticket, FrameSocket& socket,
                         const ReportProgress& report, const Pause& pause) {
  ZED_TRY(std::string token, asked_token(socket));
  if (!token.empty())
    return fail(ErrorCode::conflict,
                ticket.target.str() + " has a part already, and what is passed on begins anew",
                "it goes on from its part by itself");
  ZED_TRY(StreamHeader header, passing.join([&socket] { socket.stop(); }));
  if (header.snapshot != ticket.snapshot)
    return fail(ErrorCode::conflict, "another snapshot is passed on than the ticket names");
  ++header.hop;
  ZED_CHECK(socket.send_json(to_value(header)));
  return send_blocks([&passing] { return passing.next(); }, ticket, header, socket, report, pause);
}

/// The next hop begins where this one does, or not at all: a stream cannot be joined in its middle.
void refuse_part(Passing*& passing) {
  if (passing == nullptr) return;
  passing->decline({ErrorCode::conflict,
                    "the node that passes it on has a part already, and what follows is no whole "
                    "stream",
                    {},
                    {}});
  passing = nullptr;
}

Result<Outcome> receive_all(env::Store& store, const TransferRequest& request, FrameSocket& socket,
                            const ReportProgress& report, Passing* passing) {
  const Ticket& ticket = request.ticket;
  ZED_TRY(std::string token, store.resume_token(ticket.target_dataset, ticket.snapshot));
  if (!token.empty()) refuse_part(passing);
  ZED_CHECK(socket.send_json(to_value(ResumeRequest{token})));
  ZED_TRY(Value announced, socket.receive_json());
  ZED_TRY(StreamHeader header, from_value<StreamHeader>(announced));
  if (header.snapshot != ticket.snapshot)
    return fail(ErrorCode::refused, "the sender offers another snapshot than the ticket names");
  env::ReceiveRequest receive{ticket.target_dataset,
                              ticket.base,
                              header.name,
                              header.properties,
                              request.dataset_changes,
                              ticket.kind,
                              header.total - header.resumed_at};
  ZED_TRY(auto sink, store.receive(receive));
  // Meanwhile the sender fills what lies between, and waits.
  if (passing != nullptr && passing->wait_for_taker())
    passing->announce(header);
  else
    passing = nullptr;
  WriteBehind writer(*sink);
  Bytes moved;
  Frame frame;
  for (;;) {
    ZED_CHECK(socket.receive(frame));
    if (frame.kind == FrameKind::end) break;
    if (frame.kind != FrameKind::data)
      return fail(ErrorCode::corrupt, "expected data from the sender");
    moved += Bytes{static_cast<std::int64_t>(frame.payload.size())};
    if (passing != nullptr) passing->put(frame.payload);
    ZED_CHECK(writer.put(frame.payload));
    report(header.resumed_at + moved, header.total);
  }
  // The next node verifies for itself; it need not wait until this one has.
  if (passing != nullptr) passing->end();
  ZED_CHECK(writer.finish());
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

Result<Outcome> pass_on(Passing& passing, const Ticket& ticket, FrameSocket& socket,
                        const ReportProgress& report, const Pause& pause) {
  auto result = pass_all(passing, ticket, socket, report, pause);
  passing.leave();
  // The connection that was cut says only that it was.
  if (!result)
    if (auto why = passing.spliced()) result = fail(*why);
  return with_farewell(std::move(result), socket,
                       "pass " + ticket.dataset.str() + "@" + ticket.snapshot_name + " on to " +
                           ticket.target.str());
}

Result<Outcome> receive_snapshot(env::Store& store, const TransferRequest& request,
                                 FrameSocket& socket, const ReportProgress& report,
                                 Passing* passing) {
  const Ticket& ticket = request.ticket;
  auto result = receive_all(store, request, socket, report, passing);
  if (!result && passing != nullptr) passing->fail(result.error());
  return with_farewell(std::move(result), socket,
                       "receive " + ticket.target_dataset.str() + "@" + ticket.snapshot_name +
                           " from " + ticket.source.str());
}

}  // namespace zed::stream
