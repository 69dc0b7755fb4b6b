"""A thousand no-op jobs at once."""

import statistics
import time

from .fleet import dispatch, read_clock, running_fleet
from .machine import by_many, durable_write_ms, rss_mb, spawn_ms
from .table import Row

CLIENTS = 8
# A cluster file is one journal record of at most 200 KiB.
IN_ONE_FILE = 250
SUBMITS, JOBS, START_MS, CONTROLLER_MB = 500, 200, 300, 30


def submit_all(fleet, names, clients=CLIENTS):
    """Submits from several clients, each with one connection; when each submit began, by job."""
    begun = {}

    def client(first):
        connection = fleet.connection()
        for name in names[first::clients]:
            begun[name] = time.monotonic_ns()
            dispatch(connection, name)

    by_many(clients, client)
    return begun


def submit_in_files(fleet, jobs, clients=CLIENTS):
    """Declares and submits jobs, as many at a time as one cluster file may hold: when each submit began, by job, and
    the seconds that the submits took (declaring is left out)."""
    begun, seconds, names = {}, 0, list(jobs)
    for first in range(0, len(names), IN_ONE_FILE):
        some = names[first:first + IN_ONE_FILE]
        fleet.declare({name: jobs[name] for name in some})
        begin = time.monotonic()
        begun.update(submit_all(fleet, some, clients))
        seconds += time.monotonic() - begin
    return begun, seconds


def spawns_per_second(count):
    begin = time.monotonic()
    for _ in range(count):
        spawn_ms(["/bin/true"])
    return count / (time.monotonic() - begin)


def measure(bench):
    """1,000 no-op jobs: submits and jobs a second, against durable writes and bare processes a second."""
    count = bench.count(1000, 20)
    with running_fleet(bench, "burst") as fleet:
        stamps = fleet.folder / "stamps"
        stamps.mkdir()
        jobs = {f"noop{i:04}": [bench.program("exec_clock"), stamps / f"noop{i:04}"] for i in range(count)}
        writes = 1000 / durable_write_ms(fleet.folder, bench.count(200, 20))
        spawns = spawns_per_second(bench.count(300, 20))
        begin = time.monotonic()
        begun, submitting = submit_in_files(fleet, jobs)
        submits = count / submitting
        fleet.wait_for_jobs("succeeded", count, 600, 0.05)
        rate = count / (time.monotonic() - begin)
        memory = rss_mb(fleet.pid("controller"))
        waits = statistics.median((read_clock(argv[1]) - begun[name]) / 1e6 for name, argv in jobs.items())
    return [
        Row("burst", f"submits, {CLIENTS} clients", submits, "/s", "durable writes", writes, f">= {SUBMITS}/s",
            submits >= SUBMITS),
        Row("burst", f"{count:,} no-op jobs, submit to success", rate, "/s", "bare /bin/true", spawns, f">= {JOBS}/s",
            rate >= JOBS),
        Row("burst", "submit to exec in the burst, p50", waits, "ms", "bound of the budget", START_MS,
            f"<= {START_MS} ms", waits <= START_MS),
        Row("burst", f"controller after {count:,} jobs", memory, "MB", "bound of the budget", CONTROLLER_MB,
            f"<= {CONTROLLER_MB} MB", memory <= CONTROLLER_MB),
    ]
