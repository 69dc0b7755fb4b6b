"""The data plane against the simplest thing that moves bytes."""

import json
import statistics

from .table import Row


def measure(bench):
    """A 500 MB model from store to store over loopback, against cat over the same kind of socket."""
    report = json.loads(bench.output_of("stream_bench", "--mib", bench.count(500, 8), "--rounds", bench.count(3, 1),
                                        "--dir", bench.new_folder("stream")))
    rates = {name: statistics.median(values) for name, values in report.items()}
    what, zed = "verified, durable transfer", rates["zed"]
    return [
        Row("stream", what, zed, "MB/s", "cat | socket | cat > file, fsync", rates["cat_synced"]),
        Row("stream", what, zed, "MB/s", "cat | socket | cat > file", rates["cat"]),
        Row("stream", what, zed, "MB/s", "cat | socket | cat > /dev/null", rates["cat_read"]),
    ]
