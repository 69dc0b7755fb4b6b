"""The commit of a checkpoint in the embedded store."""

import json

from .table import Row


def measure(bench):
    """Checkpoint commit (80 MB in 102 files, 16 MB of them new), against cp -r --reflink=auto of the same folder."""
    text = bench.output_of("store_bench", "--benchmark_format=json", "--benchmark_filter=commit|copy_folder",
                           env={"ZED_BENCH_DIR": str(bench.new_folder("commit"))})
    times = {run["name"].split("/iterations")[0]: run["real_time"] for run in json.loads(text)["benchmarks"]}
    commit = times["commit_checkpoint"]
    return [
        Row("commit", "checkpoint commit, durable", commit, "ms", "cp --reflink=auto, sync",
            times["copy_folder/then_synced"]),
        Row("commit", "checkpoint commit, durable", commit, "ms", "cp --reflink=auto, in memory",
            times["copy_folder/in_memory"]),
    ]
