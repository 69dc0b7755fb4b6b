#include "model/safetensors.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <boost/json/basic_parser_impl.hpp>

#include "base/text.hpp"
#include "model/cursor.hpp"

namespace zed::model {
namespace {

namespace json = boost::json;

constexpr std::uint64_t longest_header = 100'000'000;
constexpr std::size_t most_tensors = 262'144;
constexpr std::size_t longest_name = 1024;
constexpr std::size_t most_dimensions = 8;
constexpr std::size_t most_shards = 4096;
constexpr std::uint64_t most_elements = std::uint64_t{1} << 56;

// tensor.rs of huggingface/safetensors.
constexpr std::array types{
    SafeType{"BOOL", 8, false},        SafeType{"U8", 8, false},
    SafeType{"I8", 8, false},          SafeType{"F4", 4, false},
    SafeType{"F6_E2M3", 6, false},     SafeType{"F6_E3M2", 6, false},
    SafeType{"F8_E5M2", 8, false},     SafeType{"F8_E4M3", 8, false},
    SafeType{"F8_E8M0", 8, false},     SafeType{"F8_E5M2FNUZ", 8, false},
    SafeType{"F8_E4M3FNUZ", 8, false}, SafeType{"I16", 16, false},
    SafeType{"U16", 16, false},        SafeType{"F16", 16, true},
    SafeType{"BF16", 16, true},        SafeType{"I32", 32, false},
    SafeType{"U32", 32, false},        SafeType{"F32", 32, true},
    SafeType{"I64", 64, false},        SafeType{"U64", 64, false},
    SafeType{"F64", 64, true},         SafeType{"C64", 64, false},
};

std::string quoted(std::string_view name) {
  return "\"" + percent_encode(name.substr(0, 80)) + "\"";
}

/// What the parser calls for each piece of JSON, with the pieces of a text joined. A handler below
/// takes the whole ones; false from any call ends the reading, `problem` says why.
class Handler {
public:
  static constexpr std::size_t max_object_size = std::size_t(-1);
  static constexpr std::size_t max_array_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = std::size_t(-1);
  static constexpr std::size_t max_string_size = std::size_t(-1);

  std::optional<Error> problem;

protected:
  bool refuse(ErrorCode code, std::string message, std::string hint = {}) {
    problem = Error{code, std::move(message), {}, std::move(hint)};
    return false;
  }
  bool append(json::string_view piece) {
    if (text_.size() + piece.size() > longest_name) {
      // Texts that are longer are nobody's names: values of __metadata__. Their length is bounded
      // by the header's.
      is_long_ = true;
      return true;
    }
    text_.append(piece.data(), piece.size());
    return true;
  }
  std::string take() {
    is_long_ = false;
    return std::exchange(text_, {});
  }
  bool is_long() const { return is_long_; }

private:
  std::string text_;
  bool is_long_ = false;
};

/// {"__metadata__": {…}, NAME: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}
class HeaderHandler : public Handler {
public:
  std::vector<SafeTensor> tensors;

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) {
    if (++depth_ <= 2) return true;
    return in_metadata_ || misplaced();
  }
  bool on_object_end(std::size_t, json::error_code&) {
    if (depth_-- != 2 || std::exchange(in_metadata_, false)) return true;
    return finish_tensor();
  }
  bool on_array_begin(json::error_code&) {
    if (in_metadata_) return true;
    const bool expected =
        !in_array_ && depth_ == 2 && (field_ == Field::shape || field_ == Field::offsets);
    in_array_ = expected;
    return expected || misplaced();
  }
  bool on_array_end(std::size_t, json::error_code&) {
    in_array_ = false;
    return true;
  }
  bool on_key_part(json::string_view piece, std::size_t, json::error_code&) {
    return append(piece);
  }
  bool on_key(json::string_view piece, std::size_t, json::error_code&) {
    append(piece);
    const bool too_long = is_long();
    std::string key = take();
    if (in_metadata_) return true;
    if (too_long) return refuse(ErrorCode::invalid, "a tensor's name is longer than 1024 bytes");
    return depth_ == 1 ? begin_tensor(std::move(key)) : begin_field(key);
  }
  bool on_string_part(json::string_view piece, std::size_t, json::error_code&) {
    return append(piece);
  }
  bool on_string(json::string_view piece, std::size_t, json::error_code&) {
    append(piece);
    const std::string text = take();
    if (in_metadata_) return true;
    if (depth_ != 2 || field_ != Field::dtype || in_array_) return misplaced();
    tensor_.type = safe_type(text);
    if (tensor_.type != nullptr) return true;
    return refuse(ErrorCode::unsupported,
                  "the type " + quoted(text) + " of the tensor " + quoted(tensor_.name) +
                      " is not known",
                  "a newer Zed may know it");
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t n, json::string_view, json::error_code&) {
    if (in_metadata_) return true;
    if (n < 0) return misplaced();
    return number(static_cast<std::uint64_t>(n));
  }
  bool on_uint64(std::uint64_t n, json::string_view, json::error_code&) {
    return in_metadata_ || number(n);
  }
  bool on_double(double, json::string_view, json::error_code&) {
    return in_metadata_ || misplaced();
  }
  bool on_bool(bool, json::error_code&) { return in_metadata_ || misplaced(); }
  bool on_null(json::error_code&) { return in_metadata_ || misplaced(); }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

private:
  enum class Field { none, dtype, shape, offsets };

  bool misplaced() {
    return refuse(ErrorCode::corrupt,
                  tensor_.name.empty()
                      ? std::string("its header is no list of tensors")
                      : "the entry of the tensor " + quoted(tensor_.name) + " is malformed");
  }

  bool begin_tensor(std::string name) {
    if (name == "__metadata__") return in_metadata_ = true;
    if (tensors.size() >= most_tensors)
      return refuse(ErrorCode::invalid, "it has more than 262144 tensors",
                    "no real model has so many in one file");
    tensor_ = {};
    offsets_ = 0;
    field_ = Field::none;
    tensor_.name = std::move(name);
    return true;
  }

  bool begin_field(const std::string& key) {
    if (key == "dtype")
      field_ = Field::dtype;
    else if (key == "shape")
      field_ = Field::shape;
    else if (key == "data_offsets")
      field_ = Field::offsets;
    else
      return misplaced();
    return true;
  }

  bool number(std::uint64_t n) {
    if (!in_array_) return misplaced();
    if (field_ == Field::shape) {
      if (tensor_.shape.size() >= most_dimensions) return misplaced();
      tensor_.shape.push_back(n);
      return true;
    }
    if (offsets_ >= 2) return misplaced();
    (offsets_++ == 0 ? tensor_.begin : tensor_.end) = n;
    return true;
  }

  bool finish_tensor() {
    if (tensor_.type == nullptr || offsets_ != 2 || tensor_.begin > tensor_.end) return misplaced();
    tensor_.elements = 1;
    for (const std::uint64_t extent : tensor_.shape) {
      if (extent != 0 && tensor_.elements > most_elements / extent)
        return refuse(ErrorCode::corrupt, "the dimensions of the tensor " + quoted(tensor_.name) +
                                              " multiply to more than any file holds");
      tensor_.elements *= extent;
    }
    const std::uint64_t bits = tensor_.elements * tensor_.type->bits;
    if (bits % 8 != 0 || bits / 8 != tensor_.end - tensor_.begin)
      return refuse(ErrorCode::corrupt, "the tensor " + quoted(tensor_.name) + " has " +
                                            std::to_string(tensor_.end - tensor_.begin) +
                                            " bytes, which its shape and type do not take");
    tensors.push_back(std::move(tensor_));
    tensor_ = {};
    return true;
  }

  SafeTensor tensor_;
  Field field_ = Field::none;
  int offsets_ = 0;
  int depth_ = 0;
  bool in_metadata_ = false;
  bool in_array_ = false;
};

/// {"metadata": {…}, "weight_map": {TENSOR: SHARD, …}}
class IndexHandler : public Handler {
public:
  SafeIndex index;

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) {
    ++depth_;
    return true;
  }
  bool on_object_end(std::size_t, json::error_code&) {
    if (depth_-- == 2) in_map_ = false;
    return true;
  }
  bool on_array_begin(json::error_code&) { return true; }
  bool on_array_end(std::size_t, json::error_code&) { return true; }
  bool on_key_part(json::string_view piece, std::size_t, json::error_code&) {
    return append(piece);
  }
  bool on_key(json::string_view piece, std::size_t, json::error_code&) {
    append(piece);
    const std::string key = take();
    if (depth_ == 1) in_map_ = key == "weight_map";
    return true;
  }
  bool on_string_part(json::string_view piece, std::size_t, json::error_code&) {
    return append(piece);
  }
  bool on_string(json::string_view piece, std::size_t, json::error_code&) {
    append(piece);
    const bool too_long = is_long();
    const std::string shard = take();
    if (!in_map_ || depth_ != 2) return true;
    if (shard.empty() || too_long || shard.find('/') != std::string::npos || shard.front() == '.')
      return refuse(ErrorCode::corrupt, "its index names a shard " + quoted(shard),
                    "a shard is a file beside the index");
    if (!index.shards.contains(shard) && index.shards.size() >= most_shards)
      return refuse(ErrorCode::invalid, "its index names more than 4096 shards");
    ++index.shards[shard];
    return true;
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t, json::string_view, json::error_code&) { return true; }
  bool on_uint64(std::uint64_t, json::string_view, json::error_code&) { return true; }
  bool on_double(double, json::string_view, json::error_code&) { return true; }
  bool on_bool(bool, json::error_code&) { return true; }
  bool on_null(json::error_code&) { return true; }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

private:
  int depth_ = 0;
  bool in_map_ = false;
};

/// Feeds `length` bytes of JSON to the handler in pieces.
template <class H> Status parse(Cursor& in, std::uint64_t length, json::basic_parser<H>& parser) {
  constexpr std::uint64_t piece = 16 * 1024;
  std::vector<std::byte> buffer;
  json::error_code error;
  while (length > 0) {
    buffer.resize(static_cast<std::size_t>(std::min(length, piece)));
    ZED_CHECK(in.read(buffer));
    length -= buffer.size();
    const char* text = reinterpret_cast<const char*>(buffer.data());
    const std::size_t used = parser.write_some(length > 0, text, buffer.size(), error);
    if (parser.handler().problem) return fail(std::move(*parser.handler().problem));
    const bool rest_is_blank = std::all_of(text + used, text + buffer.size(), [](char c) {
      return c == ' ' || c == '\n' || c == '\r' || c == '\t';
    });
    if (error || !rest_is_blank)
      return fail(ErrorCode::invalid,
                  "its header is no JSON: " + (error ? error.message() : "something follows it"));
  }
  if (!parser.done()) return fail(ErrorCode::invalid, "its header is no JSON: it is incomplete");
  return {};
}

/// No byte in two tensors, none in no tensor, and as many as the file has.
Status check_places(const std::vector<SafeTensor>& tensors, std::uint64_t data) {
  std::uint64_t place = 0;
  for (const SafeTensor& tensor : tensors) {
    if (tensor.begin < place)
      return fail(ErrorCode::corrupt,
                  "the tensor " + quoted(tensor.name) + " overlaps the one before it");
    if (tensor.begin > place)
      return fail(ErrorCode::corrupt, "there is a hole of " + std::to_string(tensor.begin - place) +
                                          " bytes before the tensor " + quoted(tensor.name));
    place = tensor.end;
  }
  if (place == data) return {};
  return fail(ErrorCode::corrupt,
              "its tensors take " + std::to_string(place) + " bytes, the file has " +
                  std::to_string(data) + " after its header",
              place > data ? "it was cut off: fetch it again" : "");
}

Status check_names(const std::vector<SafeTensor>& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const SafeTensor& tensor : tensors)
    names.emplace_back(tensor.name);
  std::sort(names.begin(), names.end());
  auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return fail(ErrorCode::corrupt, "the tensor " + quoted(*twice) + " is there twice");
}

}  // namespace

const SafeType* safe_type(std::string_view name) {
  const auto* found = std::find_if(types.begin(), types.end(),
                                   [&](const SafeType& type) { return type.name == name; });
  return found == types.end() ? nullptr : &*found;
}

Result<Safetensors> read_safetensors(ByteSource& source) {
  Cursor in(source, 2 * longest_header);
  if (source.size() < 8)
    return fail(ErrorCode::invalid, "this is no safetensors file: it has only " +
                                        std::to_string(source.size()) + " bytes");
  ZED_TRY(auto length, in.number<std::uint64_t>());
  if (length > longest_header)
    return fail(ErrorCode::invalid, "this is no safetensors file: its header would have " +
                                        std::to_string(length) + " bytes (at most 100000000)");
  if (length > in.left())
    return fail(ErrorCode::corrupt,
                "its header has " + std::to_string(length) + " bytes, the file only " +
                    std::to_string(source.size()),
                "it was cut off: fetch it again");
  json::basic_parser<HeaderHandler> parser((json::parse_options()));
  ZED_CHECK(parse(in, length, parser));
  Safetensors file;
  file.tensors = std::move(parser.handler().tensors);
  file.data_bytes = in.left();
  std::sort(file.tensors.begin(), file.tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  ZED_CHECK(check_names(file.tensors));
  ZED_CHECK(check_places(file.tensors, file.data_bytes));
  return file;
}

Result<SafeIndex> read_safe_index(ByteSource& source) {
  if (source.size() > longest_header)
    return fail(ErrorCode::invalid,
                "an index of " + std::to_string(source.size()) + " bytes (at most 100000000)");
  Cursor in(source, 2 * longest_header);
  json::basic_parser<IndexHandler> parser((json::parse_options()));
  ZED_CHECK(parse(in, source.size(), parser));
  if (parser.handler().index.shards.empty())
    return fail(ErrorCode::invalid, "it is no index of shards: it has no \"weight_map\"");
  return std::move(parser.handler().index);
}

}  // namespace zed::model
