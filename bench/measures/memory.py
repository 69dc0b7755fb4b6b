"""What the daemons cost while nothing happens: memory and CPU."""

import time
from pathlib import Path

from .fleet import dispatch, running_fleet
from .machine import cpu_share, rss_mb, wait_until
from .table import Row, bound

AGENT_MB, SUPERVISOR_MB, CONTROLLER_MB = 10, 3, 20
AGENT_CPU = 0.2


def supervisor_of(fleet):
    """The one process `zed-agent supervise` of this fleet."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"supervise" in words[1:2] and str(fleet.dir).encode() in words[2]:
            return int(entry.name)
    return None


def measure(bench):
    """Resident memory and idle CPU of agent, supervisor and controller."""
    seconds = bench.count(20, 1)
    with running_fleet(bench, "memory") as fleet:
        agent, controller = fleet.pid("n1"), fleet.pid("controller")
        time.sleep(bench.count(5, 0))
        agent_cpu, controller_cpu = cpu_share([agent, controller], seconds)
        idle = rss_mb(agent), rss_mb(controller)
        agent_own = rss_mb(agent, "RssAnon")
        fleet.declare({"sleeper": ["sleep", "600"]})
        dispatch(fleet.connection(), "sleeper")
        supervisor = wait_until("the supervisor", lambda: supervisor_of(fleet))
        fleet.wait_for_jobs("running", 1)
        time.sleep(bench.count(2, 0))
        supervised, supervisor_own = rss_mb(supervisor), rss_mb(supervisor, "RssAnon")
    return [
        bound("memory", "agent, idle", idle[0], "MB", AGENT_MB, "<"),
        Row("memory", "of it the agent's own", agent_own, "MB", "resident", idle[0]),
        bound("memory", "supervisor of a sleeping job", supervised, "MB", SUPERVISOR_MB, "<"),
        Row("memory", "of it the supervisor's own", supervisor_own, "MB", "resident", supervised),
        bound("memory", "controller, 1 agent", idle[1], "MB", CONTROLLER_MB, "<"),
        bound("memory", f"agent, CPU over {seconds} s", agent_cpu, "% of a core", AGENT_CPU, "<"),
        Row("memory", f"controller, CPU over {seconds} s", controller_cpu, "% of a core", "agent", agent_cpu),
    ]
