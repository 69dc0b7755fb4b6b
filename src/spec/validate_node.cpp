// What `node`, `model` and `dataset` declare.

#include <algorithm>

#include "base/text.hpp"
#include "spec/validate.hpp"

namespace zed::spec {
namespace {

constexpr std::int64_t most_gpus = 64;

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 && std::all_of(text.begin(), text.end(), is_digit) &&
         std::stoi(std::string(text)) >= 1 && std::stoi(std::string(text)) <= 65535;
}

bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= 253 && text.front() != '-' && text.front() != '.' &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_word_character(c) || c == '-' || c == '.'; });
}

/// "host", "host:4370", "192.0.2.7", "fe80::1", "[fe80::1]:4370".
bool is_address(std::string_view text) {
  auto is_ipv6 = [](std::string_view host) {
    return host.size() <= 64 && host.find(':') != std::string_view::npos &&
           host.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
  };
  if (text.starts_with("[")) {
    std::size_t close = text.find(']');
    if (close == std::string_view::npos || !is_ipv6(text.substr(1, close - 1))) return false;
    std::string_view rest = text.substr(close + 1);
    return rest.empty() || (rest.front() == ':' && is_port(rest.substr(1)));
  }
  if (is_ipv6(text) && std::count(text.begin(), text.end(), ':') > 1) return true;
  std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return is_host(text);
  return is_host(text.substr(0, colon)) && is_port(text.substr(colon + 1));
}

void read_address(Reader& reader, const Argument& argument, DeclaredNode& node) {
  auto address = reader.word(argument.value, keyed(argument));
  if (address && is_address(*address))
    node.address = *address;
  else if (address)
    reader.error(argument.value.offset, quote(*address) + " is no host name or address",
                 "write for example \"server.lan\", \"10.0.0.5\" or \"10.0.0.5:4370\"");
}

void read_store(Reader& reader, const Argument& argument, DeclaredNode& node) {
  auto name = reader.atom(argument.value, keyed(argument));
  if (!name) return;
  node.store = enum_of<StoreKind>(*name);
  if (!node.store) reader.wrong(argument.value, keyed(argument), "`:zfs` or `:dir`");
}

void read_run_as(Reader& reader, const Argument& argument, DeclaredNode& node) {
  auto user = reader.word(argument.value, keyed(argument));
  if (!user) return;
  auto legal = [](char c) { return is_word_character(c) || c == '-' || c == '.'; };
  bool name = user->size() <= 32 && is_word_start(user->front()) &&
              std::all_of(user->begin(), user->end(), legal);
  if (*user == "root")
    reader.error(argument.value.offset, "jobs never run as root", "name an ordinary user");
  else if (!name)
    reader.error(argument.value.offset, quote(*user) + " is no user name");
  else
    node.run_as = *user;
}

void read_gpu(Reader& reader, const Met& met, DeclaredNode& node) {
  const Expression* model = reader.first(met);
  if (model == nullptr) return;
  DeclaredGpu gpu;
  gpu.model = reader.word(*model, "`gpu`").value_or("");
  reader.keywords(met, {"vram", "type", "count"}, false, [&](const Argument& argument) {
    if (*argument.key == "vram") {
      gpu.vram = reader.size(argument.value, "`vram:`");
    } else if (*argument.key == "count") {
      gpu.count = reader.integer(argument.value, "`count:`", 1, most_gpus).value_or(1);
    } else {
      auto type = reader.atom(argument.value, "`type:`");
      gpu.unified = type == "unified";
      if (type && !gpu.unified)
        reader.wrong(argument.value, "`type:`", "`:unified` (leave it out for dedicated memory)");
    }
  });
  node.gpus.push_back(std::move(gpu));
}

void read_root(Reader& reader, const Met& met, DeclaredNode& node) {
  const Expression* value = reader.only(met);
  auto root = value != nullptr ? reader.dataset(*value, "`dataset`") : std::nullopt;
  if (!root) return;
  auto& roots = node.dataset_roots;
  if (!reader.has_room(roots.size(), value->offset, "`node`")) return;
  if (std::find(roots.begin(), roots.end(), *root) != roots.end())
    reader.error(value->offset, "dataset \"" + root->str() + "\" is named twice for this node",
                 "keep one of them");
  else
    roots.push_back(*root);
}

void read_labels(Reader& reader, const Met& met, DeclaredNode& node) {
  const Expression* value = reader.only(met);
  if (value == nullptr) return;
  for (const Expression* item : reader.one_or_list(*value, "`labels`")) {
    auto label = reader.word(*item, "`labels`");
    if (!label) continue;
    if (std::find(node.labels.begin(), node.labels.end(), *label) != node.labels.end())
      reader.error(item->offset, "label " + quote(*label) + " is given twice", "keep one of them");
    else
      node.labels.push_back(*label);
  }
}

void read_in_node(Reader& reader, const Met& met, DeclaredNode& node) {
  if (met.verb.name == "gpu") return read_gpu(reader, met, node);
  if (met.verb.name == "dataset") return read_root(reader, met, node);
  if (met.verb.name == "labels") return read_labels(reader, met, node);
}

template <class Declared> void read_version(Reader& reader, const Met& met, Declared& declared) {
  if (const Expression* value = reader.only(met))
    declared.version = reader.word(*value, "`version`").value_or("");
}
template <class Declared> void read_file(Reader& reader, const Met& met, Declared& declared) {
  if (const Expression* value = reader.only(met)) declared.file = reader.text(*value, "`file`");
}

}  // namespace

std::optional<NodeDraft> read_node(Reader& reader, const Met& met) {
  NodeDraft draft;
  const Expression* name = reader.first(met);
  auto parsed = name != nullptr ? reader.node(*name, "`node`") : std::nullopt;
  draft.offset = name != nullptr ? name->offset : met.call.offset;
  reader.keywords(met, {"address", "pool", "store", "run_as"}, false,
                  [&](const Argument& argument) {
                    if (*argument.key == "address")
                      return read_address(reader, argument, draft.node);
                    if (*argument.key == "store") return read_store(reader, argument, draft.node);
                    if (*argument.key == "run_as") return read_run_as(reader, argument, draft.node);
                    draft.node.pool = reader.pool(argument.value, "`pool:`");
                  });
  if (met.call.block)
    reader.each(*met.call.block, Place::node,
                [&](const Met& inner) { read_in_node(reader, inner, draft.node); });
  if (!parsed) return std::nullopt;
  draft.node.name = *parsed;
  std::sort(draft.node.dataset_roots.begin(), draft.node.dataset_roots.end());
  std::sort(draft.node.labels.begin(), draft.node.labels.end());
  return draft;
}

std::optional<ModelDraft> read_model(Reader& reader, const Met& met) {
  ModelDraft draft;
  const Expression* value = reader.first(met);
  auto name = value != nullptr ? reader.component(*value, "`model`") : std::nullopt;
  draft.offset = draft.dataset_offset = value != nullptr ? value->offset : met.call.offset;
  reader.keywords(met, {}, false, [](const Argument&) {});
  auto read = [&](const Met& inner) {
    if (inner.verb.name == "version") return read_version(reader, inner, draft.model);
    if (inner.verb.name == "file") return read_file(reader, inner, draft.model);
    if (inner.verb.name == "requires") {
      draft.model.requirement = reader.requirement(inner);
      return;
    }
    const Expression* dataset = reader.only(inner);
    if (dataset == nullptr) return;
    draft.dataset_offset = dataset->offset;
    draft.model.dataset = reader.dataset(*dataset, "`dataset`").value_or(DatasetName());
  };
  if (met.call.block) reader.each(*met.call.block, Place::model, read);
  if (!name) return std::nullopt;
  draft.model.name = ModelName(*name);
  if (draft.model.dataset.empty()) draft.model.dataset = *DatasetName::parse("models/" + *name);
  return draft;
}

std::optional<DataDraft> read_data(Reader& reader, const Met& met) {
  DataDraft draft;
  const Expression* value = reader.first(met);
  auto name = value != nullptr ? reader.dataset(*value, "`dataset`") : std::nullopt;
  draft.offset = value != nullptr ? value->offset : met.call.offset;
  reader.keywords(met, {}, false, [](const Argument&) {});
  auto read = [&](const Met& inner) {
    if (inner.verb.name == "version") return read_version(reader, inner, draft.data);
    read_file(reader, inner, draft.data);
  };
  if (met.call.block) reader.each(*met.call.block, Place::data, read);
  if (!name) return std::nullopt;
  draft.data.dataset = *name;
  return draft;
}

}  // namespace zed::spec
