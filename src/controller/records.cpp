#include "controller/records.hpp"

#include "base/json.hpp"

namespace zed::controller {

std::string encode_record(const Record& record) {
  return to_json(to_value(record));
}

Result<Record> decode_record(std::string_view text) {
  auto value = parse_json(text);
  if (!value)
    return fail(Error{ErrorCode::corrupt, value.error().message, {}, {}}.with("read a record"));
  auto record = from_value<Record>(*value);
  if (record) return record;
  Error error = record.error();
  if (error.code == ErrorCode::unsupported)
    return fail(ErrorCode::unsupported,
                "the journal has a record of a kind this version lacks: " + error.message,
                "start the version of zed-controller that wrote it, or a newer one");
  error.code = ErrorCode::corrupt;
  return fail(std::move(error).with("read a record"));
}

}  // namespace zed::controller
