"""One module a measurement. Each is a function of a Bench that returns rows (table.Row)."""

from . import burst, calls, commit, memory, placement, restart, start, stream, submit

MEASURES = {
    "placement": placement.measure,
    "submit": submit.measure,
    "burst": burst.measure,
    "restart": restart.measure,
    "commit": commit.measure,
    "memory": memory.measure,
    "stream": stream.measure,
    "start": start.measure,
    "calls": calls.measure,
}

# What the smoke test runs: every kind of peer and every program once, in some seconds.
SMOKE = ["placement", "submit", "burst", "restart", "memory", "stream", "start"]
