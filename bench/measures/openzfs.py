"""Commits on real OpenZFS, in a machine of test/lab: both sides of the ratio are slowed alike by its emulation."""

import contextlib
import os
import statistics
import sys
from pathlib import Path

from .machine import BenchError, Skipped
from .table import Row

LAB = Path(__file__).resolve().parents[2] / "test" / "lab"
sys.path.insert(0, str(LAB))

from daemons import PYTHON_THERE, Daemons, payload, training  # noqa: E402
from fleet import Fleet, LabError  # noqa: E402
from lab_case import GATE, wait_for  # noqa: E402

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


@contextlib.contextmanager
def running_server():
    """A machine with a controller and an agent; its daemons and itself."""
    if os.geteuid() != 0:
        raise Skipped("the lab's machines need root")
    with Fleet(payload=payload()) as fleet:
        server = fleet.machine("server", pool="nvme", memory=1024)
        zed = Daemons(server)
        try:
            zed.start_controller()
            zed.start_agent(server)
            wait_for("the node to be up", lambda: any(row["node"]["status"] == "up" for row in zed.ask("nodes")["nodes"]))
            yield zed, server
        except LabError as error:
            raise BenchError(str(error)) from error
        finally:
            zed.close()


def measure(_bench):
    """A job's checkpoints as the job sees them, against `zfs snapshot` of the same dataset."""
    with running_server() as (zed, server):
        zed.apply("deploy :lab do\n" + training("work", 100, GATE, "copies 0", state_bytes=STATE_BYTES) + "end\n")
        server.run(f"echo {COMMITS} > {GATE}")
        zed.do("dispatch work")
        wait_for("the commits", lambda: len(zed.checkpoints("work")) == COMMITS)
        lines = zed.do("logs work --all").splitlines()
        ours = statistics.median(float(line.split(" took ")[1].split()[0]) for line in lines if " took " in line)
        printed = server.run(f"{PYTHON_THERE} -c '{BARE_SNAPSHOTS}' 2> /dev/null")
        bare = statistics.median(map(float, printed.split()))
        return [Row("zfs-commit", "checkpoint, p50", ours * 1000, "ms", "zfs snapshot", bare * 1000)]
