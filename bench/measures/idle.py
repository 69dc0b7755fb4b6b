"""What the daemons cost over a quiet minute, beside Slurm's."""

import time

from .fleet import running_fleet
from .machine import cpu_share, rss_mb
from .slurm import running_slurm
from .table import Row


def measure(bench):
    """CPU and memory of agent and controller over an idle minute, against slurmd and slurmctld."""
    seconds = bench.count(60, 1)
    with running_slurm(bench, "idle-slurm") as slurm, running_fleet(bench, "idle") as fleet:
        time.sleep(bench.count(5, 0))
        pids = {"agent": fleet.pid("n1"), "controller": fleet.pid("controller"),
                "slurmd": slurm.children["slurmd"].pid, "slurmctld": slurm.children["slurmctld"].pid}
        cpu = dict(zip(pids, cpu_share(pids.values(), seconds)))
        memory = {name: rss_mb(pid) for name, pid in pids.items()}
    rows = []
    for ours, theirs in (("agent", "slurmd"), ("controller", "slurmctld")):
        rows.append(Row("idle", f"{ours}, CPU over {seconds} s", cpu[ours], "% of a core", theirs, cpu[theirs]))
        rows.append(Row("idle", f"{ours}, resident", memory[ours], "MB", theirs, memory[theirs]))
    return rows
