#pragma once
// The external term format: bytes to Terms and back. Decoding is total: any bytes give a Term or an
// error, within the limits. Reference: "External Term Format", ERTS user's guide (OTP 25 to 29).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "beam/term.hpp"

namespace zed::beam {

/// What a decoder may spend on one message. A Term takes about 72 bytes, so the defaults bound the
/// memory of one decoded message to about 10 MB.
struct TermLimits {
  std::size_t max_bytes = std::size_t{1} << 20;
  std::size_t max_terms = 131'072;
  /// A list's tail counts as one level below it. More than JSON's 64 and an envelope need.
  std::size_t max_depth = 128;
};

/// The byte that opens a term outside a distribution header.
inline constexpr std::uint8_t etf_version = 131;

/// Decodes one term after another from one buffer, all within one budget.
class TermReader {
public:
  explicit TermReader(std::span<const std::uint8_t> bytes, TermLimits limits = {});

  /// The next term, without a version byte. Errors: `corrupt` with the offset, `unsupported`
  /// (compressed terms, atom cache references), `invalid` naming the limit that was met.
  Result<Term> read();
  /// The next term, with its version byte.
  Result<Term> read_versioned();
  bool at_end() const { return offset_ == bytes_.size(); }
  std::size_t offset() const { return offset_; }

private:
  Result<Term> read_at(std::size_t depth);
  Result<Term> read_tagged(std::uint8_t tag, std::size_t start, std::size_t depth);
  Result<Term> read_integer_or_float(std::uint8_t tag);
  Result<Term> read_big(std::size_t size, std::size_t start);
  Result<Term> read_tuple(std::size_t arity, std::size_t depth);
  Result<Term> read_list(std::size_t depth);
  Result<Term> read_map(std::size_t depth);
  Result<Term> read_pid(bool wide_creation);
  Result<Term> read_port(std::uint8_t tag);
  Result<Term> read_reference(bool wide_creation);
  Result<Term> read_export(std::size_t start, std::size_t depth);
  Result<Term> read_function(std::size_t start, std::size_t depth);
  Result<Atom> read_node();
  Result<Atom> read_atom(std::uint8_t tag);
  Result<std::string> take(std::size_t size);
  Result<std::uint64_t> number(std::size_t bytes);
  Status reserve(std::size_t terms);
  Opaque opaque_since(std::size_t start) const;
  tl::unexpected<Error> corrupt(std::string what) const;

  std::span<const std::uint8_t> bytes_;
  TermLimits limits_;
  std::size_t offset_ = 0;
  std::size_t terms_ = 0;
};

/// One versioned term that is all of `bytes`. Errors: as TermReader, and `corrupt` for bytes left
/// over.
Result<Term> decode(std::span<const std::uint8_t> bytes, TermLimits limits = {});

/// Whether a reader with these limits takes the term: checked before sending, since one term too
/// deep or too large would cost the connection. Errors: `invalid` naming the limit.
Status check_limits(const Term& term, TermLimits limits = {});

/// Appends the term without a version byte. The term keeps the rules of term.hpp (a float is
/// finite, an atom has at most 255 characters, an improper list two items): a BEAM drops the
/// connection of whoever breaks them, so that is a bug and aborts.
void encode_to(std::string& out, const Term& term);

/// The version byte and the term.
std::string encode(const Term& term);

}  // namespace zed::beam
