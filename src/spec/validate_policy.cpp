// What `replicate` declares.

#include <algorithm>

#include "spec/filter.hpp"
#include "spec/quantity.hpp"
#include "spec/validate.hpp"

namespace zed::spec {
namespace {

void read_to(Reader& reader, const Met& met, PolicyDraft& draft) {
  if (!reader.positional(met)) return;
  const auto& arguments = met.call.arguments;
  if (arguments.size() > 1)
    return reader.error(arguments[1].offset(), "`to` takes one name or one list",
                        "write for example `to [:workstation, :macbook]`");
  auto& targets = draft.policy.targets;
  for (const Expression* item : reader.one_or_list(arguments.front().value, "`to`")) {
    auto node = reader.node(*item, "`to`");
    if (!node) continue;
    if (std::find(targets.begin(), targets.end(), *node) != targets.end()) {
      reader.error(item->offset, "target " + quote(item->raw) + " is named twice",
                   "keep one of them");
      continue;
    }
    targets.push_back(*node);
    draft.nodes.push_back({*node, item->offset});
  }
}

/// Where in the file an offset of a string's value is: exact for a plain string whose escapes are
/// one character each, else the string itself.
std::size_t offset_in_file(const Expression& value, std::size_t offset) {
  if (value.kind != Expression::Kind::string) return value.offset;
  std::size_t raw = 1;  // behind the quote
  for (std::size_t i = 0; i < offset && raw < value.raw.size(); ++i, ++raw) {
    if (value.raw[raw] != '\\') continue;
    ++raw;
    if (value.raw[raw] == 'x' || value.raw[raw] == 'u' || value.raw[raw] == '\n')
      return value.offset;
  }
  return value.offset + raw;
}

void read_filter(Reader& reader, const Met& met, ReplicationPolicy& policy) {
  const Expression* value = reader.only(met);
  auto text = value != nullptr ? reader.text(*value, "`filter`") : std::nullopt;
  if (!text) return;
  auto parsed = parse_filter(*text);
  if (auto* fault = std::get_if<FilterFault>(&parsed))
    reader.error(offset_in_file(*value, fault->offset), fault->message, fault->hint);
  else
    policy.filter = *text;
}

void read_rate(Reader& reader, const Met& met, ReplicationPolicy& policy) {
  const Expression* value = reader.only(met);
  if (value == nullptr) return;
  if (!value->is_string()) {
    reader.wrong(*value, "`max_rate`", "a rate",
                 "write for example \"200 MB/s\" (bytes) or \"50 Mbit/s\" (bits)");
    return;
  }
  auto rate = parse_rate(value->text);
  if (rate)
    policy.max_rate = *rate;
  else
    reader.error(value->offset, rate.error().message, rate.error().hint);
}

void read_in_policy(Reader& reader, const Met& met, PolicyDraft& draft) {
  ReplicationPolicy& policy = draft.policy;
  if (met.verb.name == "to") return read_to(reader, met, draft);
  if (met.verb.name == "filter") return read_filter(reader, met, policy);
  if (met.verb.name == "max_rate") return read_rate(reader, met, policy);
  if (met.verb.name == "keep") {
    policy.retention = reader.retention(met);
    return;
  }
  const Expression* value = reader.only(met);
  if (value == nullptr) return;
  if (met.verb.name == "every") {
    policy.every = reader.duration(*value, "`every`");
  } else if (auto node = reader.node(*value, "`from`")) {
    policy.source = *node;
    draft.nodes.push_back({*node, value->offset});
  }
}

/// Only what is not there at all: what is there and wrong has been reported.
void check_ends(Reader& reader, const Met& met, const PolicyDraft& draft) {
  const Block& block = *met.call.block;
  auto has = [&](std::string_view verb) {
    return std::any_of(block.calls.begin(), block.calls.end(),
                       [&](const Call& call) { return call.name == verb; });
  };
  bool broken = std::any_of(block.calls.begin(), block.calls.end(),
                            [](const Call& call) { return call.broken; });
  if (!has("from") && !broken)
    reader.error(met.call.offset, "this policy does not say where from", "add `from :server`");
  if (!has("to") && !broken)
    reader.error(met.call.offset, "this policy does not say where to",
                 "add `to [:workstation, :macbook]`");
  const auto& targets = draft.policy.targets;
  if (draft.policy.source.empty()) return;
  if (std::find(targets.begin(), targets.end(), draft.policy.source) == targets.end()) return;
  for (const Call& call : block.calls)
    if (call.name == "to")
      reader.error(call.offset, "`" + draft.policy.source.str() + "` is source and target at once",
                   "take it out of `to`");
}

}  // namespace

std::optional<PolicyDraft> read_policy(Reader& reader, const Met& met) {
  PolicyDraft draft;
  const Expression* value = reader.first(met);
  auto name = value != nullptr ? reader.atom(*value, "`replicate`") : std::nullopt;
  draft.offset = value != nullptr ? value->offset : met.call.offset;
  reader.keywords(met, {}, false, [](const Argument&) {});
  if (met.call.block) {
    reader.each(*met.call.block, Place::replicate,
                [&](const Met& inner) { read_in_policy(reader, inner, draft); });
    check_ends(reader, met, draft);
  }
  if (!name) return std::nullopt;
  auto selector = DatasetName::parse(*name);
  if (!selector) {
    reader.error(value->offset, selector.error().message, selector.error().hint);
    return std::nullopt;
  }
  draft.policy.name = *name;
  draft.policy.selector = *selector;
  std::sort(draft.policy.targets.begin(), draft.policy.targets.end());
  return draft;
}

}  // namespace zed::spec
