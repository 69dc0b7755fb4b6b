// Checkpoint commit, which ends on stable storage, against `cp -r --reflink=auto` of the same
// folder, which does so only where the name says it. Read the ratio, not the times.
//
//   ZED_BENCH_DIR=/data store_bench        (default: the temporary folder)

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <stdlib.h>

#include "store/catalog.hpp"
#include "store/dir/dir_store.hpp"

namespace {

namespace fs = std::filesystem;
using namespace zed;

/// A folder as training leaves it: one weights file rewritten each epoch, one large file and a
/// hundred small ones that stay.
struct Job {
  Job() {
    const char* where = std::getenv("ZED_BENCH_DIR");
    std::string text =
        (where != nullptr ? fs::path(where) : fs::temp_directory_path()) / "zed-store-bench-XXXXXX";
    if (::mkdtemp(text.data()) == nullptr) std::abort();
    root = text;
    store = std::move(store::open_dir_store(root / "store", "bench").value());
    dataset = DatasetName::parse("jobs/train").value();
    if (!store->create(dataset, {{property::uuid, uuid.str()},
                                 {property::generation, generation.str()},
                                 {property::timeline, generation.str()}}))
      std::abort();
    live = store->open_live(dataset).value();
    std::ofstream(live / "data.bin") << std::string(64 << 20, 'd');
    for (int i = 0; i < 100; ++i)
      std::ofstream(live / ("source-" + std::to_string(i) + ".py")) << std::string(4096, 's');
    write_weights(0);
  }
  ~Job() {
    store.reset();
    std::system(("chmod -R u+w '" + root.string() + "'; rm -rf '" + root.string() + "'").c_str());
  }
  void write_weights(int epoch) {
    std::ofstream(live / "weights.bin")
        << std::string(16 << 20, static_cast<char>('a' + epoch % 26));
  }

  Result<Snapshot> commit(int epoch) {
    CheckpointId id;
    id.bytes[0] = 1;
    id.bytes[14] = static_cast<std::uint8_t>(epoch / 256);
    id.bytes[15] = static_cast<std::uint8_t>(epoch % 256);
    env::CommitRequest request;
    request.dataset = dataset;
    request.uuid = uuid;
    request.generation = request.timeline = generation;
    request.parent = newest;
    request.snapshot = "epoch-" + std::to_string(epoch);
    request.snapshot_properties = {{property::id, id.str()},
                                   {property::seq, std::to_string(epoch)},
                                   {property::timeline, generation.str()},
                                   {"epoch", std::to_string(epoch)}};
    request.dataset_changes = {{"checkpoint", "@" + request.snapshot}};
    newest = id;
    return store->commit_checkpoint(request);
  }

  DatasetId uuid{{7}};
  Generation generation{{1, ControllerId{{1}}}, 1};
  std::optional<CheckpointId> newest;
  fs::path root;
  fs::path live;
  DatasetName dataset;
  std::unique_ptr<env::Store> store;
};

void commit_checkpoint(benchmark::State& state) {
  Job job;
  int epoch = 0;
  for (auto _ : state) {
    state.PauseTiming();
    job.write_weights(++epoch);
    state.ResumeTiming();
    auto taken = job.commit(epoch);
    if (!taken) state.SkipWithError(taken.error().describe().c_str());
  }
  state.SetLabel(job.store->info().version);
}

enum class Until { copied, synced };

void copy_folder(benchmark::State& state, Until until) {
  Job job;
  std::string after = until == Until::synced ? " && sync -f '" + job.root.string() + "'" : "";
  int epoch = 0;
  for (auto _ : state) {
    state.PauseTiming();
    job.write_weights(++epoch);
    state.ResumeTiming();
    std::string to = (job.root / ("copy-" + std::to_string(epoch))).string();
    std::string command = "cp -r --reflink=auto '" + job.live.string() + "' '" + to + "'" + after;
    if (std::system(command.c_str()) != 0) state.SkipWithError("cp failed");
    state.PauseTiming();
    fs::remove_all(to);
    state.ResumeTiming();
  }
}

void inspect_10000_snapshots(benchmark::State& state) {
  constexpr int snapshots = 10'000;
  store::Catalog catalog;
  auto dataset = DatasetName::parse("jobs/train").value();
  if (!catalog.create(dataset, {})) std::abort();
  for (int i = 0; i < snapshots; ++i) {
    store::NewSnapshot made;
    made.files = "snapshots/" + std::to_string(i);
    made.guid = static_cast<std::uint64_t>(i) + 1;
    auto name = SnapshotName::of(dataset, "epoch-" + std::to_string(i)).value();
    if (!catalog.add_snapshot(name, {{"epoch", std::to_string(i)}, {"loss", "0.25"}}, made))
      std::abort();
  }
  for (auto _ : state)
    benchmark::DoNotOptimize(catalog.show(dataset, *catalog.find(dataset).value()));
  state.SetItemsProcessed(state.iterations() * snapshots);
}

BENCHMARK(commit_checkpoint)->Iterations(20)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(copy_folder, in_memory, Until::copied)
    ->Iterations(20)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(copy_folder, then_synced, Until::synced)
    ->Iterations(20)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(inspect_10000_snapshots)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
