// What a client asks for, by any door: a JSON body for an operation, a term for it, and the names
// that the white list of remote calls is asked about. The first byte chooses, the second names the
// operation.
#include <algorithm>
#include <cstdlib>

#include "api/operations.hpp"
#include "base/json.hpp"
#include "beam/etf.hpp"
#include "beam/wire.hpp"
#include "bin/erlang_door.hpp"

namespace {

using namespace zed;

void require(bool condition) {
  if (!condition) std::abort();
}

Value arguments_of(const api::Request& request) {
  return std::visit([](const auto& operation) { return to_value(operation); }, request);
}

/// What was understood is said again in our words, and understood as the same.
void check_understood(std::string_view name, const api::Request& request) {
  const Value said = arguments_of(request);
  auto again = api::make_request(name, said);
  require(again.has_value() && to_json(arguments_of(*again)) == to_json(said));
}

std::string_view operation_of(std::uint8_t number) {
  static const auto operations = api::all_operations();
  return operations[number % operations.size()].name;
}

void check_body(std::uint8_t number, const std::string& text) {
  auto arguments = parse_json(text, {64 << 10, 64});
  if (!arguments) return;
  const std::string_view name = operation_of(number);
  if (auto request = api::make_request(name, *arguments)) check_understood(name, *request);
}

void check_call(std::uint8_t number, std::span<const std::uint8_t> bytes) {
  auto term = beam::decode(bytes, {64 << 10, 4096, 64});
  if (!term) return;
  // As the arguments of an operation, and as a whole call.
  std::string function(operation_of(number));
  const beam::Call known{"shell@h",
                         "zed",
                         {},
                         beam::atom("tag"),
                         beam::tuple({beam::atom("zed"), 1, beam::atom("Elixir.Zed.Cluster"),
                                      beam::atom(function), *term})};
  auto asked = bin::request_of_call(known);
  if (asked)
    if (const auto* request = std::get_if<api::Request>(&*asked))
      check_understood(function, *request);
  const beam::Call any{"shell@h", "zed", {}, beam::atom("tag"), *term};
  (void)bin::request_of_call(any);
  if (const auto* list = term->as<beam::List>())
    (void)bin::request_of_rpc({"shell@h", 2, "Elixir.Zed.Cluster", function, list->items});
}

/// "module function arity".
void check_white_list(std::string_view text) {
  const std::size_t first = std::min(text.find(' '), text.size());
  const std::string_view module = text.substr(0, first);
  const std::string_view rest = text.substr(std::min(first + 1, text.size()));
  const std::size_t second = std::min(rest.find(' '), rest.size());
  const std::size_t arity = rest.size() - second;
  if (!bin::is_remote_operation(module, rest.substr(0, second), arity)) return;
  require(module == "Elixir.Zed.Cluster" && arity <= 1);
  std::string name(rest.substr(0, second));
  std::replace(name.begin(), name.end(), '_', '-');
  const auto operations = api::all_operations();
  require(std::any_of(operations.begin(), operations.end(),
                      [&name](const auto& operation) { return operation.name == name; }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::span<const std::uint8_t> bytes(data + 2, size - 2);
  const std::string text = beam::string_of(bytes);
  switch (data[0] % 3) {
  case 0: check_body(data[1], text); break;
  case 1: check_call(data[1], bytes); break;
  default: check_white_list(text); break;
  }
  return 0;
}
