#pragma once
// A snapshot sent by the system's own ssh to OpenZFS on a machine without an agent. Our side is
// argument arrays only; what the other side's shell reads is made of words that are the same in
// every shell (quoted_remote). Nothing there is overwritten: a dataset that is not a copy of ours
// is refused, and what a cut left is gone on with by its resume token.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/plan.hpp"
#include "env/store.hpp"
#include "store/zfs/command.hpp"

namespace zed::store {

struct HostSent {
  Bytes moved;             ///< on the wire in this run, without what an earlier one had brought
  bool was_there = false;  ///< nothing had to travel; its properties were set all the same
};
/// Bytes so far, of the whole stream, and a second. At most once a second.
using ReportSent = std::function<void(Bytes done, Bytes total, Bytes rate)>;

class HostSend {
public:
  /// `ssh`: the program, by name or path. The store must be OpenZFS's and outlive this.
  HostSend(env::Store& store, std::unique_ptr<zfs::Commands> commands, std::string ssh = "ssh");

  /// Blocks until the snapshot and its properties are there, read back. Once. Errors: `invalid` (no
  /// such destination or dataset name), `not_found` (the snapshot; the host's name), `refused` (no
  /// key, an unknown host key, no permission there), `unavailable` (the host does not answer; try
  /// again, it goes on where it was), `conflict` (what is there is no copy of ours, or a newer
  /// one), `busy` (a receive that is not ours is unfinished there), `unsupported` (no OpenZFS
  /// there), `no_space`, `cancelled`, `io`.
  Result<HostSent> run(const SendToHost& wanted, const ReportSent& report);
  /// From any thread: run() ends with `cancelled`, and what has arrived stays there to be gone on
  /// with.
  void cancel();

private:
  /// What the other side has of the dataset.
  struct Remote;
  using RemoteCommands = std::vector<std::vector<std::string>>;
  Result<zfs::Output> ask(const std::string& what, const RemoteCommands& commands);
  Result<Remote> look(const SendToHost& wanted);
  Result<env::SendRequest> plan(const SendToHost& wanted, const Dataset& dataset,
                                const Snapshot& snapshot, const Remote& remote) const;
  Result<std::unique_ptr<env::SendStream>> open(const SendToHost& wanted, env::SendRequest request,
                                                const Remote& remote);
  static RemoteCommands receiving(const SendToHost& wanted, const Remote& remote);
  Result<Bytes> pump(const SendToHost& wanted, const Remote& remote, env::SendStream& stream,
                     const ReportSent& report);
  /// Sets the properties, reads them back, and takes the mark of an unfinished stream away.
  Status dress(const SendToHost& wanted, const Dataset& dataset, const Snapshot& snapshot);
  std::vector<std::string> ssh_command(const std::string& remote) const;
  Status not_cancelled() const;

  env::Store& store_;
  std::unique_ptr<zfs::Commands> commands_;
  std::string ssh_;
  std::string destination_;
  std::atomic<bool> cancelled_{false};
  std::mutex child_mutex_;
  zfs::Child* child_ = nullptr;  ///< the one that runs, for cancel()
};

/// One command line for the other side's login shell, whichever it is: every word in single quotes.
/// A word that has a quote, a backslash, an exclamation mark or what is not printable ASCII is a
/// bug of the caller: values are encoded first (encode_remote_value).
std::string quoted_remote(const std::vector<std::string>& words);
/// zfs::encode_value(), and also what shells treat differently inside single quotes.
std::string encode_remote_value(std::string_view value);
/// What `ssh` complained of, or the command that it ran there.
Error host_error(const std::string& what, const std::string& destination,
                 const zfs::Output& output);

}  // namespace zed::store
