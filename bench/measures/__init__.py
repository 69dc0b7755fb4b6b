"""One module a measurement. Each is a function of a Bench that returns rows (table.Row)."""

from . import agents, burst, calls, commit, idle, memory, placement, restart, slurm, start, stream, submit, trackers
from . import zfs_commit, zfs_fan, zfs_inventory, zfs_stream

MEASURES = {
    "placement": placement.measure,
    "submit": submit.measure,
    "burst": burst.measure,
    "restart": restart.measure,
    "commit": commit.measure,
    "memory": memory.measure,
    "agents": agents.measure_plain,
    "agents-tls": agents.measure_tls,
    "stream": stream.measure,
    "start": start.measure,
    "calls": calls.measure,
}

# Against other people's programs: only when asked for, since they have to be installed.
PEERS = {"slurm": slurm.measure, "idle": idle.measure, "trackers": trackers.measure}

# In virtual machines with OpenZFS (test/lab): needs root.
LAB = {
    "zfs-commit": zfs_commit.measure,
    "zfs-stream": zfs_stream.measure,
    "zfs-resume": zfs_stream.measure_resume,
    "zfs-fan": zfs_fan.measure,
    "zfs-inventory": zfs_inventory.measure,
}

# What the smoke test runs: every kind of peer and every program once, in some seconds.
SMOKE = ["placement", "submit", "burst", "restart", "memory", "agents", "agents-tls", "stream", "start"]
