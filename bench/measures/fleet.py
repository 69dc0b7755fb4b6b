"""A development fleet of its own, started and stopped by zedctl, asked through the controller's UNIX socket."""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import uuid
from pathlib import Path

from .machine import BenchError, wait_until


class SocketConnection(http.client.HTTPConnection):
    """HTTP over a UNIX socket, kept open between calls."""

    def __init__(self, path, timeout=60):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def call(self, operation, **members):
        self.request("POST", "/v1/" + operation, json.dumps(members), {"Content-Type": "application/json"})
        reply = self.getresponse()
        body = reply.read()
        if reply.status != 200:
            raise BenchError(f"{operation}: {body.decode(errors='replace')[:500]}")
        return json.loads(body)


class Fleet:
    """`nodes`: machines of no GPU, named n1, n2, ..."""

    def __init__(self, bench, name, nodes=1):
        self.bench = bench
        self.folder = bench.new_folder(name)
        self.dir = self.folder / "fleet"
        (self.folder / "run").mkdir(mode=0o700)
        self.env = dict(os.environ, ZED_DEV_DIR=str(self.dir), XDG_RUNTIME_DIR=str(self.folder / "run"), NO_COLOR="1")
        for variable in ("ZED_CONTROLLER", "ZED_SOCKET"):
            self.env.pop(variable, None)
        self.nodes = [f"n{i + 1}" for i in range(nodes)]
        profile = {"schema": 1, "controller": {"host": "n1"},
                   "nodes": [{"name": node, "pool": "tank", "gpus": "none"} for node in self.nodes]}
        self.profile = self.folder / "profile.json"
        self.profile.write_text(json.dumps(profile))

    def zedctl(self, *words):
        done = subprocess.run([self.bench.program("zedctl"), *map(str, words)], env=self.env, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=120)
        if done.returncode != 0:
            raise BenchError(f"zedctl {words[0]}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def up(self):
        self.bench.program("zed-agent"), self.bench.program("zed-controller")
        self.zedctl("dev", "up", self.profile)
        self.socket = self.described()["socket"]

    def described(self):
        return json.loads((self.dir / "fleet.json").read_text())

    def down(self):
        self.zedctl("dev", "down", "--yes")

    def connection(self):
        return SocketConnection(self.socket)

    def state_of(self, name):
        return self.dir / "controller" if name == "controller" else self.dir / "nodes" / name

    def pid(self, name):
        return json.loads((self.state_of(name) / "pid.json").read_text())["pid"]

    def declare(self, jobs):
        """Applies a cluster file of these jobs ({name: argv}) that need no GPU and no second copy."""
        lines = ["deploy :bench do"]
        for name, argv in jobs.items():
            words = ", ".join(json.dumps(str(word)) for word in argv)
            lines.append(f"job :{name} do\nrun [{words}]\nrequires gpus: 0\ncopies 0\nend")
        lines.append("end\n")
        self.connection().call("apply", text="\n".join(lines), folder=str(self.folder))

    def wait_for_jobs(self, state, count, patience=120, every=0.02):
        connection = self.connection()
        return wait_until(f"{count} jobs to be {state}",
                          lambda: connection.call("status")["jobs"].get(state, 0) >= count, patience, every)


def begin_fleet(bench, state, name):
    """`zed-controller init` into the folder `state`: a certificate authority and the controller's certificate."""
    state.mkdir(parents=True, mode=0o700)
    passphrase = state / "passphrase"
    passphrase.write_text("only for measuring\n")
    done = subprocess.run([bench.program("zed-controller"), "init", "--state", state, "--name", name, "--host",
                           "127.0.0.1", "--passphrase-file", passphrase], capture_output=True, text=True)  # fmt: skip
    if done.returncode != 0:
        raise BenchError(f"zed-controller init: {done.stderr.strip()}")


def dispatch(connection, job):
    return connection.call("dispatch", job=job, uuid=uuid.uuid4().hex)


@contextlib.contextmanager
def running_fleet(bench, name, nodes=1):
    fleet = Fleet(bench, name, nodes)
    try:
        fleet.up()
        yield fleet
    finally:
        if (fleet.dir / "fleet.json").exists():
            fleet.down()


def read_clock(path):
    """What exec_clock left in its file: monotonic nanoseconds at its first instruction; None while it has not."""
    try:
        text = Path(path).read_text()
    except FileNotFoundError:
        return None
    return int(text.split()[0]) if text.endswith("\n") else None
