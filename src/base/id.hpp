#pragma once
// Strong identities: 128 random bits, or a word, each tied to what it names.

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace zed {

/// 128 bits as 32 lower-case hexadecimal digits.
std::string hex_of(const std::array<std::uint8_t, 16>& bytes);
std::optional<std::array<std::uint8_t, 16>> bytes_of_hex(std::string_view text);

template <class Tag> struct Id128 {
  std::array<std::uint8_t, 16> bytes{};

  bool is_nil() const { return bytes == std::array<std::uint8_t, 16>{}; }
  std::string str() const { return hex_of(bytes); }
  static std::optional<Id128> parse(std::string_view text) {
    auto parsed = bytes_of_hex(text);
    if (!parsed) return std::nullopt;
    return Id128{*parsed};
  }
  friend auto operator<=>(const Id128&, const Id128&) = default;
};

/// A word with a meaning: NodeName, JobName and so on never convert into one another.
template <class Tag> class Name {
public:
  Name() = default;
  explicit Name(std::string text) : text_(std::move(text)) {}
  const std::string& str() const { return text_; }
  bool empty() const { return text_.empty(); }
  friend auto operator<=>(const Name&, const Name&) = default;

private:
  std::string text_;
};

/// A source of identities. Real ones come from the operating system; the simulation's from its
/// seed.
class IdSource {
public:
  virtual ~IdSource() = default;
  virtual std::array<std::uint8_t, 16> next() = 0;
};

}  // namespace zed

template <class Tag> struct std::hash<zed::Id128<Tag>> {
  std::size_t operator()(const zed::Id128<Tag>& id) const noexcept {
    // Identities of a row of things may differ in either half only.
    std::uint64_t h = 0;
    for (const std::uint8_t byte : id.bytes)
      h = (h ^ byte) * 0x100000001b3U;  // FNV-1a
    return static_cast<std::size_t>(h);
  }
};
template <class Tag> struct std::hash<zed::Name<Tag>> {
  std::size_t operator()(const zed::Name<Tag>& name) const noexcept {
    return std::hash<std::string>{}(name.str());
  }
};
