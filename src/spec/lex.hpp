#pragma once
// Text to tokens. Total: whatever is no token of the language becomes one that carries its fault.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "spec/source.hpp"

namespace zed::spec {

struct Token {
  enum class Kind : std::uint8_t {
    newline,
    semicolon,
    comment,      ///< "# text" without the newline
    word,         ///< a verb: gpu
    key,          ///< vram: (with its colon)
    quoted_key,   ///< "vram": (with its colon)
    string,       ///< "text" (raw, with its quotes)
    heredoc,      ///< from """ to """
    integer,      ///< -1_000
    real,         ///< 1.5e3
    atom,         ///< :name
    quoted_atom,  ///< :"name"
    alias,        ///< Zed.DSL
    literal,      ///< true, false, nil
    attribute,    ///< @moduledoc
    open_paren,
    close_paren,
    open_list,
    close_list,
    open_other,  ///< { << and their kind: always a fault
    close_other,
    comma,
    do_,
    end_,
    fn_,        ///< always a fault; it takes an `end` with it
    operator_,  ///< always a fault; the next line belongs to it
    invalid,    ///< always a fault
    end_of_file,
  };
  Kind kind = Kind::end_of_file;
  bool space_before = false;
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
};

inline constexpr std::size_t most_tokens = 1'000'000;

struct Tokens {
  std::vector<Token> tokens;  ///< the last one is end_of_file
  /// By token offset: why it is none of the language's. Reported by the parser, one a statement.
  std::map<std::size_t, Fault> faults;
  bool swallowed_do = false;  ///< an unclosed string hides the `do` of its line
  bool cut = false;           ///< the end is missing: an unterminated heredoc, or too many tokens
};

/// The text is Source's: valid UTF-8, at most largest_file bytes.
Tokens lex(std::string_view text);

bool is_word_start(char c);
bool is_word_character(char c);
bool is_digit(char c);
/// Whether an atom or key of that name needs no quotes.
bool is_plain_atom(std::string_view name);
bool is_plain_key(std::string_view name);

}  // namespace zed::spec
