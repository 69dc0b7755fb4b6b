#include "store/files/receiver.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"

namespace zed::store {
namespace {

/// A position is made durable each time an eighth of what is there has arrived, between these two:
/// so a small snapshot over a slow link does not begin anew after a crash, and a large one over a
/// fast link is not held up by syncs.
constexpr std::uint64_t least_unkept = std::uint64_t{1} << 20;
constexpr std::uint64_t most_unkept = std::uint64_t{64} << 20;

/// The plan as staged: preamble (offset 0), then the encoded delta.
struct StagedPlan {
  Preamble preamble;
  ByteVector delta;
};

Result<StagedPlan> decode_staged(std::span<const std::byte> bytes) {
  if (bytes.size() < preamble_size)
    return fail(ErrorCode::corrupt, "the plan of an interrupted receive is cut");
  ZED_TRY(auto preamble, decode_preamble(bytes.first(preamble_size)));
  auto delta = bytes.subspan(preamble_size);
  if (delta.size() != preamble.delta_size)
    return fail(ErrorCode::corrupt, "the plan of an interrupted receive is cut");
  return StagedPlan{preamble, ByteVector(delta.begin(), delta.end())};
}

BodyLayout layout_of(const Delta& delta, std::uint64_t delta_size,
                     const std::vector<std::size_t>& files) {
  std::vector<std::uint64_t> sizes;
  sizes.reserve(files.size());
  for (std::size_t index : files)
    sizes.push_back(delta.put[index].size);
  return BodyLayout(delta_size, std::move(sizes));
}

tl::unexpected<Error> unexpected_frame(std::string_view wanted) {
  return fail(ErrorCode::corrupt,
              "the stream has another frame where " + std::string(wanted) + " belongs");
}

/// An interruption right after the plan was stored left no offset: the content begins.
std::uint64_t offset_kept(const Staging::Found& found, std::uint64_t delta_size) {
  return found.kept != 0 ? found.kept : BodyLayout(delta_size, {}).offset_of({});
}

}  // namespace

class Receiver::Impl {
public:
  Impl(Expected expected, Staging& staging) : expected_(std::move(expected)), staging_(staging) {
    want_ = preamble_size;
  }

  /// Collects `want_` bytes at a time and hands them to the present phase.
  Status write(std::span<const std::byte> bytes) {
    if (error_) return fail(*error_);
    while (!bytes.empty()) {
      std::size_t size = std::min(bytes.size(), want_ - pending_.size());
      pending_.insert(pending_.end(), bytes.begin(),
                      bytes.begin() + static_cast<std::ptrdiff_t>(size));
      bytes = bytes.subspan(size);
      if (pending_.size() < want_) break;
      auto taken = take();
      pending_.clear();
      if (!taken) {
        error_ = taken.error();
        return taken;
      }
    }
    return {};
  }

  Result<Arrival> finish() {
    if (error_) return fail(*error_);
    if (phase_ != Phase::over)
      return fail(ErrorCode::corrupt, "the stream was cut before its end",
                  "send again with the resume token: only the missing bytes travel");
    return std::move(arrival_);
  }

  Status keep() {
    if (phase_ == Phase::content || phase_ == Phase::over)
      return staging_.keep_offset(layout_->offset_of(verified_));
    return {};
  }

private:
  enum class Phase { preamble, delta, content, over };

  Status take() {
    if (phase_ == Phase::preamble) return take_preamble();
    if (phase_ == Phase::over) return fail(ErrorCode::corrupt, "the stream goes on after its end");
    if (!frame_) {
      ZED_TRY(auto header, decode_frame_header(pending_));
      ZED_CHECK(expect(header));
      frame_ = header;
      want_ = header.size;
      return {};
    }
    frame_.reset();
    want_ = frame_header_size;
    if (phase_ == Phase::delta) return take_delta();
    if (next_.file < files_.size()) return take_content();
    return take_end();
  }

  /// Each frame's kind and size are known beforehand, so nothing else is ever buffered.
  Status expect(const FrameHeader& header) const {
    if (phase_ == Phase::delta) {
      std::uint64_t size =
          std::min<std::uint64_t>(frame_limit, preamble_.delta_size - delta_.size());
      if (header.kind != FrameKind::delta || header.size != size)
        return unexpected_frame("the list of changes");
    } else if (next_.file < files_.size()) {
      const Entry& file = arrival_.delta.put[files_[next_.file]];
      std::uint64_t size = std::min<std::uint64_t>(frame_limit, file.size - next_.done);
      if (header.kind != FrameKind::content || header.size != size)
        return unexpected_frame("the content of \"" + percent_encode(file.path) + "\"");
    } else if (header.kind != FrameKind::end || header.size != sizeof(Digest)) {
      return unexpected_frame("the end");
    }
    return {};
  }

  Status take_preamble() {
    ZED_TRY(preamble_, decode_preamble(pending_));
    if (preamble_.snapshot != expected_.snapshot || preamble_.base != expected_.base)
      return fail(ErrorCode::stale, "the stream is of snapshot " + preamble_.snapshot.str() +
                                        " on base " +
                                        (preamble_.base ? preamble_.base->str() : "none") +
                                        ", but another was expected");
    // An encoded delta holds at least its count.
    if (preamble_.delta_size < sizeof(std::uint32_t))
      return fail(ErrorCode::corrupt, "the stream announces no list of changes");
    want_ = frame_header_size;
    if (preamble_.offset != 0) return resume();
    phase_ = Phase::delta;
    return staging_.clear();
  }

  /// Takes up what an earlier receive left, and hashes the begun file's bytes again.
  Status resume() {
    auto refuse = [] {
      return fail(ErrorCode::stale, "the stream goes on from where this receive is not",
                  "ask the receiver for its resume token, or send from the start");
    };
    ZED_TRY(auto found, staging_.find());
    if (!found) return refuse();
    ZED_TRY(auto plan, decode_staged(found->plan));
    if (plan.preamble.snapshot != preamble_.snapshot || plan.preamble.base != preamble_.base ||
        plan.preamble.manifest != preamble_.manifest ||
        plan.preamble.delta_size != preamble_.delta_size)
      return refuse();
    ZED_CHECK(use_delta(plan.delta));
    auto position = layout_->position_of(preamble_.offset);
    if (!position || preamble_.offset > offset_kept(*found, preamble_.delta_size)) return refuse();
    next_ = *position;
    verified_ = next_;
    return rehash();
  }

  Status rehash() {
    ByteVector block(frame_limit);
    for (std::uint64_t done = 0; done < next_.done; done += frame_limit) {
      std::span<std::byte> part(block);
      part = part.first(
          static_cast<std::size_t>(std::min<std::uint64_t>(frame_limit, next_.done - done)));
      ZED_CHECK(staging_.read(next_.file, done, part));
      hash_.update(part);
    }
    return {};
  }

  Status take_delta() {
    delta_.insert(delta_.end(), pending_.begin(), pending_.end());
    if (delta_.size() < preamble_.delta_size) return {};
    ZED_CHECK(use_delta(delta_));
    ByteVector plan = encode(preamble_);
    plan.insert(plan.end(), delta_.begin(), delta_.end());
    ZED_CHECK(staging_.keep_plan(plan));
    delta_.clear();
    delta_.shrink_to_fit();
    skip_empty();
    return {};
  }

  /// Decodes and checks the list of changes against the base and the announced hash.
  Status use_delta(std::span<const std::byte> bytes) {
    ZED_TRY(arrival_.delta, decode_delta(bytes));
    ZED_TRY(arrival_.manifest, apply(expected_.base_manifest, arrival_.delta));
    if (arrival_.manifest.digest() != preamble_.manifest)
      return fail(ErrorCode::corrupt,
                  "the list of changes does not lead from this base to the announced snapshot");
    files_ = needing_content(expected_.base_manifest, arrival_.delta);
    layout_.emplace(layout_of(arrival_.delta, preamble_.delta_size, files_));
    phase_ = Phase::content;
    return find_places();
  }

  /// Says for each new file where its content comes from; equal hashes must mean equal sizes.
  Status find_places() {
    struct Known {
      ContentPlace place;
      std::uint64_t size;
    };
    std::map<Digest, Known> known;
    for (const Entry& entry : expected_.base_manifest.entries())
      if (entry.kind == EntryKind::file)
        known.try_emplace(entry.digest,
                          Known{{ContentPlace::From::base, 0, entry.path}, entry.size});
    auto& puts = arrival_.delta.put;
    const Digest of_nothing = sha256({});
    arrival_.places.assign(puts.size(), std::nullopt);
    for (std::size_t i = 0; i < files_.size(); ++i)
      arrival_.places[files_[i]] = ContentPlace{ContentPlace::From::staged, i, {}};
    for (std::size_t i = 0; i < puts.size(); ++i) {
      if (puts[i].kind != EntryKind::file) continue;
      if (puts[i].size == 0 && puts[i].digest != of_nothing)
        return fail(ErrorCode::corrupt,
                    "\"" + percent_encode(puts[i].path) + "\" is empty but has another hash");
      if (arrival_.places[i]) {
        known[puts[i].digest] = {{ContentPlace::From::earlier, 0, puts[i].path}, puts[i].size};
        continue;
      }
      const Known& source = known.at(puts[i].digest);
      if (source.size != puts[i].size)
        return fail(ErrorCode::corrupt, "\"" + percent_encode(puts[i].path) +
                                            "\" has the hash of a file of another size");
      arrival_.places[i] = source.place;
    }
    return {};
  }

  Status take_content() {
    ZED_CHECK(staging_.append(next_.file, next_.done, pending_));
    hash_.update(pending_);
    next_.done += pending_.size();
    unkept_ += pending_.size();
    const Entry& file = arrival_.delta.put[files_[next_.file]];
    if (next_.done == file.size) ZED_CHECK(end_file(file));
    skip_empty();
    const std::uint64_t offset = layout_->offset_of(verified_);
    if (unkept_ < std::clamp(offset / 8, least_unkept, most_unkept)) return {};
    unkept_ = 0;
    return staging_.keep_offset_soon(offset);
  }

  Status end_file(const Entry& file) {
    Digest digest = hash_.finish();
    hash_ = Sha256();
    if (digest != file.digest) {
      // What was kept cannot be told apart from what is wrong: begin anew.
      (void)staging_.clear();
      phase_ = Phase::preamble;
      return fail(ErrorCode::corrupt,
                  "the content of \"" + percent_encode(file.path) + "\" does not match its hash",
                  "send again from the start");
    }
    next_ = {next_.file + 1, 0};
    return {};
  }

  /// Empty files have no frames; find_places() has judged their hashes.
  void skip_empty() {
    next_ = layout_->normal(next_);
    verified_ = next_;
  }

  Status take_end() {
    if (!std::equal(pending_.begin(), pending_.end(),
                    std::as_bytes(std::span(preamble_.manifest)).begin()))
      return fail(ErrorCode::corrupt, "the stream ends with the hash of another snapshot");
    phase_ = Phase::over;
    want_ = 1;
    return staging_.keep_offset(layout_->offset_of(verified_));
  }

  Expected expected_;
  Staging& staging_;
  Phase phase_ = Phase::preamble;
  std::optional<Error> error_;
  ByteVector pending_;
  std::size_t want_ = 0;
  std::optional<FrameHeader> frame_;
  Preamble preamble_;
  ByteVector delta_;
  Arrival arrival_;
  std::vector<std::size_t> files_;  ///< indices into delta.put of the files that travel
  std::optional<BodyLayout> layout_;
  Position next_;
  Position verified_;  ///< up to here everything was judged and appended
  Sha256 hash_;
  std::uint64_t unkept_ = 0;
};

Receiver::Receiver(Expected expected, Staging& staging)
    : impl_(std::make_unique<Impl>(std::move(expected), staging)) {}
Receiver::~Receiver() = default;

Status Receiver::write(std::span<const std::byte> bytes) {
  return impl_->write(bytes);
}
Result<Arrival> Receiver::finish() {
  return impl_->finish();
}
Status Receiver::keep() {
  return impl_->keep();
}

Result<std::string> Receiver::token(Staging& staging) {
  ZED_TRY(auto found, staging.find());
  if (!found) return std::string();
  ZED_TRY(auto plan, decode_staged(found->plan));
  ResumeToken token{plan.preamble.snapshot, plan.preamble.base, plan.preamble.manifest,
                    offset_kept(*found, plan.preamble.delta_size)};
  return token.str();
}

}  // namespace zed::store
