#include "bin/erlang_door.hpp"

#include <algorithm>

#include "api/vocabulary.hpp"
#include "beam/term_value.hpp"

namespace zed::bin {
namespace {

constexpr std::int64_t call_version = 1;

Error not_understood() {
  return {ErrorCode::invalid,
          "this call is not understood",
          {},
          "write {:zed, 1, Zed.Cluster, :jobs, []}, with one map or keyword list of arguments"};
}

Result<Value> arguments_of(const beam::Term& term) {
  if (const auto* list = term.as<beam::List>()) {
    if (list->items.empty()) return Value::map();
    // Either the argument list [%{…}] of a call, or the keyword list itself.
    bool wrapped = list->items.size() == 1 && list->items[0].tuple_of(2) == nullptr;
    if (wrapped) return arguments_of(list->items[0]);
  }
  return beam::value_of(term);
}

}  // namespace

Result<api::Request> request_of_call(const beam::Call& call) {
  const std::vector<beam::Term>* parts = call.request.tuple_of(5);
  if (parts == nullptr || !(*parts)[0].is_atom("zed")) return fail(not_understood());
  const std::int64_t* version = (*parts)[1].as<std::int64_t>();
  if (version == nullptr) return fail(not_understood());
  if (*version != call_version)
    return fail(ErrorCode::unsupported, "this controller speaks version 1 of the calls",
                "update clients/elixir or the controller");
  auto function = beam::text_of((*parts)[3]);
  if (!function) return fail(not_understood());
  std::replace(function->begin(), function->end(), '_', '-');
  ZED_TRY(Value arguments, arguments_of((*parts)[4]));
  return api::make_request(*function, arguments);
}

beam::Term answer_term(const Result<Value>& result) {
  if (result) return beam::tuple({beam::atom("ok"), beam::term_of(*result, api::is_member_name)});
  const Error& error = result.error();
  return beam::tuple(
      {beam::atom("error"), beam::atom(to_string(error.code)), beam::binary(error.describe())});
}

}  // namespace zed::bin
