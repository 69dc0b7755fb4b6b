#include "beam/control.hpp"

namespace zed::beam::control {
namespace {

enum class Op : std::int64_t {
  link = 1,
  send = 2,
  exit = 3,
  unlink = 4,
  node_link = 5,
  reg_send = 6,
  group_leader = 7,
  exit2 = 8,
  send_tt = 12,
  exit_tt = 13,
  reg_send_tt = 16,
  exit2_tt = 18,
  monitor = 19,
  demonitor = 20,
  monitor_exit = 21,
  send_sender = 22,
  send_sender_tt = 23,
  spawn_request = 29,
  spawn_request_tt = 30,
  spawn_reply = 31,
  spawn_reply_tt = 32,
  alias_send = 33,
  alias_send_tt = 34,
  unlink_id = 35,
  unlink_id_ack = 36,
};

constexpr std::uint64_t spawn_linked = 1, spawn_monitored = 2;

Term op(Op number) {
  return Term(static_cast<std::int64_t>(number));
}

tl::unexpected<Error> malformed(const Term& control) {
  return fail(ErrorCode::corrupt, "malformed control message " + show(control, 200));
}

/// Reads a control tuple's members by position; a missing or wrong one makes it malformed.
class Fields {
public:
  explicit Fields(const std::vector<Term>& items) : items_(items) {}

  template <class T> T get(std::size_t position) {
    const T* found = position < items_.size() ? items_[position].as<T>() : nullptr;
    if (found != nullptr) return *found;
    whole_ = false;
    return T{};
  }
  Term term(std::size_t position) {
    if (position < items_.size()) return items_[position];
    whole_ = false;
    return {};
  }
  std::uint64_t id(std::size_t position) {
    if (position < items_.size())
      if (auto* large = items_[position].as<std::uint64_t>()) return *large;
    const auto small = get<std::int64_t>(position);
    if (small < 0) whole_ = false;
    return static_cast<std::uint64_t>(small);
  }
  void require(bool condition) { whole_ = whole_ && condition; }
  bool whole() const { return whole_; }

private:
  const std::vector<Term>& items_;
  bool whole_ = true;
};

SpawnRequest spawn_request(Fields& fields, Term arguments) {
  SpawnRequest request;
  request.id = fields.get<Reference>(1);
  request.from = fields.get<Pid>(2);
  const Term call = fields.term(4);
  if (const auto* parts = call.tuple_of(3)) {
    Fields mfa(*parts);
    request.module = mfa.get<Atom>(0).name;
    request.function = mfa.get<Atom>(1).name;
    request.arity = mfa.get<std::int64_t>(2);
    fields.require(mfa.whole());
  } else {
    fields.require(false);
  }
  for (const Term& option : fields.get<List>(5).items) {
    const auto* pair = option.tuple_of(2);
    const Term& name = pair != nullptr ? (*pair)[0] : option;
    request.monitored = request.monitored || name.is_atom("monitor");
    request.linked = request.linked || name.is_atom("link");
  }
  request.arguments = std::move(arguments);
  return request;
}

Message message_of(Op number, Fields& fields, Term payload) {
  switch (number) {
  case Op::send:
  case Op::send_tt:
  case Op::send_sender:
  case Op::send_sender_tt: return Send{fields.get<Pid>(2), std::move(payload)};
  case Op::reg_send:
  case Op::reg_send_tt:
    return SendToName{fields.get<Pid>(1), fields.get<Atom>(3).name, std::move(payload)};
  case Op::alias_send:
  case Op::alias_send_tt: return SendToAlias{fields.get<Reference>(2), std::move(payload)};
  case Op::monitor: {
    Monitor monitor{fields.get<Pid>(1), fields.term(2), fields.get<Reference>(3)};
    fields.require(monitor.target.as<Pid>() != nullptr || monitor.target.as<Atom>() != nullptr);
    return monitor;
  }
  case Op::demonitor: return Demonitor{fields.get<Pid>(1), fields.get<Reference>(3)};
  case Op::monitor_exit: return MonitorExit{fields.get<Reference>(3)};
  case Op::link: return Link{fields.get<Pid>(1), fields.get<Pid>(2)};
  case Op::unlink_id: return Unlink{fields.id(1), fields.get<Pid>(2), fields.get<Pid>(3)};
  case Op::exit:
  case Op::exit_tt: return Exit{fields.get<Pid>(1), fields.get<Pid>(2)};
  case Op::spawn_request:
  case Op::spawn_request_tt: return spawn_request(fields, std::move(payload));
  case Op::unlink:
  case Op::node_link:
  case Op::group_leader:
  case Op::exit2:
  case Op::exit2_tt:
  case Op::spawn_reply:
  case Op::spawn_reply_tt:
  case Op::unlink_id_ack: return Ignored{};
  }
  fields.require(false);
  return Ignored{};
}

bool carries_payload(Op number) {
  switch (number) {
  case Op::send:
  case Op::send_tt:
  case Op::send_sender:
  case Op::send_sender_tt:
  case Op::reg_send:
  case Op::reg_send_tt:
  case Op::alias_send:
  case Op::alias_send_tt:
  case Op::spawn_request:
  case Op::spawn_request_tt: return true;
  default: return false;
  }
}

bool is_known(std::int64_t number) {
  return (number >= 1 && number <= 8) || number == 12 || number == 13 || number == 16 ||
         (number >= 18 && number <= 23) || (number >= 29 && number <= 36);
}

}  // namespace

Result<Message> parse(Packet packet) {
  const Tuple* tuple = packet.control.as<Tuple>();
  if (tuple == nullptr || tuple->items.empty()) return malformed(packet.control);
  const std::int64_t* number = tuple->items[0].as<std::int64_t>();
  if (number == nullptr) return malformed(packet.control);
  if (!is_known(*number))
    return fail(ErrorCode::unsupported, "unknown control message " + show(packet.control, 200));
  const Op which{*number};
  if (carries_payload(which) != packet.payload.has_value()) return malformed(packet.control);
  Fields fields(tuple->items);
  Message message = message_of(which, fields, packet.payload ? std::move(*packet.payload) : Term());
  if (!fields.whole()) return malformed(packet.control);
  return message;
}

Term send(const Pid& to) {
  return tuple({op(Op::send), atom(""), to});
}
Term send_to_name(const Pid& from, std::string_view name) {
  return tuple({op(Op::reg_send), from, atom(""), atom(name)});
}
Term send_to_alias(const Pid& from, const Reference& alias) {
  return tuple({op(Op::alias_send), from, alias});
}
Term monitor(const Pid& from, const Pid& target, const Reference& reference) {
  return tuple({op(Op::monitor), from, target, reference});
}
Term demonitor(const Pid& from, const Pid& target, const Reference& reference) {
  return tuple({op(Op::demonitor), from, target, reference});
}
Term monitor_exit(const Term& from, const Pid& to, const Reference& reference, Term reason) {
  return tuple({op(Op::monitor_exit), from, to, reference, std::move(reason)});
}
Term exit(const Pid& from, const Pid& to, Term reason) {
  return tuple({op(Op::exit), from, to, std::move(reason)});
}
Term unlink_ack(const Unlink& unlink) {
  return tuple({op(Op::unlink_id_ack), unlink.id, unlink.to, unlink.from});
}
Term spawned(const SpawnRequest& request, const Pid& process) {
  const std::uint64_t flags =
      (request.linked ? spawn_linked : 0) | (request.monitored ? spawn_monitored : 0);
  return tuple({op(Op::spawn_reply), request.id, request.from, flags, process});
}
Term spawn_refused(const SpawnRequest& request, std::string_view why) {
  return tuple({op(Op::spawn_reply), request.id, request.from, 0, atom(why)});
}

}  // namespace zed::beam::control
