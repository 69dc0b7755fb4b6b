#pragma once
// Tokens to the file as written. Recovers after every faulty statement, so that all are reported.

#include "spec/source.hpp"
#include "spec/syntax.hpp"

namespace zed::spec {

struct Parsed {
  Block file;  ///< the file's statements: a block without a `do`
  /// False if an `end` is missing or too many: what stands inside what is a guess.
  bool structure_known = true;
};

/// A text over largest_file is refused before anything is done with it.
std::optional<Diagnostic> too_large(std::string_view text);

/// Faults go into the report; a faulty statement is left out or marked `broken`.
Parsed parse(const Source& source, Report& report);

}  // namespace zed::spec
