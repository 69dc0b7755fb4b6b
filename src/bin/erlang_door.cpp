#include "bin/erlang_door.hpp"

#include <algorithm>
#include <array>

#include "api/vocabulary.hpp"
#include "base/describe.hpp"
#include "beam/term_value.hpp"

namespace zed::bin {
namespace {

constexpr std::int64_t call_version = 1;
constexpr std::string_view module_name = "Elixir.Zed.Cluster";
/// An operation's name is shorter; what is longer is not looked at.
constexpr std::size_t longest_name = 40;

/// Members that hold the name of a node, a job or a model, or a list of such.
constexpr std::array<std::string_view, 13> name_members = {
    "name",  "node", "nodes",          "home",    "source", "target", "controller",
    "model", "job",  "journal_second", "nearest", "second", "on"};

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

std::string operation_name(std::string_view function) {
  std::string name(function);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

Result<ShellRequest> shell_request(std::string_view function, const Value& arguments) {
  if (function == "unwatch") return ShellRequest{UnwatchEvents{}};
  if (function == "watch") {
    const Value* after = arguments.find("after");
    if (after == nullptr || after->is_null()) return ShellRequest{WatchEvents{}};
    auto number = from_value<std::uint64_t>(*after);
    if (!number) return fail(std::move(number).error().with("after").with("watch"));
    return ShellRequest{WatchEvents{*number}};
  }
  ZED_TRY(api::Request request, api::make_request(operation_name(function), arguments));
  return ShellRequest{std::move(request)};
}

class WithAtoms {
public:
  explicit WithAtoms(const DeclaredNames& names) : names_(names) {}

  Value operator()(const Value& value, bool is_name = false) const {
    if (const auto* items = value.as_list()) {
      Value list = Value::list();
      for (const Value& item : *items)
        list.push((*this)(item, is_name));
      return list;
    }
    if (value.as_map() != nullptr) return members(value);
    const std::string* text = value.as_text();
    if (is_name && text != nullptr && names_.contains(*text)) return Symbol{*text};
    return value;
  }

private:
  Value members(const Value& value) const {
    // A checkpoint's name is its job's own word, even if a node is called the same.
    const bool is_checkpoint = value.find("seq") != nullptr;
    Value map = Value::map();
    for (const Value::Member& member : *value.as_map()) {
      const bool is_name =
          std::find(name_members.begin(), name_members.end(), member.key) != name_members.end() &&
          !(is_checkpoint && member.key == "name");
      map.set(member.key, (*this)(member.value, is_name));
    }
    return map;
  }

  const DeclaredNames& names_;
};

}  // namespace

Result<ShellRequest> request_of_call(const beam::Call& call) {
  const std::vector<beam::Term>* parts = call.request.tuple_of(5);
  if (parts == nullptr || !(*parts)[0].is_atom("zed")) return fail(not_understood());
  const std::int64_t* version = (*parts)[1].as<std::int64_t>();
  if (version == nullptr) return fail(not_understood());
  if (*version != call_version)
    return fail(ErrorCode::unsupported, "this controller speaks version 1 of the calls",
                "update clients/elixir or the controller");
  auto function = beam::text_of((*parts)[3]);
  if (!function || !(*parts)[2].is_atom(module_name)) return fail(not_understood());
  ZED_TRY(Value arguments, arguments_of((*parts)[4]));
  return shell_request(*function, arguments);
}

bool is_remote_operation(std::string_view module, std::string_view function, std::size_t arity) {
  if (module != module_name || arity > 1 || function.size() > longest_name) return false;
  const std::string name = operation_name(function);
  const auto operations = api::all_operations();
  return std::any_of(operations.begin(), operations.end(),
                     [&name](const api::OperationInfo& info) { return info.name == name; });
}

Result<api::Request> request_of_rpc(const beam::RpcCall& call) {
  Value arguments;
  if (!call.arguments.empty()) {
    ZED_TRY(arguments, arguments_of(call.arguments.front()));
  }
  return api::make_request(operation_name(call.function), arguments);
}

DeclaredNames::DeclaredNames(const Cluster& cluster) {
  for (const DeclaredNode& node : cluster.nodes)
    names_.insert(node.name.str());
  for (const DeclaredModel& model : cluster.models)
    names_.insert(model.name.str());
  for (const Job& job : cluster.jobs)
    names_.insert(job.name.str());
}

beam::Term answer_term(const Result<Value>& result, const DeclaredNames& names) {
  if (result)
    return beam::tuple(
        {beam::atom("ok"), beam::term_of(WithAtoms(names)(*result), api::is_member_name)});
  const Error& error = result.error();
  return beam::tuple(
      {beam::atom("error"), beam::atom(to_string(error.code)), beam::binary(error.describe())});
}

beam::Term event_term(const api::FleetEvent& event) {
  return beam::tuple(
      {beam::atom("zed_event"), beam::term_of(to_value(event), api::is_member_name)});
}

}  // namespace zed::bin
