// Runs a fuzz target over its corpus without libFuzzer: each file whole, and cut short at up to 256
// places, which is where parsers break first.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void run(const std::vector<std::uint8_t>& bytes, std::size_t size) {
  // A copy of exactly that size, so that a sanitizer sees a read beyond it.
  const std::vector<std::uint8_t> cut(bytes.begin(),
                                      bytes.begin() + static_cast<std::ptrdiff_t>(size));
  LLVMFuzzerTestOneInput(cut.data(), cut.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
      const std::size_t stride = std::max<std::size_t>(1, bytes.size() / 256);
      for (std::size_t size = 0; size < bytes.size(); size += stride)
        run(bytes, size);
      run(bytes, bytes.size());
      ++files;
    }
  }
  std::printf("%zu corpus files replayed\n", files);
  return files > 0 ? 0 : 1;
}
