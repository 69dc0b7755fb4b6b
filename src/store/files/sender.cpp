#include "store/files/sender.hpp"

#include <algorithm>
#include <cstring>

namespace zed::store {
namespace {

/// Makes the stream one frame at a time; holds at most one frame.
class Sender final : public env::SendStream {
public:
  Sender(const SendPlan& plan, std::unique_ptr<ContentSource> source, const Delta& delta,
         std::vector<Entry> files, BodyLayout layout)
      : source_(std::move(source)), files_(std::move(files)), layout_(std::move(layout)),
        delta_(encode(delta)) {
    preamble_ = {plan.snapshot, plan.base, plan.manifest.digest(), delta_.size(), 0};
  }

  Status resume(const std::string& text) {
    ZED_TRY(auto token, ResumeToken::parse(text));
    if (token.snapshot != preamble_.snapshot || token.base != preamble_.base ||
        token.manifest != preamble_.manifest)
      return fail(ErrorCode::stale,
                  "the interrupted receive is of other contents than this node has",
                  "abort the receive and send from the start");
    auto position = layout_.position_of(token.offset);
    if (!position) return fail(ErrorCode::invalid, "the resume token points into a frame");
    preamble_.offset = token.offset;
    next_ = *position;
    delta_sent_ = delta_.size();
    return {};
  }

  Result<std::size_t> read(std::span<std::byte> buffer) override {
    if (taken_ == frame_.size()) ZED_CHECK(fill());
    std::size_t size = std::min(buffer.size(), frame_.size() - taken_);
    if (size != 0) std::memcpy(buffer.data(), frame_.data() + taken_, size);
    taken_ += size;
    return size;
  }
  Bytes total() const override {
    return {static_cast<std::int64_t>(preamble_size + layout_.total())};
  }
  Bytes resumed_at() const override { return {static_cast<std::int64_t>(preamble_.offset)}; }

private:
  Status fill() {
    frame_.clear();
    taken_ = 0;
    if (!begun_) {
      begun_ = true;
      frame_ = encode(preamble_);
      return {};
    }
    if (delta_sent_ < delta_.size()) {
      std::size_t size = std::min(frame_limit, delta_.size() - delta_sent_);
      put_header(FrameKind::delta, size);
      auto begin = delta_.begin() + static_cast<std::ptrdiff_t>(delta_sent_);
      frame_.insert(frame_.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
      delta_sent_ += size;
      return {};
    }
    next_ = layout_.normal(next_);
    if (next_.file < files_.size()) return content();
    if (!ended_) {
      ended_ = true;
      put_header(FrameKind::end, sizeof(Digest));
      ByteWriter(frame_).raw(preamble_.manifest);
    }
    return {};
  }

  Status content() {
    const Entry& file = files_[next_.file];
    std::size_t size =
        static_cast<std::size_t>(std::min<std::uint64_t>(frame_limit, file.size - next_.done));
    put_header(FrameKind::content, size);
    frame_.resize(frame_header_size + size);
    auto read = source_->read(file, next_.done, std::span(frame_).subspan(frame_header_size));
    if (!read) {
      frame_.clear();
      return read;
    }
    next_.done += size;
    return {};
  }

  void put_header(FrameKind kind, std::size_t size) {
    auto header = frame_header(kind, size);
    frame_.insert(frame_.end(), header.begin(), header.end());
  }

  std::unique_ptr<ContentSource> source_;
  std::vector<Entry> files_;
  BodyLayout layout_;
  ByteVector delta_;
  Preamble preamble_;
  Position next_;
  std::size_t delta_sent_ = 0;
  bool begun_ = false;
  bool ended_ = false;
  ByteVector frame_;
  std::size_t taken_ = 0;
};

}  // namespace

Result<std::unique_ptr<env::SendStream>> make_sender(SendPlan plan,
                                                     std::unique_ptr<ContentSource> source) {
  Delta delta = difference(plan.base_manifest, plan.manifest);
  std::vector<Entry> files;
  std::vector<std::uint64_t> sizes;
  for (std::size_t index : needing_content(plan.base_manifest, delta)) {
    files.push_back(delta.put[index]);
    sizes.push_back(delta.put[index].size);
  }
  BodyLayout layout(encode(delta).size(), std::move(sizes));
  auto sender =
      std::make_unique<Sender>(plan, std::move(source), delta, std::move(files), std::move(layout));
  if (!plan.resume_token.empty()) ZED_CHECK(sender->resume(plan.resume_token));
  return sender;
}

}  // namespace zed::store
