"""Zed's own programs on the lab's machines: a controller and agents, operated by zedctl as a person would."""

import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

from fleet import BUILD, HERE, PATIENCE, ROOT, LabError, Payload

PROGRAMS = ["zedctl", "zed-agent", "zed-supervise", "zed-controller"]
COOKIE = "the-lab-is-closed"
HEARTBEATS_SCALED = 60  # seconds until a node is lost: machines in emulation think slowly
SOCKET = "/run/zed-controller.sock"
DOOR_PORT = 4399
PYTHON = pathlib.Path("/usr/bin/python3")
PYTHON_THERE = f"/zed/bin/{PYTHON.resolve().name}"
LEFT_OUT = {"test", "tests", "idlelib", "tkinter", "lib2to3", "ensurepip", "distutils", "turtledemo", "site-packages",
            "dist-packages", "__pycache__", "pydoc_data", "multiprocessing", "xmlrpc", "wsgiref", "curses", "dbm"}


def standard_library():
    """Python's library as one archive of compiled modules."""
    asked = "import sys, sysconfig; print(sysconfig.get_path('stdlib')); print('%d%d' % sys.version_info[:2])"
    answer = subprocess.run([PYTHON, "-c", asked], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    top, version = pathlib.Path(answer[0]), answer[1]
    script = (
        "import sys, pathlib, zipfile, py_compile\n"
        "top, target, left = pathlib.Path(sys.argv[1]), sys.argv[2], set(sys.argv[3:])\n"
        "out = zipfile.ZipFile(target, 'w')\n"
        "for path in sorted(top.rglob('*.py')):\n"
        "    inside = path.relative_to(top)\n"
        "    if left & set(inside.parts): continue\n"
        "    try: code = py_compile.compile(str(path), cfile=target + '.pyc', doraise=True)\n"
        "    except py_compile.PyCompileError: continue\n"
        "    out.write(code, str(inside) + 'c')\n"
        "out.close()\n"
    )
    folder = ROOT / "build" / "lab"
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"python{version}.zip"
    if not target.exists():
        subprocess.run([PYTHON, "-c", script, top, f"{target}.new", *LEFT_OUT], check=True)
        os.rename(f"{target}.new", target)
    return target, f"/usr/lib/python{version}.zip", top


def payload(with_python=True):
    """Zed's programs and, for jobs, Python with Zed's client and a job that counts (test/e2e/jobs)."""
    made = Payload()
    for name in PROGRAMS:
        if (BUILD / "src" / "bin" / name).exists():
            made.program(BUILD / "src" / "bin" / name)
    made.add("/zed/cookie", COOKIE)
    if with_python:
        made.program(PYTHON.resolve())
        archive, place, top = standard_library()
        made.add(place, archive)
        for module in (top / "lib-dynload").glob("*.so"):
            if module.name.startswith(("_json", "_hashlib", "_uuid", "_queue")):
                made.add(str(module), module)
        for path in (ROOT / "clients" / "python" / "zed").glob("*.py"):
            made.add(f"/zed/client/zed/{path.name}", path)
        made.add("/zed/forward.py", HERE / "forward.py")
        made.add("/zed/jobs/counter.py", ROOT / "test" / "e2e" / "jobs" / "counter.py")
        made.add("/zed/jobs/train.py", ROOT / "test" / "lab" / "jobs" / "train.py")
    return made


class Daemons:
    """A controller on one machine, an agent on each, and zedctl (which runs on the host)."""

    def __init__(self, host, lost_after=HEARTBEATS_SCALED):
        self.host = host
        self.lost_after = lost_after
        self.agents = {}
        self.door = host.fleet.folder / "door"
        self.forward = None

    # ---- starting

    def start_controller(self):
        """Its journal is in a dataset of its own, so that it survives the machine's power."""
        self.host.run(
            f"chmod 600 /zed/cookie; zfs create -p -o mountpoint=/controller {self.host.pool}/controller;"
            f"setsid zed-controller run --state /controller/state --name {self.host.name} --machine {self.host.name}"
            f" --cookie-file /zed/cookie --socket {SOCKET} --listen {self.host.address} --lost-after {self.lost_after}"
            " --dangerously-allow-plain-tcp > /run/controller.log 2>&1 &"
        )
        self.host.wait_for(f"[ -S {SOCKET} ]")
        self.open_door()

    def open_door(self):
        """From a socket of the host to the controller's; again after its machine's restart."""
        self.close()
        address = f"tcp:{self.host.address}:{DOOR_PORT}"
        self.host.run(f"setsid {PYTHON_THERE} /zed/forward.py {address} unix:{SOCKET} > /run/forward.log 2>&1 &")
        self.host.wait_for(f"grep -qi :{DOOR_PORT:04X} /proc/net/tcp")
        self.door.unlink(missing_ok=True)
        command = [*self.host.fleet.inside(), sys.executable, HERE / "forward.py", f"unix:{self.door}", address]
        self.forward = subprocess.Popen(command)
        for _ in range(1000):
            if self.door.exists():
                return
            time.sleep(0.01)
        raise LabError("the door to the controller does not open")

    def close(self):
        if self.forward:
            self.forward.kill()
            self.forward.wait()

    def start_agent(self, machine, gpus="none", name=None, store="zfs", port=0):
        """`port`: 4370 + port and 4373 + port are its; a second agent of a machine needs others."""
        name = name or machine.name
        pool = machine.pool if store == "zfs" else "files"
        self.agents[name] = machine
        machine.run(
            "chmod 600 /zed/cookie;"
            f"setsid zed-agent run --state /run/agent-{name} --name {name} --store {store} --pool {pool} --gpus {gpus}"
            f" --cookie-file /zed/cookie --listen {machine.address} --port {4370 + port} --data-port {4373 + port}"
            f" --controller {self.host.name}@{self.host.address}:4371 --dangerously-allow-plain-tcp"
            f" --jobs-as-self --transfer-patience {PATIENCE} > /run/{name}.log 2>&1 & echo $! > /run/{name}.pid"
        )

    def kill_agent(self, name):
        self.agents[name].run(f"kill -9 $(cat /run/{name}.pid)")

    # ---- zedctl

    def begin(self, words):
        """Starts zedctl; finish() waits for it."""
        environment = dict(os.environ, NO_COLOR="1", ZED_CONTROLLER=str(self.door))
        return subprocess.Popen([BUILD / "src" / "bin" / "zedctl", *shlex.split(words)], env=environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip

    def finish(self, command, timeout=PATIENCE):
        """Its exit status and what it printed."""
        try:
            output = command.communicate(timeout=timeout)[0]
        except subprocess.TimeoutExpired:
            command.kill()
            output = command.communicate()[0] + f"\n(killed after {timeout} s)"
        return command.returncode, output

    def zedctl(self, words, timeout=PATIENCE):
        return self.finish(self.begin(words), timeout)

    def do(self, words, timeout=PATIENCE):
        status, output = self.zedctl(words, timeout)
        if status != 0:
            raise LabError(f"zedctl {words}: exit {status}\n{output}")
        return output

    def ask(self, words):
        environment = dict(os.environ, NO_COLOR="1", ZED_CONTROLLER=str(self.door))
        done = subprocess.run([BUILD / "src" / "bin" / "zedctl", *shlex.split(words), "--json"], env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)  # fmt: skip
        if done.returncode != 0:
            raise LabError(f"zedctl {words} --json: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def apply(self, text):
        path = self.host.fleet.folder / "cluster.exs"
        path.write_text(text)
        return self.do(f"apply {path} --yes")

    def job(self, name):
        return next((row for row in self.ask("jobs --all")["jobs"] if row["name"] == name), None)

    def checkpoints(self, name):
        return [row for row in self.ask(f"checkpoints {name}")["checkpoints"] if row["seq"] is not None]

    def current(self, name):
        rows = [row for row in self.checkpoints(name) if row["current"]]
        return [row["name"] for row in sorted(rows, key=lambda row: row["seq"])]

    def logs(self):
        texts = [f"---- controller\n{self.host.status('tail -n 40 /run/controller.log')[1]}"]
        for name, machine in self.agents.items():
            if machine.process.poll() is None:
                texts.append(f"---- {name}\n{machine.status(f'tail -n 40 /run/{name}.log')[1]}")
        return "\n".join(texts)


def job_text(name, script, words, body=""):
    """The cluster file's text of a job that runs one of /zed/jobs."""
    argv = ", ".join(json.dumps(str(word)) for word in [PYTHON_THERE, script, *words])
    return f'job :{name} do\n  run [{argv}]\n  env PYTHONPATH: "/zed/client"\n{body}\nend\n'


def counter(name, epochs, gate, body=""):
    """A job that counts epochs and commits each; it begins none above the number in the file `gate`."""
    return job_text(name, "/zed/jobs/counter.py", ["--epochs", epochs, "--allow", gate, "--timeout", 120], body)


def training(name, epochs, gate, body="", **options):
    """The training of jobs/train.py; `options` as there."""
    words = ["--epochs", epochs, "--allow", gate]
    for option, value in options.items():
        words += [f"--{option.replace('_', '-')}", value]
    return job_text(name, "/zed/jobs/train.py", words, body)
