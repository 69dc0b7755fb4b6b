"""A checkpoint on real OpenZFS against a bare snapshot."""

import statistics

from .table import Row
from .zfs_lab import GATE, PATIENCE, machines, wait_for
from daemons import PYTHON_THERE, training  # of test/lab, which zfs_lab has found

COMMITS = 8
STATE_BYTES = 500_000
BARE_SNAPSHOTS = f"""
import os, subprocess, time
for i in range({COMMITS}):
    with open("/nvme/jobs/work/noise", "wb") as noise:
        noise.write(os.urandom({STATE_BYTES}))
    begin = time.monotonic()
    subprocess.run(["zfs", "snapshot", f"nvme/jobs/work@bare{{i}}"], check=True)
    print(time.monotonic() - begin)
"""


def measure(_bench):
    """A job's checkpoints as the job sees them, against `zfs snapshot` of the same dataset."""
    with machines("server") as lab:
        job = training("work", 100, GATE, "copies 0", state_bytes=STATE_BYTES)
        lab.zed.apply(f"deploy :lab do\n{job}end\n")
        lab.allow(COMMITS)
        lab.zed.do("dispatch work")
        wait_for("the commits", lambda: len(lab.zed.checkpoints("work")) == COMMITS)
        lines = lab.zed.do("logs work --all").splitlines()
        ours = statistics.median(float(line.split(" took ")[1].split()[0]) for line in lines if " took " in line)
        printed = lab.server.run(f"{PYTHON_THERE} -c '{BARE_SNAPSHOTS}' 2> /dev/null", PATIENCE)
        bare = statistics.median(map(float, printed.split()))
        return [Row("zfs-commit", "checkpoint, p50", ours * 1000, "ms", "zfs snapshot", bare * 1000)]
