"""A controller that is killed while a thousand jobs wait."""

import os
import signal
import statistics
import subprocess
import time
from pathlib import Path

from .burst import submit_in_files
from .fleet import SocketConnection, running_fleet
from .machine import BenchError, wait_until
from .table import Row

BUDGET_MS = 160


def command_of(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")


def has_ended(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def answer_of(socket_path):
    connection = SocketConnection(socket_path, 10)
    try:
        return connection.call("status")
    except (ConnectionError, FileNotFoundError):
        return None
    finally:
        connection.close()


def restart_ms(fleet):
    """Kills the controller and starts it again by the same command: milliseconds from its start to its answer."""
    pid = fleet.pid("controller")
    command = command_of(pid)
    os.kill(pid, signal.SIGKILL)
    wait_until("the controller to die", lambda: has_ended(pid))
    with open(fleet.dir / "log/controller.log", "ab") as log:
        begin = time.monotonic_ns()
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        status = wait_until("the controller to answer", lambda: answer_of(fleet.socket), 60, 0.001)
        return (time.monotonic_ns() - begin) / 1e6, status


def restart_p50(fleet, rounds, waiting):
    times = []
    for _ in range(rounds):
        taken, status = restart_ms(fleet)
        if status["jobs"].get("pending", 0) != waiting:
            raise BenchError(f"after the restart {status['jobs']} instead of {waiting} pending jobs")
        times.append(taken)
    return statistics.median(times)


def measure(bench):
    """Controller killed with 1,000 pending jobs: from its start to its answer, against an empty journal."""
    count, rounds = bench.count(1000, 20), bench.count(5, 2)
    with running_fleet(bench, "restart") as fleet:
        empty = restart_p50(fleet, rounds, 0)
        connection = fleet.connection()
        wait_until("the node to be back", lambda: connection.call("status")["nodes"].get("up") == 1)
        connection.call("node-duty", node="n1", duty="cordon")
        jobs = {f"wait{i:04}": ["true"] for i in range(count)}
        submit_in_files(fleet, jobs)
        full = restart_p50(fleet, rounds, count)
    return [
        Row("restart", f"start to answer, {count:,} pending jobs", full, "ms", "with an empty journal", empty),
        Row("restart", f"start to answer, {count:,} pending jobs", full, "ms", "bound of the budget", BUDGET_MS,
            f"<= {BUDGET_MS} ms", full <= BUDGET_MS),
    ]
