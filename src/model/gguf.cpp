#include "model/gguf.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "base/text.hpp"
#include "model/cursor.hpp"

namespace zed::model {
namespace {

constexpr std::uint32_t magic = 0x46554747;  // "GGUF", least significant byte first
constexpr std::uint64_t most_keys = 65'536;
constexpr std::uint64_t most_tensors = 131'072;
constexpr std::uint64_t longest_key = 1024;
constexpr std::size_t longest_kept_text = 4096;
constexpr std::uint64_t longest_kept_array = 4096;
constexpr std::size_t most_kept = std::size_t{16} << 20;
constexpr std::uint64_t read_budget = std::uint64_t{2} << 30;
constexpr int deepest_array = 4;
constexpr std::uint32_t most_dimensions = 4;
constexpr std::uint64_t default_alignment = 32;
constexpr std::uint64_t largest_alignment = std::uint64_t{1} << 20;

enum class ValueType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  text,
  array,
  u64,
  i64,
  f64
};
constexpr std::uint32_t value_types = 13;

/// Bytes of a value of fixed size; 0 for text and arrays.
std::uint64_t size_of(ValueType type) {
  switch (type) {
  case ValueType::u8:
  case ValueType::i8:
  case ValueType::boolean: return 1;
  case ValueType::u16:
  case ValueType::i16: return 2;
  case ValueType::u32:
  case ValueType::i32:
  case ValueType::f32: return 4;
  case ValueType::u64:
  case ValueType::i64:
  case ValueType::f64: return 8;
  case ValueType::text:
  case ValueType::array: return 0;
  }
  return 0;
}

std::string quoted(std::string_view name) {
  return "\"" + percent_encode(name.substr(0, 80)) + "\"";
}

/// Reads one header. Members are what every part of it needs.
class Reader {
public:
  explicit Reader(ByteSource& source) : source_(source), in_(source, read_budget) {}

  Result<Gguf> run() {
    ZED_CHECK(read_start());
    ZED_TRY(auto tensors, count("tensors", most_tensors));
    ZED_TRY(auto keys, count("metadata keys", most_keys));
    // A key takes 13 bytes at least, a tensor 24: a claim that cannot be true is refused at once.
    if (keys > in_.left() / 9 || tensors > in_.left() / 20)
      return fail(ErrorCode::corrupt,
                  "it claims " + std::to_string(tensors) + " tensors and " + std::to_string(keys) +
                      " metadata keys, more than fit in " + std::to_string(source_.size()) +
                      " bytes",
                  "it was cut off, or is no model file");
    for (std::uint64_t i = 0; i < keys; ++i)
      ZED_CHECK(read_pair());
    ZED_CHECK(read_alignment());
    for (std::uint64_t i = 0; i < tensors; ++i)
      ZED_CHECK(read_tensor());
    ZED_CHECK(check_names());
    ZED_CHECK(check_places());
    return std::move(file_);
  }

private:
  Status read_start() {
    if (source_.size() < 4)
      return fail(ErrorCode::invalid,
                  "this is no GGUF file: it has only " + std::to_string(source_.size()) + " bytes");
    ZED_TRY(auto word, in_.number<std::uint32_t>());
    if (word != magic)
      return fail(ErrorCode::invalid, "this is no GGUF file: it does not begin with \"GGUF\"");
    ZED_TRY(auto version, in_.number<std::uint32_t>());
    // A version in the other byte order has its number in the upper half.
    if (version != 0 && (version & 0xFFFFU) == 0) {
      file_.big_endian = true;
      in_.set_big_endian(true);
      version = ((version & 0xFF000000U) >> 24U) | ((version & 0x00FF0000U) >> 8U);
    }
    if (version < 1 || version > 3)
      return fail(ErrorCode::unsupported,
                  "GGUF version " + std::to_string(version) + " is not known (1 to 3 are)",
                  "a newer Zed may know it");
    file_.version = version;
    return {};
  }

  /// Version 1 counted with 32 bits, the later ones with 64.
  Result<std::uint64_t> length() {
    if (file_.version > 1) return in_.number<std::uint64_t>();
    ZED_TRY(auto short_length, in_.number<std::uint32_t>());
    return std::uint64_t{short_length};
  }

  Result<std::uint64_t> count(const char* what, std::uint64_t most) {
    ZED_TRY(auto claimed, length());
    if (claimed <= most) return claimed;
    return fail(ErrorCode::invalid,
                "it claims " + std::to_string(claimed) + " " + what + "; at most " +
                    std::to_string(most) + " are read",
                "no real model has so many");
  }

  Result<ValueType> value_type() {
    ZED_TRY(auto number, in_.number<std::uint32_t>());
    if (number < value_types) return static_cast<ValueType>(number);
    return fail(ErrorCode::corrupt, "there is no metadata type " + std::to_string(number));
  }

  Status keep(std::size_t bytes) {
    kept_ += bytes;
    if (kept_ <= most_kept) return {};
    return fail(ErrorCode::invalid, "its metadata is larger than any real model's (16 MiB)");
  }

  Status read_pair() {
    ZED_TRY(auto key_length, length());
    if (key_length == 0 || key_length > longest_key)
      return fail(ErrorCode::corrupt, "a metadata key of " + std::to_string(key_length) +
                                          " bytes at byte " + std::to_string(in_.position()));
    ZED_TRY(std::string key, in_.text(key_length, longest_key));
    ZED_TRY(auto type, value_type());
    auto value = read_value(type);
    if (!value) return fail(std::move(value).error().with("read metadata " + quoted(key)));
    ZED_CHECK(keep(key.size() + 64));
    if (file_.metadata.contains(key))
      return fail(ErrorCode::corrupt, "the metadata key " + quoted(key) + " is there twice");
    file_.metadata.emplace(std::move(key), std::move(*value));
    return {};
  }

  Result<GgufValue> read_value(ValueType type) {
    if (type == ValueType::array) return read_array();
    if (type != ValueType::text) return read_scalar(type);
    ZED_TRY(auto text_length, length());
    ZED_TRY(std::string text, in_.text(text_length, longest_kept_text));
    ZED_CHECK(keep(text.size()));
    return GgufValue(std::move(text));
  }

  template <class T> Result<GgufValue> signed_number() {
    ZED_TRY(auto bits, in_.number<std::make_unsigned_t<T>>());
    return GgufValue(static_cast<std::int64_t>(static_cast<T>(bits)));
  }

  Result<GgufValue> read_scalar(ValueType type) {
    switch (type) {
    case ValueType::boolean: {
      ZED_TRY(auto byte, in_.number<std::uint8_t>());
      if (byte > 1) return fail(ErrorCode::corrupt, "a truth value that is neither 0 nor 1");
      return GgufValue(byte == 1);
    }
    case ValueType::u8: {
      ZED_TRY(auto n, in_.number<std::uint8_t>());
      return GgufValue(std::int64_t{n});
    }
    case ValueType::u16: {
      ZED_TRY(auto n, in_.number<std::uint16_t>());
      return GgufValue(std::int64_t{n});
    }
    case ValueType::u32: {
      ZED_TRY(auto n, in_.number<std::uint32_t>());
      return GgufValue(std::int64_t{n});
    }
    case ValueType::u64: {
      ZED_TRY(auto n, in_.number<std::uint64_t>());
      if (n > static_cast<std::uint64_t>(INT64_MAX)) return GgufValue(static_cast<double>(n));
      return GgufValue(static_cast<std::int64_t>(n));
    }
    case ValueType::i8: return signed_number<std::int8_t>();
    case ValueType::i16: return signed_number<std::int16_t>();
    case ValueType::i32: return signed_number<std::int32_t>();
    case ValueType::i64: return signed_number<std::int64_t>();
    case ValueType::f32: {
      ZED_TRY(auto bits, in_.number<std::uint32_t>());
      return GgufValue(static_cast<double>(std::bit_cast<float>(bits)));
    }
    case ValueType::f64: {
      ZED_TRY(auto bits, in_.number<std::uint64_t>());
      return GgufValue(std::bit_cast<double>(bits));
    }
    case ValueType::text:
    case ValueType::array: break;
    }
    return fail(ErrorCode::internal, "a metadata type without a reader");
  }

  Result<GgufValue> read_array() {
    ZED_TRY(auto type, value_type());
    ZED_TRY(auto array_length, length());
    GgufArray array{array_length, {}};
    const bool whole = type != ValueType::f32 && type != ValueType::f64 && size_of(type) > 0;
    if (!whole || array_length > longest_kept_array) {
      ZED_CHECK(skip_elements(type, array_length, 1));
      return GgufValue(std::move(array));
    }
    if (array_length * size_of(type) > in_.left()) ZED_CHECK(in_.skip(array_length));
    ZED_CHECK(keep(static_cast<std::size_t>(array_length) * sizeof(std::int64_t)));
    array.numbers.reserve(static_cast<std::size_t>(array_length));
    for (std::uint64_t i = 0; i < array_length; ++i) {
      ZED_TRY(auto element, read_scalar(type));
      if (const auto* flag = std::get_if<bool>(&element))
        array.numbers.push_back(*flag ? 1 : 0);
      else if (const auto* number = std::get_if<std::int64_t>(&element))
        array.numbers.push_back(*number);
      else
        array.numbers.push_back(std::numeric_limits<std::int64_t>::max());
    }
    return GgufValue(std::move(array));
  }

  /// Passes over the elements of an array without keeping any, however many there are.
  Status skip_elements(ValueType type, std::uint64_t n, int depth) {
    if (const std::uint64_t each = size_of(type); each > 0) {
      if (n > in_.left() / each)
        return fail(ErrorCode::corrupt,
                    "an array of " + std::to_string(n) + " elements goes beyond the file",
                    "it was cut off, or is no model file");
      return in_.skip(n * each);
    }
    if (depth > deepest_array)
      return fail(ErrorCode::corrupt, "arrays within arrays, deeper than any real model's");
    for (std::uint64_t i = 0; i < n; ++i) {
      if (type == ValueType::text) {
        ZED_TRY(auto text_length, length());
        ZED_CHECK(in_.skip(text_length));
      } else {
        ZED_TRY(auto inner, value_type());
        ZED_TRY(auto inner_length, length());
        ZED_CHECK(skip_elements(inner, inner_length, depth + 1));
      }
    }
    return {};
  }

  Status read_alignment() {
    auto found = file_.metadata.find("general.alignment");
    file_.alignment = default_alignment;
    if (found == file_.metadata.end()) return {};
    const auto* number = std::get_if<std::int64_t>(&found->second);
    const auto alignment =
        number != nullptr && *number > 0 ? static_cast<std::uint64_t>(*number) : 0;
    if (!std::has_single_bit(alignment) || alignment > largest_alignment)
      return fail(ErrorCode::corrupt, "general.alignment is no power of two from 1 to 1048576");
    file_.alignment = alignment;
    return {};
  }

  Status read_tensor() {
    GgufTensor tensor;
    ZED_TRY(auto name_length, length());
    if (name_length == 0 || name_length > longest_key)
      return fail(ErrorCode::corrupt, "a tensor's name of " + std::to_string(name_length) +
                                          " bytes at byte " + std::to_string(in_.position()));
    ZED_TRY(tensor.name, in_.text(name_length, longest_key));
    auto rest = read_shape(tensor);
    if (!rest) return fail(std::move(rest).error().with("read tensor " + quoted(tensor.name)));
    file_.tensors.push_back(std::move(tensor));
    return {};
  }

  Status read_shape(GgufTensor& tensor) {
    ZED_TRY(auto dimensions, in_.number<std::uint32_t>());
    if (dimensions > most_dimensions)
      return fail(ErrorCode::corrupt,
                  std::to_string(dimensions) + " dimensions; at most 4 are known");
    tensor.elements = 1;
    std::uint64_t row = 1;
    for (std::uint32_t i = 0; i < dimensions; ++i) {
      ZED_TRY(auto extent, length());
      if (i == 0) row = extent;
      constexpr std::uint64_t most = std::uint64_t{1} << 56;  // times 8 bytes stays below 2^63
      if (extent != 0 && tensor.elements > most / extent)
        return fail(ErrorCode::corrupt, "its dimensions multiply to more than any file holds");
      tensor.elements *= extent;
    }
    ZED_TRY(auto type, in_.number<std::uint32_t>());
    tensor.type = ggml_type(type);
    if (tensor.type == nullptr)
      return fail(ErrorCode::unsupported,
                  "the tensor type " + std::to_string(type) + " is not known",
                  "docs/models.md says how a type is added; a newer Zed may know it");
    if (row % tensor.type->block != 0)
      return fail(ErrorCode::corrupt, "rows of " + std::to_string(row) +
                                          " weights are no whole blocks of " +
                                          std::string(tensor.type->name));
    tensor.bytes = tensor.elements / tensor.type->block * tensor.type->bytes;
    ZED_TRY(tensor.offset, in_.number<std::uint64_t>());
    return {};
  }

  Status check_names() const {
    std::vector<std::string_view> names;
    names.reserve(file_.tensors.size());
    for (const GgufTensor& tensor : file_.tensors)
      names.emplace_back(tensor.name);
    std::sort(names.begin(), names.end());
    auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice == names.end()) return {};
    return fail(ErrorCode::corrupt, "the tensor " + quoted(*twice) + " is there twice");
  }

  /// Every tensor aligned, inside the file, and no byte in two of them.
  Status check_places() {
    // Read as in version 1 and 2 too: both align the data by the same key.
    const std::uint64_t mask = file_.alignment - 1;
    file_.data_offset = (in_.position() + mask) & ~mask;
    const std::uint64_t size = source_.size();
    const std::uint64_t data = size > file_.data_offset ? size - file_.data_offset : 0;
    std::vector<const GgufTensor*> by_place;
    by_place.reserve(file_.tensors.size());
    for (const GgufTensor& tensor : file_.tensors) {
      if ((tensor.offset & mask) != 0)
        return fail(ErrorCode::corrupt, "the tensor " + quoted(tensor.name) +
                                            " is not aligned to " +
                                            std::to_string(file_.alignment) + " bytes");
      if (tensor.offset > data || tensor.bytes > data - tensor.offset)
        return fail(ErrorCode::corrupt,
                    "the tensor " + quoted(tensor.name) + " has " + std::to_string(tensor.bytes) +
                        " bytes from byte " + std::to_string(tensor.offset) +
                        " of the data on, which has only " + std::to_string(data),
                    "the file was cut off: fetch it again");
      by_place.push_back(&tensor);
    }
    std::sort(by_place.begin(), by_place.end(), [](const GgufTensor* a, const GgufTensor* b) {
      return std::pair(a->offset, a->bytes) < std::pair(b->offset, b->bytes);
    });
    for (std::size_t i = 1; i < by_place.size(); ++i) {
      const GgufTensor& before = *by_place[i - 1];
      if (before.bytes > by_place[i]->offset - before.offset)
        return fail(ErrorCode::corrupt, "the tensors " + quoted(before.name) + " and " +
                                            quoted(by_place[i]->name) + " overlap");
    }
    return {};
  }

  ByteSource& source_;
  Cursor in_;
  Gguf file_;
  std::size_t kept_ = 0;
};

}  // namespace

std::uint64_t Gguf::tensor_bytes() const {
  std::uint64_t sum = 0;  // no two overlap, so the file's size bounds it
  for (const GgufTensor& tensor : tensors)
    sum += tensor.bytes;
  return sum;
}

std::string Gguf::text(std::string_view key) const {
  auto found = metadata.find(key);
  const auto* value = found != metadata.end() ? std::get_if<std::string>(&found->second) : nullptr;
  return value != nullptr ? *value : std::string();
}

std::optional<std::int64_t> Gguf::number(std::string_view key) const {
  auto found = metadata.find(key);
  if (found == metadata.end()) return std::nullopt;
  const auto* value = std::get_if<std::int64_t>(&found->second);
  if (value == nullptr || *value < 0) return std::nullopt;
  return *value;
}

std::uint64_t Gguf::array_length(std::string_view key) const {
  auto found = metadata.find(key);
  const auto* value = found != metadata.end() ? std::get_if<GgufArray>(&found->second) : nullptr;
  return value != nullptr ? value->length : 0;
}

Result<Gguf> read_gguf(ByteSource& source) {
  return Reader(source).run();
}

}  // namespace zed::model
