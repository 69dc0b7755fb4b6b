"""The same work by Slurm (slurmctld and slurmd of the distribution, on this machine), each by its command line."""

import contextlib
import os
import shutil
import signal
import socket
import statistics
import subprocess
import time

from .burst import CLIENTS
from .fleet import read_clock, running_fleet
from .machine import Skipped, by_many, end_process, free_port, wait_until
from .restart import has_ended, restart_p50
from .table import Row

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scontrol", "scancel")
# What a site with short jobs sets: look at the queue at each submit, start many at once.
CONFIGURATION = """
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge.socket
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.log
SlurmctldPort={controller_port}
SlurmdPort={node_port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=2000,default_queue_depth=2000
ReturnToService=2
MaxJobCount=20000
MaxArraySize=2001
MinJobAge=3600
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class Slurm:
    """A controller and a node of their own, with their own munged. Needs root, as slurmd does."""

    def __init__(self, bench, name):
        missing = [name for name in PROGRAMS if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")]
        if missing:
            raise Skipped(f"Slurm is not here ({', '.join(missing)}): ./dev bench --peers installs it")
        if os.geteuid() != 0:
            raise Skipped("slurmd starts jobs as root only")
        self.dir = bench.new_folder(name)
        for name in ("state", "spool", "jobs"):
            (self.dir / name).mkdir()
        self.children = {}
        self.host = socket.gethostname().split(".")[0]
        self.config = self.dir / "slurm.conf"
        self.config.write_text(CONFIGURATION.format(
            host=self.host, dir=self.dir, cores=len(os.sched_getaffinity(0)),
            controller_port=free_port(), node_port=free_port()))
        self.env = dict(os.environ, SLURM_CONF=str(self.config), PATH=os.environ["PATH"] + ":/usr/sbin")

    def spawn(self, name, *words):
        log = open(self.dir / f"{name}.out", "ab")
        self.children[name] = subprocess.Popen([name, *map(str, words)], env=self.env, stdin=subprocess.DEVNULL,
                                               stdout=log, stderr=log, start_new_session=True)
        log.close()

    def up(self):
        key = self.dir / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self.spawn("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.dir}/munge.socket",
                   f"--pid-file={self.dir}/munged.pid", f"--log-file={self.dir}/munged.log",
                   f"--seed-file={self.dir}/munged.seed")
        wait_until("munged", (self.dir / "munge.socket").exists, 20)
        self.start_controller()
        self.spawn("slurmd", "-D", "-N", self.host)
        wait_until("the node of Slurm to be idle", lambda: self.node_state().startswith("idle"), 60, 0.2)

    def start_controller(self):
        self.spawn("slurmctld", "-D")

    def down(self):
        for name in reversed(list(self.children)):
            end_process(self.children[name])

    def run(self, *words):
        return subprocess.run(list(map(str, words)), env=self.env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120)

    def do(self, *words):
        done = self.run(*words)
        if done.returncode != 0:
            raise OSError(f"{words[0]}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def node_state(self):
        return self.run("sinfo", "-h", "-o", "%t").stdout.strip()

    def script(self, *argv):
        path = self.dir / "jobs/script.sh"
        path.write_text("#!/bin/sh\nexec " + " ".join(map(str, argv)) + "\n")
        path.chmod(0o755)
        return path

    def submit(self, script, *words):
        return self.do("sbatch", "--parsable", "-n1", "-o/dev/null", f"--chdir={self.dir}", *words, script)

    def in_queue(self, *states):
        """-r: an array's jobs one by one."""
        done = self.run("squeue", "-h", "-r", "-o", "%i", *(["-t", ",".join(states)] if states else []))
        return len(done.stdout.split()) if done.returncode == 0 else None

    def version(self):
        return self.do("sbatch", "--version").strip()


@contextlib.contextmanager
def running_slurm(bench, name="slurm"):
    slurm = Slurm(bench, name)
    try:
        slurm.up()
        yield slurm
    finally:
        slurm.down()


def submit_all(count, submit):
    """Calls submit(i) for each i, from several clients at once."""

    def client(first):
        for i in range(first, count, CLIENTS):
            submit(i)

    by_many(CLIENTS, client)


def starts(count, stamps, submit):
    """Milliseconds from before the submit's process to the job's first instruction, one job after the other."""
    times = []
    for i in range(count):
        stamp = stamps / f"one{i}"
        begin = time.monotonic_ns()
        submit(i, stamp)
        began = wait_until(f"job {i} to start", lambda path=stamp: read_clock(path), 60, 0.005)
        times.append((began - begin) / 1e6)
    return sorted(times)


class Ours:
    """A fleet whose every order is a zedctl of its own, as Slurm's are an sbatch each."""

    def __init__(self, fleet, bench, counts):
        self.fleet, self.stamps = fleet, fleet.folder / "stamps"
        self.stamps.mkdir()
        clock = bench.program("exec_clock")
        one, many = counts
        fleet.declare({f"one{i}": [clock, self.stamps / f"one{i}"] for i in range(one)})
        self.first = 0
        self.many = many

    def ended(self):
        return self.fleet.connection().call("status")["jobs"].get("succeeded", 0)

    def one_by_one(self, count):
        return starts(count, self.stamps, lambda i, stamp: self.fleet.zedctl("dispatch", f"one{i}"))

    def burst(self):
        before = self.ended()
        self.fleet.declare({f"noop{i}": ["true"] for i in range(self.many)})
        begin = time.monotonic()
        submit_all(self.many, lambda i: self.fleet.zedctl("dispatch", f"noop{i}"))
        submitted = time.monotonic() - begin
        wait_until("the burst to end", lambda: self.ended() >= before + self.many, 900, 0.1)
        return self.many / submitted, self.many / (time.monotonic() - begin)

    def array(self):
        before = self.ended()
        self.fleet.declare({"many": ["true", "{i}"]})
        begin = time.monotonic()
        self.fleet.zedctl("dispatch", "many", "--array", "i=" + ",".join(map(str, range(self.many))))
        answered = time.monotonic() - begin
        wait_until("the array to end", lambda: self.ended() >= before + self.many, 900, 0.1)
        return answered * 1000, self.many / (time.monotonic() - begin)

    def restart(self):
        """Milliseconds until a controller that was killed answers again."""
        connection = self.fleet.connection()
        connection.call("node-duty", node="n1", duty="cordon")
        self.fleet.declare({f"wait{i}": ["true"] for i in range(self.many)})
        submit_all(self.many, lambda i: self.fleet.zedctl("dispatch", f"wait{i}"))
        return restart_p50(self.fleet, 3, self.many)


class Theirs:
    def __init__(self, slurm, bench, counts):
        self.slurm, self.stamps = slurm, slurm.dir / "stamps"
        self.stamps.mkdir()
        self.clock = bench.program("exec_clock")
        _, self.many = counts
        self.true = slurm.dir / "jobs/true.sh"
        self.true.write_text("#!/bin/sh\nexec true\n")
        self.true.chmod(0o755)

    def one_by_one(self, count):
        return starts(count, self.stamps, lambda i, stamp: self.slurm.submit(self.slurm.script(self.clock, stamp)))

    def wait_for_all(self):
        wait_until("the jobs of Slurm to end", lambda: self.slurm.in_queue() == 0, 900, 0.1)

    def burst(self):
        begin = time.monotonic()
        submit_all(self.many, lambda i: self.slurm.submit(self.true))
        submitted = time.monotonic() - begin
        self.wait_for_all()
        return self.many / submitted, self.many / (time.monotonic() - begin)

    def array(self):
        begin = time.monotonic()
        self.slurm.submit(self.true, f"--array=1-{self.many}")
        answered = time.monotonic() - begin
        self.wait_for_all()
        return answered * 1000, self.many / (time.monotonic() - begin)

    def restart(self):
        slurm, times = self.slurm, []
        submit_all(self.many, lambda i: slurm.submit(self.true, "--hold"))
        # It answers a submit before it has saved it; killed then, it would have lost some.
        last, state = time.time(), slurm.dir / "state/job_state"
        wait_until("slurmctld to save its jobs", lambda: state.exists() and state.stat().st_mtime > last + 1, 60, 0.2)
        for _ in range(3):
            child = slurm.children["slurmctld"]
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
            wait_until("slurmctld to die", lambda pid=child.pid: has_ended(pid))
            begin = time.monotonic_ns()
            slurm.start_controller()
            wait_until("slurmctld to answer", lambda: slurm.in_queue("PD") == self.many, 60, 0.005)
            times.append((time.monotonic_ns() - begin) / 1e6)
        slurm.do("scancel", "--state=PENDING", "--user=root")
        return statistics.median(times)


def both(ours, theirs, what):
    """In turns as near to one another as can be: a busy moment hits both."""
    return getattr(ours, what)(), getattr(theirs, what)()


def measure(bench):
    """Submit to exec, 1,000 no-op jobs, an array of 1,000, a restart with 1,000 pending: against Slurm."""
    one, many = counts = bench.count(20, 2), bench.peer_jobs if not bench.tiny else 10
    with running_slurm(bench) as slurm, running_fleet(bench, "peer") as fleet:
        peer = slurm.version()
        ours, theirs = Ours(fleet, bench, counts), Theirs(slurm, bench, counts)
        start, their_start = ours.one_by_one(one), theirs.one_by_one(one)
        (submits, rate), (their_submits, their_rate) = both(ours, theirs, "burst")
        (answer, array), (their_answer, their_array) = both(ours, theirs, "array")
        restart, their_restart = both(ours, theirs, "restart")
    last = int(one * 0.9)

    def row(what, value, unit, their_value):
        return Row("slurm", what, value, unit, peer, their_value)

    return [
        row("dispatch to exec, p50", statistics.median(start), "ms", statistics.median(their_start)),
        row("dispatch to exec, p90", start[last], "ms", their_start[last]),
        row(f"submits, {CLIENTS} clients, a process each", submits, "/s", their_submits),
        row(f"{many:,} no-op jobs, submit to end", rate, "/s", their_rate),
        row(f"array of {many:,}, to its answer", answer, "ms", their_answer),
        row(f"array of {many:,}, submit to end", array, "/s", their_array),
        row(f"controller killed, {many:,} pending, to its answer", restart, "ms", their_restart),
    ]
