"""Placement decisions a second on one core."""

import json

from .table import Row

# Nodes -> (decisions/s, p99 in us): what is asked for on one core.
BUDGETS = {1000: (50_000, None), 10_000: (20_000, 1000)}


def rows_of(report):
    runs = {run["name"]: run for run in report["benchmarks"]}
    rows = []
    exhaustive = next(run for name, run in runs.items() if name.startswith("Exhaustive/1000"))
    for nodes, (budget, p99) in BUDGETS.items():
        run = next((run for name, run in runs.items() if name.split("/")[:2] == ["Decide", str(nodes)]), None)
        if run is None:
            continue
        rate = run["decisions/s"]
        rows.append(Row("placement", f"decisions, {nodes:,} nodes x 8 GPUs", rate, "/s", "bound of the budget", budget,
                        f">= {budget:,}/s", rate >= budget))
        if p99 is not None:
            rows.append(Row("placement", f"p99 of one decision, {nodes:,} nodes", run["p99_us"], "us",
                            "bound of the budget", p99, "< 1 ms", run["p99_us"] < p99))
    decide = next(run for name, run in runs.items() if name.startswith("Decide/1000"))
    if exhaustive["time_unit"] == "us":
        rows.append(Row("placement", "decisions by the index, 1,000 nodes", decide["decisions/s"], "/s",
                        "looking at every node", 1e6 / exhaustive["cpu_time"]))
    return rows


def measure(bench):
    """Placement decisions a second, 1,000 and 10,000 nodes of 8 GPUs, against looking at every node."""
    name = "(Decide|Exhaustive)/1000$" if bench.tiny else "(Decide|Exhaustive)/"
    seconds = bench.count(1.0, 0.05)
    return rows_of(json.loads(bench.output_of("placement_bench", "--benchmark_format=json",
                                              f"--benchmark_filter={name}", f"--benchmark_min_time={seconds}")))
