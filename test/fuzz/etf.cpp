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
  const auto again = decode(bytes_of(encode(*term)), {std::size_t{16} << 20, 4'000'000, 64});
  if (!again || *again != *term) std::abort();
  (void)show(*term);
  for (const ByteLists how : {ByteLists::text_if_printable, ByteLists::numbers}) {
    const auto value = value_of(*term, how);
    if (value) (void)encode(term_of(*value, [](std::string_view key) { return key.size() < 4; }));
  }
  return 0;
}
