"""The machine that is measured, and the bounds that it sets: its disk, its processes."""

import contextlib
import os
import platform
import socket
import statistics
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import List


class BenchError(Exception):
    """A measurement that could not be made; says what and why."""


class Skipped(BenchError):
    """A peer that is not on this machine."""


def by_many(clients, work):
    """Calls work(i) for i below `clients`, each in a thread of its own; then raises what the first of them raised."""
    troubles = []

    def client(i):
        try:
            work(i)
        except Exception as error:  # handed to the caller's thread
            troubles.append(error)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if troubles:
        raise troubles[0]


def end_process(child):
    """Tells a process to end, and kills one that does not."""
    child.terminate()
    try:
        child.wait(20)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


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


@dataclass
class Bench:
    """What every measurement is given. `folder` is on the disk that is measured."""

    build: Path
    folder: Path
    tiny: bool = False
    agents: List[int] = field(default_factory=lambda: [1, 100, 1000])
    peer_jobs: int = 1000  # of each measurement against another scheduler
    skips: List[str] = field(default_factory=list)

    def program(self, name):
        for path in (self.build / "src/bin" / name, self.build / "bench" / name):
            if path.exists():
                return path
        raise BenchError(f"{name} is not built in {self.build}: ./dev bench builds it")

    def count(self, usual, tiny):
        return tiny if self.tiny else usual

    def new_folder(self, name):
        path = self.folder / name
        path.mkdir()
        return path

    def output_of(self, program, *words, env=None):
        done = subprocess.run([self.program(program), *map(str, words)], capture_output=True, text=True,
                              env=dict(os.environ, **(env or {})))
        if done.returncode != 0:
            raise BenchError(f"{program} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
        return done.stdout


def mount_of(folder):
    """(device, file system) under a folder: the longest mount point that it begins with."""
    best = ("?", "?", "")
    for line in Path("/proc/mounts").read_text().splitlines():
        device, point, kind = line.split()[:3]
        inside = str(folder).startswith(point.rstrip("/") + "/") or point == "/"
        if inside and len(point) >= len(best[2]):
            best = (device, kind, point)
    return best[:2]


def machine_of(folder):
    cpu = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    device, kind = mount_of(folder.resolve())
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": cpu,
        "memory_gib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
        "fs": kind,
        "device": device,
        "folder": str(folder.parent),
        "os": f"{platform.system()} {platform.release().split('-')[0]}",
        "load_before": os.getloadavg()[0],
    }


def durable_write_ms(folder, rounds=100):
    """p50 of one durable write of this disk: 4 KiB appended, fdatasync."""
    path = folder / "durable-write"
    block = os.urandom(4096)
    times = []
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        for _ in range(rounds):
            begin = time.monotonic_ns()
            os.write(file, block)
            os.fdatasync(file)
            times.append((time.monotonic_ns() - begin) / 1e6)
    finally:
        os.close(file)
        path.unlink()
    return statistics.median(times)


def spawn_ms(argv, env=None):
    """Wall time from spawn to exit of one process, its output thrown away."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)]
    try:
        begin = time.monotonic_ns()
        pid = os.posix_spawn(argv[0], argv, os.environ if env is None else env, file_actions=actions)
        status = os.waitpid(pid, 0)[1]
        taken = (time.monotonic_ns() - begin) / 1e6
    finally:
        os.close(null)
    if status != 0:
        raise BenchError(f"{' '.join(map(str, argv))} ended with status {status}")
    return taken


def rss_mb(pid, member="VmRSS"):
    """VmRSS in MB (10^6 bytes); RssAnon is its part that is shared with no other process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(member + ":"):
            return int(line.split()[1]) * 1024 / 1e6
    raise BenchError(f"process {pid} has no {member}")


def cpu_seconds(pid):
    """CPU time that the process has used. From the scheduler, by the nanosecond, where it tells: /proc/PID/stat counts
    in ticks of 10 ms, too coarse for a process that is to use 2 ms a second."""
    try:
        return sum(int(task.joinpath("schedstat").read_text().split()[0])
                   for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9
    except (OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_share(pids, seconds):
    """Share of one core that each process uses over some seconds, in per cent."""
    before = {pid: cpu_seconds(pid) for pid in pids}
    begin = time.monotonic()
    time.sleep(seconds)
    taken = time.monotonic() - begin
    return [100 * (cpu_seconds(pid) - before[pid]) / taken for pid in pids]


def wait_until(what, test, patience=60, every=0.02):
    end = time.monotonic() + patience
    while True:
        value = test()
        if value:
            return value
        if time.monotonic() > end:
            raise BenchError(f"waited {patience} s in vain for {what}")
        time.sleep(every)
