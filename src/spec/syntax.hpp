#pragma once
// A cluster file as written: statements and values, with the comments and blank lines between them.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "spec/lex.hpp"
#include "spec/source.hpp"

namespace zed::spec {

struct Comment {
  std::string text;           ///< "# …"
  bool blank_before = false;  ///< a blank line stands before it
};

struct Argument;

struct Expression {
  enum class Kind { string, heredoc, integer, real, atom, boolean, nil, list, alias };
  Kind kind = Kind::nil;
  std::size_t offset = 0;
  std::size_t length = 0;
  std::string text;  ///< decoded: of a string, an atom, an alias; a number without underscores
  std::string raw;   ///< as the formatter writes it; of a heredoc, its lines without indentation
  std::int64_t integer = 0;
  double real = 0;  ///< of an integer too
  bool boolean = false;
  std::vector<Argument> items;    ///< of a list
  std::vector<Comment> dangling;  ///< in a list, after its last item

  bool is_string() const { return kind == Kind::string || kind == Kind::heredoc; }
  bool is_number() const { return kind == Kind::integer || kind == Kind::real; }
};

/// An argument of a call or an item of a list.
struct Argument {
  std::vector<Comment> comments;  ///< on lines of their own, before it
  std::string trailing;           ///< comment on its line, behind it
  std::optional<std::string> key;
  std::size_t key_offset = 0;
  Expression value;
  std::size_t offset() const { return key ? key_offset : value.offset; }
};

struct Call;

struct Block {
  std::size_t offset = 0;  ///< of its `do`
  std::string trailing;    ///< comment on the line of the `do`
  std::vector<Call> calls;
  std::vector<Comment> dangling;  ///< after the last call
};

/// One statement: a verb, its arguments, its block.
struct Call {
  std::vector<Comment> comments;
  bool blank_before = false;
  std::string trailing;  ///< comment on the line where it ends
  std::string name;      ///< "@moduledoc" for an attribute
  std::size_t offset = 0;
  std::vector<Argument> arguments;
  std::optional<Block> block;
  bool broken = false;  ///< a fault inside was reported: what it says is not to be judged

  /// The keyword arguments' first index; arguments.size() if there are none.
  std::size_t first_keyword() const;
};

/// The value of a string token ("…" or """…""" with what is between). A fault's offset is relative
/// to the token.
struct Decoded {
  std::string text;
  std::string raw;  ///< as in Expression
};
std::variant<Decoded, Fault> decode_string(std::string_view token);
std::variant<Decoded, Fault> decode_heredoc(std::string_view token);

}  // namespace zed::spec
