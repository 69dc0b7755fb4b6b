// Any bytes give a Term or an error; what is accepted is written again and means the same, and
// turns into a Value or an error.
#include <cstdlib>

#include "beam/etf.hpp"
#include "beam/term_value.hpp"
#include "beam/wire.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace zed::beam;
  const auto term = decode({data, size});
  if (!term) return 0;
  // Written anew it may take more bytes and parts (a tail of bytes has become a list), never depth.
  TermLimits wide;
  wide.max_bytes *= 16;
  wide.max_terms *= 16;
  if (!check_limits(*term, wide)) std::abort();
  const auto again = decode(bytes_of(encode(*term)), wide);
  if (!again || *again != *term) std::abort();
  (void)show(*term);
  for (const ByteLists how : {ByteLists::text_if_printable, ByteLists::numbers}) {
    const auto value = value_of(*term, how);
    if (value) (void)encode(term_of(*value, [](std::string_view key) { return key.size() < 4; }));
  }
  return 0;
}
