#include "store/zfs/host_send.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/text.hpp"
#include "store/zfs/errors.hpp"
#include "store/zfs/output.hpp"

namespace zed::store {
namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

/// Found on Linux, FreeBSD and macOS; an ordinary user's own path often lacks the first two.
constexpr char remote_path[] =
    "PATH=/usr/sbin:/sbin:/usr/local/sbin:/usr/local/zfs/bin:/usr/bin:/bin:/usr/local/bin";
/// On the dataset there while a stream of ours is unfinished: the id of its snapshot.
constexpr char sync_mark[] = "sync";
/// Far below what one argument may be (128 KiB on Linux).
constexpr std::size_t longest_command = std::size_t{32} << 10;
constexpr std::size_t block_size = std::size_t{1} << 20;
constexpr int ssh_failed = 255;
constexpr int not_installed = 127;

/// What a copy elsewhere has no use for: promises that hold on this machine only.
constexpr std::array<std::string_view, 3> own_to_us{property::intent, "held", "importing"};

Words zfs_words(std::initializer_list<std::string> arguments) {
  Words words{"env", "LC_ALL=C", remote_path, "zfs"};
  words.insert(words.end(), arguments);
  return words;
}

std::string full_name(const std::string& property) {
  return std::string(zfs::prefix) + property;
}

/// One after the other on one connection: each costs a handshake. The first that fails is the last.
std::string remote_line(const std::vector<Words>& commands) {
  std::vector<std::string> lines;
  lines.reserve(commands.size());
  for (const Words& words : commands)
    lines.push_back(quoted_remote(words));
  return join(lines, " && ");
}

/// As many `zfs set` as it takes, each far below what a command line may hold.
std::vector<Words> setting(const Properties& properties, const std::string& on) {
  std::vector<Words> commands;
  std::size_t size = longest_command;
  for (const auto& [name, value] : properties) {
    std::string assignment = full_name(name) + "=" + encode_remote_value(value);
    if (size + assignment.size() > longest_command) {
      commands.push_back(zfs_words({"set"}));
      size = 0;
    }
    size += assignment.size() + 3;
    commands.back().push_back(std::move(assignment));
  }
  for (Words& words : commands)
    words.push_back(on);
  return commands;
}

Properties to_carry(const Properties& properties) {
  Properties carried = properties;
  std::erase_if(carried, [](const auto& item) {
    return std::find(own_to_us.begin(), own_to_us.end(), item.first) != own_to_us.end();
  });
  return carried;
}

using zfs::Complaint;

/// What ssh itself says. "%" in a hint stands for the destination.
constexpr std::array ssh_rows{
    Complaint{"host key verification failed", ErrorCode::refused,
              "as the agent's user: ssh % once by hand, compare the key, and accept it"},
    Complaint{"remote host identification has changed", ErrorCode::refused,
              "its key is another than before: find out why, then ssh-keygen -R HOST"},
    Complaint{"permission denied", ErrorCode::refused,
              "as the agent's user: ssh-copy-id %, so that ssh asks for no password"},
    Complaint{"too many authentication failures", ErrorCode::refused, "ssh-copy-id %"},
    Complaint{"could not resolve hostname", ErrorCode::not_found, "write its address"},
    Complaint{"name or service not known", ErrorCode::not_found, "write its address"},
    Complaint{"connection refused", ErrorCode::unavailable, "is sshd running there?"},
    Complaint{"no route to host", ErrorCode::unavailable, "try again when it is up"},
    Complaint{"timed out", ErrorCode::unavailable, "try again when it is up"},
    Complaint{"not responding", ErrorCode::unavailable, "again: it goes on where it was"},
};

std::string with_destination(std::string_view hint, const std::string& destination) {
  std::string text(hint);
  if (std::size_t at = text.find('%'); at != std::string::npos) text.replace(at, 1, destination);
  return text;
}

std::string last_line(const std::string& text) {
  std::string_view rest = trim(text);
  std::size_t at = rest.find_last_of('\n');
  return percent_encode(trim(at == std::string_view::npos ? rest : rest.substr(at + 1)));
}

}  // namespace

std::string quoted_remote(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    ZED_ASSERT(std::all_of(word.begin(), word.end(), [](char c) {
      return c > 0x1f && c < 0x7f && c != '\'' && c != '\\' && c != '!';
    }));
    line += (line.empty() ? "'" : " '") + word + "'";
  }
  return line;
}

std::string encode_remote_value(std::string_view value) {
  std::string text;
  for (char c : zfs::encode_value(value)) {
    switch (c) {
    case '\'': text += "%27"; break;
    case '\\': text += "%5C"; break;
    case '!': text += "%21"; break;
    default: text += c;
    }
  }
  return text;
}

Error host_error(const std::string& what, const std::string& destination,
                 const zfs::Output& output) {
  const std::string said = lower(output.err);
  if (output.status != ssh_failed) {
    if (output.status == not_installed)
      return {ErrorCode::unsupported,
              what + ": " + destination + " has no `zfs` command",
              {},
              "install OpenZFS there"};
    return zfs::error_of(what + " on " + destination, output.err);
  }
  Error error{ErrorCode::unavailable,
              what + ": ssh to " + destination + ": " +
                  (output.err.empty() ? "it ended" : last_line(output.err)),
              {},
              "again: it goes on where it was"};
  if (const Complaint* known = zfs::find_complaint(ssh_rows, said)) {
    error.code = known->code;
    error.hint = with_destination(known->hint, destination);
  }
  return error;
}

struct HostSend::Remote {
  bool is_there = false;
  std::string token;
  std::string mark;  ///< of a stream of ours that is unfinished
  std::string uuid;
  struct Taken {
    std::string name;  ///< the word
    std::uint64_t guid = 0;
    std::uint64_t createtxg = 0;
  };
  std::vector<Taken> snapshots;  ///< oldest first

  const Taken* with_guid(std::uint64_t guid) const {
    auto found = std::find_if(snapshots.begin(), snapshots.end(),
                              [guid](const Taken& taken) { return taken.guid == guid; });
    return found == snapshots.end() ? nullptr : &*found;
  }
};

HostSend::HostSend(env::Store& store, std::unique_ptr<zfs::Commands> commands, std::string ssh)
    : store_(store), commands_(std::move(commands)), ssh_(std::move(ssh)) {}

std::vector<std::string> HostSend::ssh_command(const std::string& remote) const {
  // Nobody is there to answer questions, and a key that nobody has seen is not taken.
  return {ssh_,  "-T",
          "-a",  "-x",
          "-o",  "BatchMode=yes",
          "-o",  "StrictHostKeyChecking=yes",
          "-o",  "ConnectTimeout=20",
          "-o",  "ServerAliveInterval=15",
          "-o",  "ServerAliveCountMax=4",
          "--",  destination_,
          remote};
}

Status HostSend::not_cancelled() const {
  if (!cancelled_) return {};
  return fail(ErrorCode::cancelled, "the transfer to " + destination_ + " was cancelled");
}

Result<zfs::Output> HostSend::ask(const std::string& what, const RemoteCommands& commands) {
  ZED_CHECK(not_cancelled());
  ZED_TRY(auto output, commands_->run(ssh_command(remote_line(commands)), {}));
  if (!output.ok) return fail(host_error(what, destination_, output));
  return output;
}

Result<HostSend::Remote> HostSend::look(const SendToHost& wanted) {
  const std::string columns = "guid,createtxg,receive_resume_token," + full_name(sync_mark) + "," +
                              full_name(property::uuid);
  ZED_CHECK(not_cancelled());
  ZED_TRY(auto output,
          commands_->run(ssh_command(quoted_remote(
                             zfs_words({"get", "-Hp", "-d", "1", "-t", "filesystem,snapshot", "-o",
                                        "name,property,value,source", columns, wanted.target}))),
                         {}));
  Remote remote;
  if (!output.ok) {
    Error error = host_error("look at " + wanted.target, destination_, output);
    if (output.status != ssh_failed && error.code == ErrorCode::not_found) return remote;
    return fail(std::move(error));
  }
  for (const auto& [name, facts] : zfs::gather(zfs::parse_properties(output.out))) {
    if (name == wanted.target) {
      remote.is_there = true;
      remote.token = facts.text("receive_resume_token");
      if (auto mark = facts.own.find(sync_mark); mark != facts.own.end())
        remote.mark = mark->second;
      if (auto id = facts.own.find(property::uuid); id != facts.own.end()) remote.uuid = id->second;
    } else if (name.starts_with(wanted.target + "@")) {
      remote.snapshots.push_back(
          {name.substr(wanted.target.size() + 1), facts.number("guid"), facts.number("createtxg")});
    }
  }
  std::sort(remote.snapshots.begin(), remote.snapshots.end(),
            [](const auto& a, const auto& b) { return a.createtxg < b.createtxg; });
  return remote;
}

Result<env::SendRequest> HostSend::plan(const SendToHost& wanted, const Dataset& dataset,
                                        const Snapshot& snapshot, const Remote& remote) const {
  const std::string there = wanted.target + " on " + destination_;
  env::SendRequest request{dataset.name, snapshot.id, std::nullopt, StreamKind::zfs, remote.token};
  if (!remote.token.empty() && remote.mark.empty())
    return fail(ErrorCode::busy, there + " has an unfinished receive that is not Zed's",
                "finish it there, or end it: zfs receive -A " + wanted.target);
  const bool same_word =
      std::any_of(remote.snapshots.begin(), remote.snapshots.end(),
                  [&](const auto& taken) { return taken.name == snapshot.name; });
  if (same_word)
    return fail(ErrorCode::conflict, there + " has another snapshot @" + snapshot.name,
                "name another dataset, or rename that snapshot there");
  if (remote.snapshots.empty()) {
    if (remote.is_there && remote.token.empty())
      return fail(ErrorCode::exists,
                  there + " is there already, and no copy of " + dataset.name.str(),
                  "name another dataset; or destroy or rename that one there");
    return request;
  }
  const auto& newest = remote.snapshots.back();
  std::uint64_t base_txg = 0;
  for (const Snapshot& known : dataset.snapshots)
    if (known.guid == newest.guid) {
      request.base = known.id;
      base_txg = known.createtxg;
    }
  for (const Bookmark& known : dataset.bookmarks)
    if (!request.base && known.guid == newest.guid) {
      request.base = known.id;
      base_txg = known.createtxg;
    }
  if (!request.base)
    return fail(ErrorCode::conflict,
                "the newest snapshot of " + there + ", @" + newest.name + ", is none of " +
                    dataset.name.str() + "'s here",
                "name another dataset; or rename the one that is there");
  if (base_txg >= snapshot.createtxg)
    return fail(ErrorCode::conflict,
                there + " has @" + newest.name + ", which is newer than @" + snapshot.name,
                "send a newer snapshot, or name another dataset");
  return request;
}

/// A token of another stream is dropped, if that stream was ours.
Result<std::unique_ptr<env::SendStream>>
HostSend::open(const SendToHost& wanted, env::SendRequest request, const Remote& remote) {
  auto stream = store_.send(request);
  const bool other_stream =
      !stream && !request.resume_token.empty() &&
      (stream.error().code == ErrorCode::stale || stream.error().code == ErrorCode::invalid);
  if (!other_stream || remote.mark.empty()) return stream;
  ZED_CHECK(ask("drop what an earlier stream left of " + wanted.target,
                {zfs_words({"receive", "-A", wanted.target})}));
  request.resume_token.clear();
  return store_.send(request);
}

HostSend::RemoteCommands HostSend::receiving(const SendToHost& wanted, const Remote& remote) {
  const std::string mark = full_name(sync_mark) + "=" + wanted.snapshot.str();
  RemoteCommands commands;
  if (remote.is_there && remote.mark != wanted.snapshot.str())
    commands.push_back(zfs_words({"set", mark, wanted.target}));
  const std::string parent = wanted.target.substr(0, wanted.target.find_last_of('/'));
  if (!remote.is_there && parent.find('/') != std::string::npos)  // else it is the pool
    commands.push_back(zfs_words({"create", "-p", parent}));
  commands.push_back(zfs_words({"receive", "-s", "-u", "-o", "canmount=noauto", "-o", "readonly=on",
                                "-o", "setuid=off", "-o", "devices=off", "-o", mark,
                                wanted.target + "@" + wanted.snapshot_name}));
  return commands;
}

Result<Bytes> HostSend::pump(const SendToHost& wanted, const Remote& remote,
                             env::SendStream& stream, const ReportSent& report) {
  const std::string what = "receive " + wanted.target + "@" + wanted.snapshot_name;
  ZED_TRY(auto child, commands_->start(ssh_command(remote_line(receiving(wanted, remote))),
                                       zfs::Commands::Pipe::to_it));
  {
    const std::lock_guard lock(child_mutex_);
    child_ = child.get();
  }
  // Also when we return early: nobody may kill a child that is gone.
  struct Forget {
    HostSend& self;
    ~Forget() {
      const std::lock_guard lock(self.child_mutex_);
      self.child_ = nullptr;
    }
  } forget{*this};
  if (cancelled_) child->kill();  // it was asked for between the check and the start
  std::vector<std::byte> block(block_size);
  Bytes moved;
  const auto began = Clock::now();
  auto told = began;
  for (;;) {
    ZED_TRY(std::size_t n, stream.read(block));
    if (n == 0) break;
    auto written = child->write({block.data(), n});
    if (!written && written.error().code != ErrorCode::unavailable)
      return fail(std::move(written).error());
    if (!written) break;  // its own words, from finish(), say why
    moved += Bytes{static_cast<std::int64_t>(n)};
    const auto now = Clock::now();
    if (now - told < std::chrono::seconds(1)) continue;
    told = now;
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - began).count();
    report(stream.resumed_at() + moved, stream.total(), Bytes{moved.value * 1000 / ms});
  }
  auto output = child->finish();
  ZED_CHECK(not_cancelled());
  if (!output) return fail(std::move(output).error());
  if (!output->ok) return fail(host_error(what, destination_, *output));
  return moved;
}

Status HostSend::dress(const SendToHost& wanted, const Dataset& dataset, const Snapshot& snapshot) {
  const std::string full = wanted.target + "@" + wanted.snapshot_name;
  Properties of_snapshot = to_carry(snapshot.properties);
  // One that a person took has no id of its own; everywhere else it has to have one.
  of_snapshot.emplace(property::id, snapshot.id.str());
  const Properties of_dataset = to_carry(dataset.properties);
  RemoteCommands sets = setting(of_snapshot, full);
  for (std::vector<std::string>& words : setting(of_dataset, wanted.target))
    sets.push_back(std::move(words));
  // All but the last by themselves: together they may be longer than a command line.
  while (sets.size() > 2) {
    ZED_CHECK(ask("set the properties of " + full, {sets.front()}));
    sets.erase(sets.begin());
  }
  sets.push_back(
      zfs_words({"get", "-Hp", "-o", "name,property,value,source", "all", wanted.target, full}));
  ZED_TRY(auto output, ask("set the properties of " + full, sets));
  auto facts = zfs::gather(zfs::parse_properties(output.out));
  auto has = [&facts](const std::string& name, const Properties& properties) {
    const Properties& own = facts[name].own;
    return std::all_of(properties.begin(), properties.end(), [&own](const auto& item) {
      auto found = own.find(item.first);
      return found != own.end() && found->second == item.second;
    });
  };
  if (!has(wanted.target, of_dataset) || !has(full, of_snapshot))
    return fail(ErrorCode::io,
                full + " on " + destination_ + " does not have the properties that were set",
                "again");
  // Last: until here a repeated run knows that it is not done.
  ZED_CHECK(ask("finish " + wanted.target,
                {zfs_words({"inherit", full_name(sync_mark), wanted.target})}));
  return {};
}

Result<HostSent> HostSend::run(const SendToHost& wanted, const ReportSent& report) {
  destination_ = wanted.destination;
  if (!is_ssh_destination(destination_))
    return fail(ErrorCode::invalid, "\"" + percent_encode(destination_) + "\" is not [user@]host");
  ZED_CHECK(DatasetName::parse(wanted.target));
  if (wanted.target.find('/') == std::string::npos)
    return fail(ErrorCode::invalid, wanted.target + " is a pool and no dataset in one");
  ZED_TRY(Dataset dataset, store_.inspect(wanted.dataset));
  const Snapshot* snapshot = dataset.find(wanted.snapshot);
  if (snapshot == nullptr || snapshot->name != wanted.snapshot_name)
    return fail(ErrorCode::not_found,
                wanted.dataset.str() + "@" + wanted.snapshot_name + " is not here any more");
  ZED_TRY(Remote remote, look(wanted));
  HostSent sent;
  if (remote.is_there && !remote.uuid.empty() && remote.uuid != dataset.uuid.str())
    return fail(ErrorCode::conflict,
                wanted.target + " on " + destination_ + " is another dataset of Zed's",
                "name another dataset");
  if (const auto* there = remote.with_guid(snapshot->guid)) {
    if (there->name != snapshot->name)
      return fail(ErrorCode::conflict,
                  "it is there already, as " + wanted.target + "@" + there->name,
                  "rename it there, if the name matters");
    sent.was_there = true;
  } else {
    ZED_TRY(auto request, plan(wanted, dataset, *snapshot, remote));
    ZED_TRY(auto stream, open(wanted, std::move(request), remote));
    ZED_TRY(sent.moved, pump(wanted, remote, *stream, report));
  }
  ZED_CHECK(dress(wanted, dataset, *snapshot));
  return sent;
}

void HostSend::cancel() {
  cancelled_ = true;
  const std::lock_guard lock(child_mutex_);
  if (child_ != nullptr) child_->kill();
}

}  // namespace zed::store
