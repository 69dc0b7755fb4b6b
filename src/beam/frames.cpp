#include "beam/frames.hpp"

#include <algorithm>

#include "beam/wire.hpp"

namespace zed::beam {
namespace {

constexpr std::uint8_t pass_through = 112, whole = 68, first_fragment = 69, next_fragment = 70;
constexpr std::size_t fragment_size = std::size_t{64} << 10;
/// 131, kind, sequence and fragment numbers, count of atom cache references.
constexpr std::size_t max_header = 2 + 8 + 8 + 1;

tl::unexpected<Error> corrupt(std::string what) {
  return fail(ErrorCode::corrupt, std::move(what));
}

Error too_long(std::size_t size, std::size_t cap) {
  return {ErrorCode::invalid,
          "a message of " + std::to_string(size) + " bytes exceeds the cap of " +
              std::to_string(cap),
          {},
          "bulk data has its own connections"};
}

}  // namespace

FrameReader::FrameReader(FrameLimits frames, TermLimits terms)
    : limits_(frames), term_limits_(terms) {
  term_limits_.max_bytes = std::max(term_limits_.max_bytes, limits_.max_message);
}

Result<std::optional<FrameEvent>> FrameReader::receive(std::span<const std::uint8_t>& bytes) {
  const auto take = [&](std::size_t until) {
    const std::size_t count = std::min(bytes.size(), until - std::min(until, partial_.size()));
    partial_ += string_of(bytes.first(count));
    bytes = bytes.subspan(count);
    return partial_.size() >= until;
  };
  if (!take(4)) return std::optional<FrameEvent>{};
  const auto size = static_cast<std::size_t>(get(bytes_of(partial_), 0, 4));
  if (size > limits_.max_message + max_header) return fail(too_long(size, limits_.max_message));
  if (!take(4 + size)) return std::optional<FrameEvent>{};
  // A swap and not clear(): an idle connection must not keep the largest frame's memory.
  const std::string frame = std::exchange(partial_, {});
  ZED_TRY(FrameEvent event, on_frame(bytes_of(frame).subspan(4)));
  return std::optional<FrameEvent>(std::move(event));
}

Result<FrameEvent> FrameReader::on_frame(std::span<const std::uint8_t> frame) {
  if (frame.empty()) return FrameEvent{Tick{}};
  if (frame[0] == pass_through) return on_pass_through(frame.subspan(1));
  if (frame[0] != etf_version || frame.size() < 3) return corrupt("a frame of unknown kind");
  switch (frame[1]) {
  case whole:
    if (frame[2] != 0) return corrupt("atom cache references, which were not agreed on");
    return on_terms(frame.subspan(3));
  case first_fragment: return on_first_fragment(frame.subspan(2));
  case next_fragment: return on_next_fragment(frame.subspan(2));
  default: return corrupt("a frame of unknown kind " + std::to_string(frame[1]));
  }
}

Result<FrameEvent> FrameReader::on_pass_through(std::span<const std::uint8_t> frame) {
  TermReader reader(frame, term_limits_);
  ZED_TRY(Term control, reader.read_versioned());
  Packet packet{std::move(control), {}};
  if (!reader.at_end()) {
    ZED_TRY(packet.payload, reader.read_versioned());
  }
  if (!reader.at_end()) return corrupt("bytes left over after a message");
  return FrameEvent{std::move(packet)};
}

Result<FrameEvent> FrameReader::on_terms(std::span<const std::uint8_t> terms) {
  if (terms.size() > limits_.max_message) return fail(too_long(terms.size(), limits_.max_message));
  TermReader reader(terms, term_limits_);
  ZED_TRY(Term control, reader.read());
  Packet packet{std::move(control), {}};
  if (!reader.at_end()) {
    ZED_TRY(packet.payload, reader.read());
  }
  if (!reader.at_end()) return corrupt("bytes left over after a message");
  return FrameEvent{std::move(packet)};
}

Status FrameReader::reserve_fragment(std::size_t so_far, std::size_t more) {
  if (so_far + more > limits_.max_message)
    return fail(too_long(so_far + more, limits_.max_message));
  if (fragment_bytes_ + more > limits_.max_fragments)
    return fail(ErrorCode::invalid,
                "incomplete messages exceed " + std::to_string(limits_.max_fragments) + " bytes");
  fragment_bytes_ += more;
  return {};
}

Result<FrameEvent> FrameReader::on_first_fragment(std::span<const std::uint8_t> frame) {
  if (frame.size() < 8 + 8 + 1) return corrupt("a fragment cut short");
  const std::uint64_t sequence = get(frame, 0, 8);
  const std::uint64_t remaining = get(frame, 8, 8);
  if (frame[16] != 0) return corrupt("atom cache references, which were not agreed on");
  const auto data = frame.subspan(17);
  if (remaining == 0) return corrupt("a fragment with number 0");
  if (remaining == 1) return on_terms(data);
  if (fragmented_.count(sequence) != 0) return corrupt("two fragmented messages of one number");
  if (fragmented_.size() >= limits_.max_fragmented_messages)
    return fail(ErrorCode::invalid, "more than " + std::to_string(limits_.max_fragmented_messages) +
                                        " messages are incomplete");
  ZED_CHECK(reserve_fragment(0, data.size()));
  fragmented_.emplace(sequence, Fragmented{remaining - 1, string_of(data)});
  return FrameEvent{Incomplete{}};
}

Result<FrameEvent> FrameReader::on_next_fragment(std::span<const std::uint8_t> frame) {
  if (frame.size() < 8 + 8) return corrupt("a fragment cut short");
  const auto found = fragmented_.find(get(frame, 0, 8));
  const std::uint64_t number = get(frame, 8, 8);
  if (found == fragmented_.end()) return corrupt("a fragment of a message that never began");
  Fragmented& message = found->second;
  if (number != message.next) return corrupt("a fragment out of turn");
  const auto data = frame.subspan(16);
  // An empty fragment would cost nothing and so could come for ever.
  if (data.empty() && number > 1) return corrupt("an empty fragment");
  ZED_CHECK(reserve_fragment(message.bytes.size(), data.size()));
  message.bytes += string_of(data);
  message.next = number - 1;
  if (number > 1) return FrameEvent{Incomplete{}};
  const std::string terms = std::move(message.bytes);
  fragmented_.erase(found);
  fragment_bytes_ -= terms.size();
  return on_terms(bytes_of(terms));
}

void FrameWriter::append(std::string& out, const Term& control,
                         const std::optional<Term>& payload) {
  for (const std::string& frame : frames(control, payload))
    out += frame;
}

std::vector<std::string> FrameWriter::frames(const Term& control,
                                             const std::optional<Term>& payload) {
  std::string terms;
  std::string frame;
  if (!fragments_) {
    put(terms, pass_through, 1);
    terms += encode(control);
    if (payload) terms += encode(*payload);
    put(frame, terms.size(), 4);
    return {frame + terms};
  }
  encode_to(terms, control);
  const std::size_t control_size = terms.size();
  if (payload) encode_to(terms, *payload);
  if (terms.size() > fragment_size) return fragments(control_size, terms);
  frame.reserve(4 + 3 + terms.size());
  put(frame, 3 + terms.size(), 4);
  put(frame, etf_version, 1);
  put(frame, whole, 1);
  put(frame, 0, 1);
  frame += terms;
  return {std::move(frame)};
}

std::vector<std::string> FrameWriter::fragments(std::size_t control_size,
                                                const std::string& terms) {
  // The control tuple has to be whole in the first fragment.
  const std::size_t first = std::max(control_size, fragment_size);
  const std::size_t rest = terms.size() - std::min(first, terms.size());
  std::uint64_t number = 1 + (rest + fragment_size - 1) / fragment_size;
  const std::uint64_t sequence = ++sequence_;
  std::vector<std::string> frames;
  frames.reserve(number);
  std::size_t offset = 0;
  for (std::uint8_t kind = first_fragment; number > 0; --number, kind = next_fragment) {
    const std::size_t size =
        std::min(terms.size() - offset, kind == first_fragment ? first : fragment_size);
    std::string frame;
    put(frame, 2 + 8 + 8 + (kind == first_fragment ? 1 : 0) + size, 4);
    put(frame, etf_version, 1);
    put(frame, kind, 1);
    put(frame, sequence, 8);
    put(frame, number, 8);
    if (kind == first_fragment) put(frame, 0, 1);
    frame.append(terms, offset, size);
    offset += size;
    frames.push_back(std::move(frame));
  }
  return frames;
}

}  // namespace zed::beam
