"""How long a person waits for zedctl."""

import statistics

from .fleet import running_fleet
from .machine import spawn_ms
from .table import Row

BUDGET_MS = 50


def measure(bench):
    """zedctl version and zedctl status, against /bin/true."""
    rounds = bench.count(20, 3)
    zedctl = str(bench.program("zedctl"))
    commands = {"true": ["/bin/true"], "version": [zedctl, "version"], "status": [zedctl, "status"]}
    times = {name: [] for name in commands}
    with running_fleet(bench, "start") as fleet:
        for _ in range(rounds):  # in turns: a busy moment hits all of them
            for name, argv in commands.items():
                times[name].append(spawn_ms(argv, fleet.env))
    bare = statistics.median(times["true"])
    rows = []
    for name in ("version", "status"):
        p50 = statistics.median(times[name])
        rows.append(Row("start", f"zedctl {name}, p50 of {rounds}", p50, "ms", "/bin/true", bare,
                        f"<= {BUDGET_MS} ms", p50 <= BUDGET_MS))
    return rows
