"""What the end-to-end tests share: a fleet of real processes, operated as a person would, by zedctl.

A test never sleeps to let something happen: it polls for what it wants (`wait_for`) until a deadline.
When a test fails, the logs of its fleet are printed before its folder goes.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
JOBS = HERE / "jobs"
CLIENT = ROOT / "clients/python"
BINARIES = Path(os.environ.get("ZED_BINARIES", ROOT / "build/release/src/bin"))
PATIENCE_S = 60
LOST_AFTER_S = 7
LINES_OF_LOG = 60

RUNNING = ("running", "checkpointing")
ENDED = ("stopped", "succeeded", "failed", "cancelled")

# Exit statuses of zedctl (docs/zedctl.md).
DONE, ERROR, PENDING_CHANGES, UNPLACEABLE, NOT_FOUND, REFUSED = range(6)

ONE = [{"name": "alpha", "pool": "tank", "gpus": "rtx-4090"}]
TWO = [
    {"name": "alpha", "pool": "tank", "gpus": "rtx-4090"},
    {"name": "beta", "pool": "nvme", "gpus": "2x-a100-80"},
]
THREE = TWO + [{"name": "gamma", "pool": "data", "gpus": "rtx-3080-10"}]


def wait_for(what, test, patience=PATIENCE_S, pause=0.1):
    """The first true value of test(), asked every `pause` seconds; an AssertionError after `patience` seconds."""
    end = time.monotonic() + patience
    while True:
        value = test()
        if value:
            return value
        if time.monotonic() >= end:
            raise AssertionError(f"waited {patience} s in vain for {what}; last: {value!r}")
        time.sleep(pause)


def is_running(pid):
    """Whether that process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"


class Fleet:
    """A development fleet of its own folder."""

    def __init__(self, folder, nodes, lost_after=LOST_AFTER_S):
        self.folder = folder
        self.nodes = nodes
        self.dir = folder / "f"
        self.host = nodes[0]["name"]
        (folder / "run").mkdir(mode=0o700, exist_ok=True)
        (folder / "files").mkdir(exist_ok=True)
        own = {"ZED_DEV_DIR": str(self.dir), "XDG_RUNTIME_DIR": str(folder / "run"), "NO_COLOR": "1"}
        self.environment = dict(os.environ, **own)
        for name in ("ZED_CONTROLLER", "ZED_SOCKET"):
            self.environment.pop(name, None)
        self.profile = folder / "fleet.json"
        controller = {"host": self.host, "lost_after": lost_after}
        self.profile.write_text(json.dumps({"schema": 1, "controller": controller, "nodes": nodes}))

    # -- zedctl --------------------------------------------------------------------------------

    def zedctl(self, *words, status=None, stdin="", timeout=90):
        """Runs it without a terminal. `status`, if given, is what it has to end with."""
        done = subprocess.run([str(BINARIES / "zedctl"), *map(str, words)], env=self.environment, input=stdin,
                              capture_output=True, text=True, errors="replace", timeout=timeout)
        if status is not None and done.returncode != status:
            raise AssertionError(f"zedctl {' '.join(map(str, words))}: exit {done.returncode}, not {status}\n"
                                 f"{done.stdout}{done.stderr}")
        return done

    def do(self, *words, **options):
        return self.zedctl(*words, status=DONE, **options)

    def ask(self, *words):
        return json.loads(self.do(*words, "--json").stdout)

    def up(self):
        self.do("dev", "up", self.profile)
        return self

    def down(self):
        self.do("dev", "down", "--yes")

    def apply(self, text):
        path = self.folder / "files/cluster.exs"
        path.write_text(text)
        return self.do("apply", path, "--yes")

    # -- what is known -------------------------------------------------------------------------

    def job(self, name="job"):
        return next((row for row in self.ask("jobs", "--all")["jobs"] if row["name"] == name), None)

    def state(self, name="job"):
        row = self.job(name)
        return row["state"] if row else None

    def checkpoints(self, name="job"):
        """Those that a job committed; closing snapshots and those taken by hand are left out."""
        rows = self.ask("checkpoints", name)["checkpoints"]
        return [row for row in rows if row["seq"] is not None]

    def current(self, name="job"):
        """Names on the current timeline, oldest first."""
        rows = [row for row in self.checkpoints(name) if row["current"]]
        return [row["name"] for row in sorted(rows, key=lambda row: row["seq"])]

    def log(self, name="job"):
        """All lines that the job wrote, of all attempts."""
        return self.do("logs", name, "--all").stdout.splitlines()

    def node_status(self, name):
        return next(row["node"]["status"] for row in self.ask("nodes")["nodes"] if row["node"]["name"] == name)

    def pool(self, node):
        return self.dir / "nodes" / node / "pool"

    def live_files(self, node, name):
        """Contents of the files of that name in live datasets (not in snapshots) on the node."""
        pool = self.pool(node)
        paths = [path for path in pool.rglob(name) if "snapshots" not in path.relative_to(pool).parts]
        return [path.read_text(errors="replace") for path in paths]

    def pid(self, daemon):
        """Of "controller" or an agent."""
        return int(json.loads((self.state_of(daemon) / "pid.json").read_text())["pid"])

    def state_of(self, daemon):
        return self.dir / daemon if daemon == "controller" else self.dir / "nodes" / daemon

    def process(self, daemon):
        return next(row for row in self.ask("dev", "status")["processes"] if row["name"] == daemon)

    def supervisors(self, node):
        """Pids of the supervisors under an agent's folder."""
        mark = str(self.state_of(node))
        found = []
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if len(words) > 2 and words[1] == b"supervise" and words[2].decode(errors="replace").startswith(mark):
                found.append(int(entry.name))
        return found

    def job_processes(self, name="job"):
        """Pids of all processes of a job: they carry its name and its folder in their environment."""
        mine = b"ZED_JOB_DIR=" + str(self.dir).encode()
        found = []
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "environ").read_bytes().split(b"\0") if entry.name.isdigit() else []
            except OSError:
                continue
            is_mine = f"ZED_JOB={name}".encode() in words and any(word.startswith(mine) for word in words)
            if is_mine and is_running(entry.name):
                found.append(int(entry.name))
        return found

    # -- waiting -------------------------------------------------------------------------------

    def wait_state(self, states, name="job", patience=PATIENCE_S):
        states = (states,) if isinstance(states, str) else states

        def test():
            row = self.job(name)
            return row if row and row["state"] in states else None

        try:
            return wait_for(f"{name} to be {' or '.join(states)}", test, patience)
        except AssertionError as late:
            raise AssertionError(f"{late}\nit is {self.job(name)}\n{self.zedctl('why', name).stdout}") from None

    def wait_checkpoint(self, checkpoint, name="job"):
        wait_for(f"{name}@{checkpoint}", lambda: checkpoint in self.current(name))

    def wait_line(self, line, name="job"):
        # Before it runs there is no log to read.
        wait_for(f"{name} to write {line!r}", lambda: line in self.zedctl("logs", name, "--all").stdout.splitlines())

    def wait_copies(self, checkpoint, nodes, name="job"):
        def there():
            row = next((row for row in self.checkpoints(name) if row["current"] and row["name"] == checkpoint), None)
            return row and set(nodes) <= set(row["nodes"])

        wait_for(f"{name}@{checkpoint} to be on {nodes}", there)

    # -- faults --------------------------------------------------------------------------------

    def kill(self, daemon, sig=signal.SIGKILL):
        pid = self.pid(daemon)
        os.kill(pid, sig)
        wait_for(f"{daemon} to be gone", lambda: not is_running(pid))

    def logs_of_daemons(self):
        texts = []
        for path in sorted((self.dir / "log").glob("*.log")):
            lines = path.read_text(errors="replace").splitlines()[-LINES_OF_LOG:]
            texts.append(f"---- {path.name}\n" + "\n".join(lines))
        return "\n".join(texts)


class FleetCase(unittest.TestCase):
    """A test with a fleet of its own: `self.fleet`, up when the test begins, down when it ends."""

    nodes = TWO
    lost_after = LOST_AFTER_S
    starts_up = True

    def run(self, result=None):
        result = self.defaultTestResult() if result is None else result
        self.folder = Path(tempfile.mkdtemp(prefix="zed-e2e-"))
        faults = len(result.failures) + len(result.errors)
        try:
            super().run(result)
            if len(result.failures) + len(result.errors) > faults:
                print(f"\n==== the fleet of {self.id()}\n{self.fleet.logs_of_daemons()}", file=sys.stderr, flush=True)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        return result

    def setUp(self):
        self.fleet = Fleet(self.folder, self.nodes, self.lost_after)
        self.files = self.folder / "files"
        self.addCleanup(self.take_down)
        if self.starts_up:
            self.fleet.up()

    def take_down(self):
        """Nothing of the fleet may survive a test, whatever the test did to it."""
        if (self.fleet.dir / "fleet.json").exists():
            self.fleet.down()
        mark = str(self.folder).encode()
        left = []
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            except OSError:
                continue
            if mark in words and entry.name != str(os.getpid()) and is_running(entry.name):
                left.append((int(entry.name), words.replace(b"\0", b" ").decode(errors="replace")))
        for pid, _ in left:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(left, [], "processes that outlived `dev down`")

    # -- jobs ----------------------------------------------------------------------------------

    def counter(self, name="job", epochs=5, allowed=None, body="", **options):
        """The text of a job that counts epochs and commits each (jobs/counter.py). It begins no epoch
        above the number that `allow` wrote last."""
        self.allow(epochs if allowed is None else allowed, name)
        words = [sys.executable, JOBS / "counter.py", "--epochs", epochs, "--allow", self.gate(name)]
        for option, value in options.items():
            words += [f"--{option.replace('_', '-')}", value]
        return self.job_text(name, words, body)

    def job_text(self, name, words, body=""):
        argv = ", ".join(json.dumps(str(word)) for word in words)
        return f'job :{name} do\n  run [{argv}]\n  env PYTHONPATH: "{CLIENT}"\n{body}\nend\n'

    def shell(self, name, script, body=""):
        return self.job_text(name, ["/bin/sh", "-c", script], body)

    def gate(self, name="job"):
        return self.files / f"{name}.allow"

    def allow(self, epoch, name="job"):
        """The job may go on to this epoch."""
        new = self.gate(name).with_suffix(".new")
        new.write_text(str(epoch))
        new.rename(self.gate(name))

    def apply(self, *parts):
        return self.fleet.apply("deploy :test do\n" + "\n".join(parts) + "\nend\n")

    def dispatch(self, text, name="job", *words):
        """Declares one job and submits it."""
        self.apply(text)
        return self.fleet.do("dispatch", name, *words)

    def assert_says(self, done, *parts):
        """Each part is in what it printed."""
        said = re.sub(r"\s+", " ", done.stdout + done.stderr)
        for part in parts:
            self.assertIn(part, said)
