// A model through the data plane, against `cat` over the same kind of socket: both read a file from
// one folder and leave it in another, over a TCP connection on loopback. In turns, so that a busy
// machine is as unkind to one as to the other.
//
//   stream_bench [--mib 500] [--rounds 3] [--dir FOLDER]
//
// Prints one JSON object: MB/s (10^6 bytes) of each round.
//   zed           sent, verified, on stable storage, snapshot committed
//   cat           the bytes are in the target file
//   cat_synced    and on stable storage
//   cat_read      the bytes were read from the socket and dropped: what the socket can do

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/fd.hpp"
#include "store/dir/dir_store.hpp"
#include "stream/transfers.hpp"

namespace {

namespace fs = std::filesystem;
using namespace zed;
using Clock = std::chrono::steady_clock;

constexpr std::size_t buffer_size = 128 * 1024;  // what coreutils' cat uses

struct Options {
  std::int64_t mib = 500;
  int rounds = 3;
  fs::path folder = fs::temp_directory_path();
};

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "stream_bench: %s\n", what.c_str());
  std::exit(1);
}

template <class T> T must(Result<T> result) {
  if (!result) give_up(result.error().describe());
  return std::move(*result);
}

void must(Status status) {
  if (!status) give_up(status.error().describe());
}

/// Removed with all that is in it, readonly snapshots too.
class Folder {
public:
  explicit Folder(const fs::path& where) {
    std::string text = where / "zed-stream-bench-XXXXXX";
    if (::mkdtemp(text.data()) == nullptr) give_up("mkdtemp " + text);
    path_ = text;
  }
  ~Folder() {
    std::error_code ignored;
    for (const auto& entry : fs::recursive_directory_iterator(path_, ignored))
      if (entry.is_directory(ignored) && !entry.is_symlink(ignored))
        fs::permissions(entry.path(), fs::perms::owner_all, fs::perm_options::add, ignored);
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

private:
  fs::path path_;
};

void write_random(const fs::path& file, std::int64_t mib) {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> block(1024 * 1024 / sizeof(std::uint64_t));
  std::ofstream out(file, std::ios::binary);
  for (std::int64_t i = 0; i < mib; ++i) {
    for (auto& word : block)
      word = random();
    out.write(reinterpret_cast<const char*>(block.data()), 1024 * 1024);
  }
  if (!out.flush()) give_up("write " + file.string());
}

// ---- cat ----------------------------------------------------------------------------------------

enum class Until { read, written, synced };

void copy_bytes(int from, int to) {
  std::vector<char> buffer(buffer_size);
  for (;;) {
    ssize_t n = ::read(from, buffer.data(), buffer.size());
    if (n < 0) give_up(std::string("read: ") + std::strerror(errno));
    if (n == 0) return;
    for (ssize_t done = 0; to >= 0 && done < n;) {
      ssize_t written = ::write(to, buffer.data() + done, static_cast<std::size_t>(n - done));
      if (written < 0) give_up(std::string("write: ") + std::strerror(errno));
      done += written;
    }
  }
}

std::pair<net::Fd, net::Fd> loopback_pair() {
  net::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.get(), generic, length) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), generic, &length) != 0)
    give_up("listen on loopback");
  net::Fd dialled(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(dialled.get(), generic, length) != 0) give_up("connect on loopback");
  net::Fd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!accepted) give_up("accept on loopback");
  return {std::move(dialled), std::move(accepted)};
}

double cat_seconds(const fs::path& from, const fs::path& to, Until until) {
  auto [sender, receiver] = loopback_pair();
  net::Fd source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  net::Fd target;
  if (until != Until::read)
    target = net::Fd(::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  auto begin = Clock::now();
  std::thread reading(
      [in = receiver.get(), out = target ? target.get() : -1] { copy_bytes(in, out); });
  copy_bytes(source.get(), sender.get());
  ::shutdown(sender.get(), SHUT_WR);
  reading.join();
  if (until == Until::synced && ::fsync(target.get()) != 0) give_up("fsync " + to.string());
  double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  std::error_code ignored;
  fs::remove(to, ignored);
  return seconds;
}

// ---- zed ----------------------------------------------------------------------------------------

StepId step_of(std::uint8_t number) {
  StepId id;
  id.bytes[0] = number;
  return id;
}

/// One machine: a store and its end of the data plane.
struct Machine {
  Machine(net::Loop& loop, const fs::path& folder)
      : store(must(store::open_dir_store(folder, "bench"))) {
    stream::TransferHandlers handlers;
    handlers.progressed = [](const StepId&, Bytes, Bytes, Bytes) {};
    handlers.ended = [this](const StepId&, Result<stream::Outcome> result) {
      outcome = std::move(result);
    };
    transfers = must(stream::Transfers::open(loop, *store, {}, std::move(handlers)));
  }
  std::unique_ptr<env::Store> store;
  std::unique_ptr<stream::Transfers> transfers;
  std::optional<Result<stream::Outcome>> outcome;
};

class ZedPair {
public:
  ZedPair(const fs::path& folder, std::int64_t mib)
      : source_(loop_, folder / "source"), target_(loop_, folder / "target"),
        dataset_(DatasetName::parse("models/random").value()) {
    must(source_.store->create(dataset_, properties()));
    live_ = must(source_.store->open_live(dataset_));
    write_random(live_ / "weights.bin", mib);
    CheckpointId id;
    id.bytes[15] = 1;
    auto name = SnapshotName::of(dataset_, "v1").value();
    snapshot_ = must(source_.store->snapshot(name, {{property::id, id.str()}}));
  }

  fs::path file() const { return live_ / "weights.bin"; }

  double transfer_seconds() {
    stream::TransferRequest receive{step_of(2), false, ticket(), {}};
    for (const auto& [name, value] : properties())
      receive.dataset_changes[name] = value;
    source_.outcome.reset();
    target_.outcome.reset();
    auto begin = Clock::now();
    source_.transfers->start({step_of(1), true, receive.ticket, {}});
    target_.transfers->start(std::move(receive));
    bool ended = loop_.run_until(
        [this] { return source_.outcome.has_value() && target_.outcome.has_value(); },
        seconds(300));
    double seconds_taken = std::chrono::duration<double>(Clock::now() - begin).count();
    if (!ended) give_up("the transfer does not end");
    must(std::move(*source_.outcome));
    must(std::move(*target_.outcome));
    must(target_.store->destroy_snapshot(SnapshotName::of(dataset_, "v1").value()));
    must(target_.store->destroy(dataset_));
    return seconds_taken;
  }

private:
  Properties properties() const {
    DatasetId uuid;
    uuid.bytes[0] = 9;
    return {{property::uuid, uuid.str()}, {property::type, "model"}};
  }

  Ticket ticket() {
    Ticket t;
    t.id.bytes[0] = ++tickets_;
    t.dataset = t.target_dataset = dataset_;
    t.uuid = DatasetId::parse(properties().at(property::uuid)).value();
    t.source = NodeName::parse("source").value();
    t.target = NodeName::parse("target").value();
    t.source_address = source_.transfers->endpoint().str();
    t.target_address = target_.transfers->endpoint().str();
    t.snapshot = snapshot_.id;
    t.snapshot_name = snapshot_.name;
    return t;
  }

  net::Loop loop_;
  Machine source_;
  Machine target_;
  DatasetName dataset_;
  fs::path live_;
  Snapshot snapshot_;
  std::uint8_t tickets_ = 0;
};

Options options_of(int argc, char** argv) {
  std::map<std::string, std::string> given;
  for (int i = 1; i + 1 < argc; i += 2)
    given[argv[i]] = argv[i + 1];
  Options options;
  if (given.count("--mib") > 0) options.mib = std::atoll(given["--mib"].c_str());
  if (given.count("--rounds") > 0) options.rounds = std::atoi(given["--rounds"].c_str());
  if (given.count("--dir") > 0) options.folder = given["--dir"];
  if (options.mib < 1 || options.mib > 1'000'000) give_up("--mib is not 1 to 1000000");
  if (options.rounds < 1 || options.rounds > 200) give_up("--rounds is not 1 to 200");
  return options;
}

void print(const char* name, const std::vector<double>& rates, const char* after) {
  std::printf("  \"%s\": [", name);
  for (std::size_t i = 0; i < rates.size(); ++i)
    std::printf("%s%.1f", i == 0 ? "" : ", ", rates[i]);
  std::printf("]%s\n", after);
}

}  // namespace

int main(int argc, char** argv) {
  Options options = options_of(argc, argv);
  Folder folder(options.folder);
  ZedPair pair(folder.path(), options.mib);
  fs::path copy = folder.path() / "copy.bin";
  double megabytes = static_cast<double>(options.mib) * 1.048576;
  std::vector<double> zed, cat, cat_synced, cat_read;
  for (int round = 0; round < options.rounds; ++round) {
    cat_read.push_back(megabytes / cat_seconds(pair.file(), copy, Until::read));
    cat.push_back(megabytes / cat_seconds(pair.file(), copy, Until::written));
    cat_synced.push_back(megabytes / cat_seconds(pair.file(), copy, Until::synced));
    zed.push_back(megabytes / pair.transfer_seconds());
  }
  std::printf("{\n");
  print("zed", zed, ",");
  print("cat", cat, ",");
  print("cat_synced", cat_synced, ",");
  print("cat_read", cat_read, "");
  std::printf("}\n");
}
