"""From the submit of one job on an idle fleet to the first instruction of its program."""

import statistics
import time

from .fleet import dispatch, read_clock, running_fleet
from .machine import durable_write_ms, wait_until
from .table import Row

BESIDES_THE_DISK_MS = 4


def one_job(fleet, connection, name, stamp):
    """Milliseconds from before the submit to exec, and to the submit's answer."""
    begin = time.monotonic_ns()
    dispatch(connection, name)
    answered = time.monotonic_ns()
    # The time itself is in the file: asking seldom costs no precision and leaves the cores alone.
    started = wait_until(f"job {name} to start", lambda: read_clock(stamp), 30, 0.01)
    wait_until(f"job {name} to end", lambda: fleet_is_idle(connection), 30, 0.02)
    return (started - begin) / 1e6, (answered - begin) / 1e6


def fleet_is_idle(connection):
    jobs = connection.call("status")["jobs"]
    return not any(jobs.get(state, 0) for state in ("pending", "preparing", "running", "stopping"))


def measure(bench):
    """A no-op job from submit to exec, against two durable writes of the same disk."""
    count = bench.count(40, 3)
    with running_fleet(bench, "submit") as fleet:
        stamps = fleet.folder / "stamps"
        stamps.mkdir()
        jobs = {f"noop{i:03}": [bench.program("exec_clock"), stamps / f"noop{i:03}"] for i in range(count)}
        fleet.declare(jobs)
        connection = fleet.connection()
        disk = durable_write_ms(fleet.folder, bench.count(200, 20))
        times = [one_job(fleet, connection, name, argv[1]) for name, argv in jobs.items()]
    starts = sorted(start for start, _ in times)
    p50, p90 = statistics.median(starts), starts[int(len(starts) * 0.9)]
    answer = statistics.median(answered for _, answered in times)
    bound = 2 * disk + BESIDES_THE_DISK_MS
    return [
        Row("submit", "submit to exec, p50", p50, "ms", "two durable writes", 2 * disk,
            f"<= that + 4 ms = {bound:.2f} ms", p50 <= bound),
        Row("submit", "submit to exec, p50", p50, "ms", "bound of the budget", 12, "<= 12 ms", p50 <= 12),
        Row("submit", "submit to exec, p90", p90, "ms", "two durable writes", 2 * disk),
        Row("submit", "submit to its answer, p50", answer, "ms", "one durable write", disk),
    ]
