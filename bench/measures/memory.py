"""What the daemons cost while nothing happens: memory and CPU."""

import contextlib
import select
import socket
import statistics
import subprocess
import time
from pathlib import Path

from .fleet import SocketConnection, begin_fleet, dispatch, running_fleet
from .machine import BenchError, cpu_share, end_process, rss_mb, wait_until
from .table import Row

AGENT_MB, SUPERVISOR_MB, CONTROLLER_MB = 10, 3, 20
AGENT_CPU = 0.2
# Nodes -> MB; the budget of 10,000 is the only one that the design gives for many.
MANY_MB = {10_000: 150}
HEARTBEATS_CPU = 10


def bound(what, value, unit, budget, sign="<="):
    return Row("memory", what, value, unit, "bound of the budget", budget, f"{sign} {budget} {unit}", value <= budget)


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


def of_daemons(bench):
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
        bound("agent, idle", idle[0], "MB", AGENT_MB, "<"),
        Row("memory", "of it the agent's own", agent_own, "MB", "resident", idle[0]),
        bound("supervisor of a sleeping job", supervised, "MB", SUPERVISOR_MB, "<"),
        Row("memory", "of it the supervisor's own", supervisor_own, "MB", "resident", supervised),
        bound("controller, 1 agent", idle[1], "MB", CONTROLLER_MB, "<"),
        bound(f"agent, CPU over {seconds} s", agent_cpu, "% of a core", AGENT_CPU, "<"),
        Row("memory", f"controller, CPU over {seconds} s", controller_cpu, "% of a core", "agent", agent_cpu),
    ]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def process(argv, **options):
    child = subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL, **options)
    try:
        yield child
    finally:
        end_process(child)


def wait_for_line(child, wanted, patience):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        readable, _, _ = select.select([child.stdout], [], [], 0.5)
        line = child.stdout.readline() if readable else ""
        if line.strip() == wanted:
            return
        if child.poll() is not None or (readable and not line) or line.startswith("lost"):
            raise BenchError(f"the simulated agents ended before they were {wanted}: {line.strip()}")
    raise BenchError(f"the simulated agents were not {wanted} in {patience} s")


def fan_out_ms(connection, agents, count):
    """From the apply of a cluster file until every agent was told: median of some."""
    times = []
    for turn in range(5):
        begin = time.monotonic()
        connection.call("apply", text=f"deploy :fan_out_{turn} do\nend\n")
        wait_for_line(agents, f"ready {count}", 60)
        times.append((time.monotonic() - begin) * 1000)
    return statistics.median(times)


def with_agents(bench, count, tls):
    """RSS, CPU and fan-out time of a controller with so many agents, all of them in one other process."""
    folder = bench.new_folder(f"agents-{count}{'-tls' * tls}")
    port, state = free_port(), folder / "controller"
    door = folder / "door.sock"
    words = ["run", f"--state={state}", f"--port={port}", f"--socket={door}"]
    security = []
    if tls:
        begin_fleet(bench, state, "bench")
        words += ["--listen=127.0.0.1", "--http-port=0"]
        security = ["--pki", state / "pki"]
    else:
        words.append("--name=bench")
    with open(folder / "log", "w") as log, \
         process([bench.program("zed-controller"), *words], stdout=log, stderr=log) as controller:
        wait_until("the controller", door.exists)
        with process([bench.program("agents_bench"), "--controller", f"bench@127.0.0.1:{port}", "--cookie-file",
                      state / "cookie", "--count", count, *security], stdout=subprocess.PIPE, text=True) as agents:
            wait_for_line(agents, f"ready {count}", 180)
            connection = SocketConnection(str(door))
            wait_until("all to be up", lambda: connection.call("status")["nodes"].get("up", 0) == count, 60, 0.5)
            time.sleep(bench.count(6, 0))
            cpu = cpu_share([controller.pid], bench.count(20, 1))[0]
            memory = rss_mb(controller.pid)
            return memory, cpu, fan_out_ms(connection, agents, count)


def of_many_agents(bench, tls):
    counts = [1, 10] if bench.tiny else bench.agents
    found = {count: with_agents(bench, count, tls) for count in counts}
    first, rows = min(found), []
    for count, (memory, cpu, fan_out) in found.items():
        name = f"controller, {count:,} simulated agent" + ("s" if count != 1 else "") + (", TLS" if tls else "")
        budget = None if tls else MANY_MB.get(count)
        if budget:
            rows.append(bound(name, memory, "MB", budget, "<"))
        else:
            rows.append(Row("memory", name, memory, "MB", f"with {first:,}", found[first][0]))
        rows.append(bound(name + ", CPU", cpu, "% of a core", HEARTBEATS_CPU, "<"))
        rows.append(Row("memory", name + ", apply until all were told", fan_out, "ms", f"with {first:,}",
                        found[first][2]))
    return rows


def measure(bench):
    """Resident memory and idle CPU of agent, supervisor, and controller with 1, 100 and 1,000 agents, by TLS too."""
    return of_daemons(bench) + of_many_agents(bench, False) + of_many_agents(bench, True)
