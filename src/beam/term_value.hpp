#pragma once
// Terms to Values and back: how what core and api describe reaches a BEAM shell.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/value.hpp"
#include "beam/term.hpp"

namespace zed::beam {

/// What a list of bytes means: Erlang writes "abc" and [97,98,99] as the same bytes.
enum class ByteLists {
  text_if_printable,  ///< text, unless a byte is a control character
  numbers,            ///< always a list of whole numbers
};

/// true and false are booleans, nil and undefined null, other atoms symbols; binaries text (UTF-8);
/// tuples lists; a list of {atom, value} with distinct keys (Elixir's [gpu: "A100"]) a map; map
/// keys atoms or binaries; integers beyond the signed 64 bits their digits as text. Errors:
/// `invalid` naming the path, for what has no counterpart (pids, references, functions, improper
/// lists, binaries that are not UTF-8, two keys of one name).
Result<Value> value_of(const Term& term, ByteLists byte_lists = ByteLists::text_if_printable);

/// Whether a map's key is a word of our own fixed vocabulary, and so may become an atom.
using IsOurWord = std::function<bool(std::string_view)>;

/// Symbols become atoms, text binaries, null the atom nil; a key is an atom if `is_our_word` says
/// so, else a binary: a BEAM never frees an atom, so none is made from what a person typed. A float
/// that is not finite becomes the text "NaN", "Infinity" or "-Infinity", as in JSON.
Term term_of(const Value& value, const IsOurWord& is_our_word);

/// The text of a binary, an atom or a list of bytes (Latin-1) that is UTF-8; else nullopt.
std::optional<std::string> text_of(const Term& term);

}  // namespace zed::beam
