// Any bytes give a header or an error; what is accepted lies within the file, and its facts hold.
#include "model/gguf.hpp"
#include "model_files.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace zed::model;
  const auto bytes = std::as_bytes(std::span(data, size));
  BytesInMemory source(bytes);
  if (const auto file = read_gguf(source)) {
    for (const GgufTensor& tensor : file->tensors)
      if (file->data_offset + tensor.offset + tensor.bytes > size && tensor.bytes > 0) std::abort();
    if (file->tensor_bytes() > size) std::abort();
  }
  FuzzFolder folder;
  folder.add("m-00001-of-00002.gguf", bytes);
  folder.add("m-00002-of-00002.gguf", bytes);
  folder.add("mmproj.gguf", bytes);
  if (const auto facts = read_facts(folder); facts && *facts) hold(**facts);
  return 0;
}
