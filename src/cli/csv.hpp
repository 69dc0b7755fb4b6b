#pragma once
// A reply's rows as CSV (RFC 4180), for spreadsheets and pipes. Pure.

#include <string>

#include "base/value.hpp"

namespace zed::cli {

/// The first member of the reply that is a list of maps, a row each; without one the reply itself
/// is the row. Members of inner maps become columns "gpu.model"; a list of words is joined by ';',
/// any other inner list is its length. The columns are those of all rows, in order of appearance.
std::string to_csv(const Value& reply);
/// The reply itself as the one row, whatever lists it has.
std::string to_csv_row(const Value& reply);

}  // namespace zed::cli
