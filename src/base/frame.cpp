#include "base/frame.hpp"

#include <array>
#include <cstdio>

#include <boost/crc.hpp>

#include "base/number.hpp"

namespace zed {
namespace {

constexpr std::size_t head_size = frame_size - 1;

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

std::string framed(std::string_view record) {
  std::array<char, head_size + 1> head{};
  std::snprintf(head.data(), head.size(), "%08zx %08x ", record.size(), crc32c(record));
  std::string text = head.data();
  text += record;
  text += '\n';
  return text;
}

std::optional<std::string_view> record_at(std::string_view text, std::size_t longest) {
  if (text.size() < frame_size || text[8] != ' ' || text[17] != ' ') return std::nullopt;
  auto length = parse_number<std::uint32_t>(text.substr(0, 8), 16);
  auto crc = parse_number<std::uint32_t>(text.substr(9, 8), 16);
  if (!length || !crc || *length > longest) return std::nullopt;
  if (text.size() < frame_size + *length) return std::nullopt;
  std::string_view record = text.substr(head_size, *length);
  if (text[head_size + *length] != '\n' || crc32c(record) != *crc) return std::nullopt;
  return record;
}

bool holds_a_record_after(std::string_view text, std::size_t longest) {
  // Not only after newlines: one of those may be what is damaged.
  for (std::size_t at = 1; at + frame_size <= text.size(); ++at)
    if (record_at(text.substr(at), longest)) return true;
  return false;
}

}  // namespace zed
