#include "store/zfs/zfs.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/json.hpp"
#include "base/text.hpp"
#include "store/zfs/errors.hpp"
#include "store/zfs/programs.hpp"

namespace zed::store::zfs {
namespace {

constexpr char fast_columns[] = "name,guid,createtxg";
constexpr char all_columns[] = "name,guid,createtxg,used,referenced,creation";
constexpr char property_columns[] = "name,property,value,source";
/// Snapshots a command: far below what an argument list may hold.
constexpr std::size_t batch = 500;

std::string text_of(const Value& value) {
  if (const std::string* text = value.as_text()) return *text;
  return to_json(value);
}

}  // namespace

Zfs::Zfs(std::unique_ptr<Commands> commands, std::string root)
    : commands_(std::move(commands)), root_(std::move(root)),
      pool_(root_.substr(0, root_.find('/'))) {}

bool Zfs::is_root(std::string_view root) {
  return DatasetName::parse(root).has_value();
}

std::optional<DatasetName> Zfs::relative(std::string_view full_name) const {
  if (!full_name.starts_with(root_ + "/")) return std::nullopt;
  auto name = DatasetName::parse(full_name.substr(root_.size() + 1));
  return name ? std::optional(std::move(*name)) : std::nullopt;
}

Result<std::string> Zfs::run(const std::string& what, Arguments arguments) const {
  const std::string& verb = arguments.at(0);
  bool only_looks = verb == "get" || verb == "list" || verb == "send";
  arguments.insert(arguments.begin(), "zfs");
  auto output = commands_->run(arguments, {});
  if (!only_looks) ++changes_;
  if (!output) return fail(std::move(output).error());
  if (!output->ok) return fail(error_of(what, output->err));
  return std::move(output->out);
}

Result<std::map<std::string, Facts>> Zfs::datasets(const std::string& full_name,
                                                   Reach reach) const {
  Arguments arguments{"get", "-Hp", "-t", "filesystem", "-o", property_columns};
  if (reach == Reach::tree) arguments.push_back("-r");
  arguments.insert(arguments.end(), {"all", full_name});
  ZED_TRY(auto text, run("look at " + full_name, std::move(arguments)));
  auto facts = gather(parse_properties(text));
  if (!facts.contains(full_name))
    return fail(ErrorCode::not_found, "there is no file system " + full_name);
  return facts;
}

Result<std::vector<SnapshotRow>> Zfs::all_snapshots(Columns columns) const {
  const char* wanted = columns == Columns::fast ? fast_columns : all_columns;
  ZED_TRY(auto text, run("list the snapshots of " + root_,
                         {"list", "-Hp", "-r", "-t", "snapshot", "-o", wanted, root_}));
  return parse_snapshots(text);
}

Result<std::vector<SnapshotRow>> Zfs::snapshots(const std::string& full_name) const {
  ZED_TRY(auto text,
          run("list the snapshots of " + full_name,
              {"list", "-Hp", "-d", "1", "-t", "snapshot", "-o", all_columns, full_name}));
  auto rows = parse_snapshots(text);
  std::erase_if(rows, [&](const SnapshotRow& row) { return row.dataset != full_name; });
  return rows;
}

Result<std::vector<BookmarkRow>> Zfs::bookmarks(const std::string& full_name, Reach reach) const {
  Arguments arguments{"list", "-Hp", "-t", "bookmark", "-o", fast_columns};
  if (reach == Reach::tree)
    arguments.emplace_back("-r");
  else
    arguments.insert(arguments.end(), {"-d", "1"});
  arguments.push_back(full_name);
  ZED_TRY(auto text, run("list the bookmarks of " + full_name, std::move(arguments)));
  auto rows = parse_bookmarks(text);
  if (reach == Reach::itself)
    std::erase_if(rows, [&](const BookmarkRow& row) { return row.dataset != full_name; });
  return rows;
}

Result<std::map<std::string, Facts>>
Zfs::snapshot_facts(const std::vector<std::string>& names) const {
  std::map<std::string, Facts> all;
  for (std::size_t at = 0; at < names.size(); at += batch) {
    Arguments arguments{
        "zfs", "get", "-Hp", "-t", "snapshot", "-s", "local,received,none", "-o", property_columns,
        "all"};
    auto end = std::min(names.size(), at + batch);
    arguments.insert(arguments.end(), names.begin() + static_cast<std::ptrdiff_t>(at),
                     names.begin() + static_cast<std::ptrdiff_t>(end));
    // It complains of those that are gone and tells of the others all the same.
    ZED_TRY(auto output, commands_->run(arguments, {}));
    all.merge(gather(parse_properties(output.out)));
  }
  return all;
}

std::optional<std::map<std::string, Properties>>
Zfs::own_properties(const std::vector<std::string>& names) const {
  std::map<std::string, Properties> all;
  for (std::size_t at = 0; at < names.size(); at += batch) {
    Arguments arguments{"zfs", "program", "-n", "-j", "--", pool_, "-"};
    auto end = std::min(names.size(), at + batch);
    arguments.insert(arguments.end(), names.begin() + static_cast<std::ptrdiff_t>(at),
                     names.begin() + static_cast<std::ptrdiff_t>(end));
    auto ran = commands_->run(arguments, own_properties_program);
    auto found = ran && ran->ok ? parse_own_properties(ran->out) : std::nullopt;
    if (!found) return std::nullopt;
    all.merge(*found);
  }
  return all;
}

std::string ProgramAnswer::text(const std::string& key) const {
  auto found = values.find(key);
  return found == values.end() ? std::string() : found->second;
}

int ProgramAnswer::error_number() const {
  std::string number = text("errno");
  return number.empty() ? EIO : std::atoi(number.c_str());
}

Result<ProgramAnswer> Zfs::program(const std::string& what, const std::string& text,
                                   Arguments arguments) const {
  // After "--" a number below zero is no option.
  Arguments command{"zfs", "program", "-j", "--", pool_, "-"};
  command.insert(command.end(), std::make_move_iterator(arguments.begin()),
                 std::make_move_iterator(arguments.end()));
  auto ran = commands_->run(command, text);
  ++changes_;
  ZED_TRY(auto output, std::move(ran));
  if (!output.ok) return fail(error_of(what, output.err));
  ZED_TRY(auto value, parse_json(trim(output.out)));
  const Value* returned = value.find("return");
  ProgramAnswer answer;
  if (returned == nullptr || returned->as_map() == nullptr)
    return fail(ErrorCode::io, what + ": the channel program returned no table");
  for (const Value::Member& member : *returned->as_map())
    answer.values[member.key] = text_of(member.value);
  return answer;
}

Status Zfs::sync() const {
  ZED_TRY(auto output, commands_->run({"zpool", "sync", pool_}, {}));
  if (output.ok) return {};
  Error error = error_of("sync pool " + pool_, output.err);
  // Only root may: an ordinary user sees what was written a few seconds later.
  if (error.code == ErrorCode::refused) return {};
  return fail(std::move(error));
}

std::vector<Mount> Zfs::mounts() const {
  std::ifstream file("/proc/self/mounts");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_mounts(text.str());
}

void Zfs::add_options(Arguments& arguments, const Properties& properties) {
  for (const auto& [name, value] : properties) {
    arguments.push_back("-o");
    arguments.push_back(std::string(prefix) + name + "=" + encode_value(value));
  }
}

}  // namespace zed::store::zfs
