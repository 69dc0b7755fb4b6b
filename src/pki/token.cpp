#include "pki/token.hpp"

#include <algorithm>

#include "base/enum.hpp"
#include "base/text.hpp"

namespace zed::pki {
namespace {

constexpr std::string_view scheme = "zed1";
constexpr std::size_t longest = 512, parts_of_a_token = 5;

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

std::string JoinToken::str() const {
  return std::string(scheme) + ":" + std::string(to_string(identity.role)) + ":" + identity.node +
         ":" + authority + ":" + secret;
}

Result<JoinToken> JoinToken::parse(std::string_view text) {
  const auto wrong = [] {
    return fail(ErrorCode::invalid, "this is no join token, or only a part of one",
                "copy the whole line that zedctl token create printed");
  };
  if (text.size() > longest) return wrong();
  const auto parts = split(trim(text), ':');
  if (parts.size() != parts_of_a_token || parts[0] != scheme) return wrong();
  const auto role = enum_of<Role>(parts[1]);
  if (!role || !is_hex(parts[3], 64) || !is_hex(parts[4], 32)) return wrong();
  JoinToken token{{parts[2], *role}, parts[3], parts[4]};
  const bool is_machine = *role == Role::agent || *role == Role::controller;
  auto again = identity_of(*role, is_machine ? token.identity.host() : token.identity.node);
  if (!again || *again != token.identity) return wrong();
  return token;
}

std::string hash_of(const JoinToken& token) {
  return sha256_hex(token.str());
}

}  // namespace zed::pki
