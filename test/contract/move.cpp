#include <algorithm>

#include "contract/contract.hpp"

namespace zed::contract {

Moved move(env::Store& from, const env::SendRequest& send, env::Store& to,
           const env::ReceiveRequest& receive, std::uint64_t limit) {
  Moved moved;
  auto sender = from.send(send);
  if (!sender) {
    moved.snapshot = fail(sender.error());
    return moved;
  }
  auto receiver = to.receive(receive);
  if (!receiver) {
    moved.snapshot = fail(receiver.error());
    return moved;
  }
  moved.total = static_cast<std::uint64_t>((*sender)->total().value);
  moved.resumed = static_cast<std::uint64_t>((*sender)->resumed_at().value);
  std::vector<std::byte> buffer(10'007);  // no divisor of anything in the format
  while (moved.bytes < limit) {
    std::span<std::byte> room(buffer);
    room = room.first(
        static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), limit - moved.bytes)));
    auto read = (*sender)->read(room);
    if (!read) {
      moved.snapshot = fail(read.error());
      return moved;
    }
    if (*read == 0) {
      moved.snapshot = (*receiver)->finish();
      return moved;
    }
    moved.bytes += *read;
    auto written = (*receiver)->write(room.first(*read));
    if (!written) {
      moved.snapshot = fail(written.error());
      return moved;
    }
  }
  return moved;
}

}  // namespace zed::contract
