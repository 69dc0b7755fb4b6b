#pragma once
// Two texts, and what makes one the other, as unified hunks. Pure.

#include <string>
#include <string_view>

#include "cli/view.hpp"

namespace zed::cli {

/// Whether it can be shown: valid UTF-8 without NUL.
bool is_text(std::string_view bytes);

/// Hunks with three lines of context ("@@ -1,4 +1,5 @@"); empty if the texts are equal. Texts that
/// differ in more than about a thousand lines get one line that says so instead.
std::string unified_diff(std::string_view a, std::string_view b, const View& view);

}  // namespace zed::cli
