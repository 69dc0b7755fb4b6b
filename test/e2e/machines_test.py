"""A fleet of several machines: network namespaces with addresses of their own, joined by tokens, TLS between
them. Needs root and `ip`; says so and skips otherwise."""

import json
import os
import re
import resource
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import BINARIES, CLIENT, DONE, JOBS, LINES_OF_LOG, REFUSED, wait_for

PASSPHRASE = "only for tests"
NET = "10.213.77"


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True)


def can_make_namespaces():
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"zedtest{os.getpid()}"
    made = ip("netns", "add", name).returncode == 0
    ip("netns", "del", name)
    return made


def limit_as_a_login():
    """The soft limit of open files that a person's shell usually has."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def open_files(process):
    """Its soft and its hard limit."""
    text = Path(f"/proc/{process.pid}/limits").read_text()
    return re.search(r"Max open files +(\d+) +(\d+)", text).groups()


class Machine:
    """A network namespace, and a folder that stands for its disk."""

    def __init__(self, network, name, number):
        self.name = name
        self.address = f"{NET}.{number}"
        self.space = f"{network.mark}{number}"
        self.folder = network.folder / name
        self.folder.mkdir()
        self.processes = {}
        self.environment = dict(
            os.environ, HOME=str(self.folder), XDG_CONFIG_HOME=str(self.folder / "config"),
            XDG_RUNTIME_DIR=str(self.folder), ZED_DEV_DIR=str(self.folder / "dev"), NO_COLOR="1",
        )  # fmt: skip
        for variable in ("ZED_CONTROLLER", "ZED_FLEET", "ZED_SOCKET"):
            self.environment.pop(variable, None)
        network.plug(self)

    def command(self, program, *words):
        path = BINARIES / program
        return ["ip", "netns", "exec", self.space, str(path if path.exists() else program), *map(str, words)]

    def run(self, program, *words, status=DONE, timeout=60):
        done = subprocess.run(self.command(program, *words), env=self.environment, capture_output=True, text=True,
                              errors="replace", timeout=timeout, stdin=subprocess.DEVNULL, cwd=self.folder)
        if status is not None and done.returncode != status:
            raise AssertionError(f"{self.name}: {program} {' '.join(map(str, words))}: exit {done.returncode}, "
                                 f"not {status}\n{done.stdout}{done.stderr}")
        return done

    def ask(self, *words):
        return json.loads(self.run("zedctl", *words, "--json").stdout)

    def start(self, program, *words):
        with (self.folder / f"{program}.log").open("ab") as log:
            self.processes[program] = subprocess.Popen(
                self.command(program, *words), env=self.environment, stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, cwd=self.folder, start_new_session=True, preexec_fn=limit_as_a_login)

    def stop(self, program, sig=signal.SIGTERM):
        process = self.processes.pop(program)
        process.send_signal(sig)
        process.wait(20)

    def log(self, program):
        path = self.folder / f"{program}.log"
        return path.read_text(errors="replace") if path.exists() else ""


class Network:
    """Machines around one switch."""

    def __init__(self, folder):
        self.folder = folder
        self.mark = f"z{os.getpid() % 100000}n"
        self.machines = []
        self.switch = f"{self.mark}sw"
        for words in (("netns", "add", self.switch), ("-n", self.switch, "link", "add", "name", "bridge0", "type", "bridge"),
                      ("-n", self.switch, "link", "set", "bridge0", "up")):  # fmt: skip
            done = ip(*words)
            if done.returncode != 0:
                raise unittest.SkipTest(f"no network namespaces here: {done.stderr.strip()}")

    def add(self, name):
        machine = Machine(self, name, len(self.machines) + 1)
        self.machines.append(machine)
        return machine

    def plug(self, machine):
        port = machine.space
        for words in (("netns", "add", machine.space),
                      ("link", "add", "name", port, "netns", self.switch, "type", "veth", "peer", "name", "eth0", "netns",
                       machine.space),
                      ("-n", self.switch, "link", "set", port, "master", "bridge0", "up"),
                      ("-n", machine.space, "addr", "add", f"{machine.address}/24", "dev", "eth0"),
                      ("-n", machine.space, "link", "set", "eth0", "up"),
                      ("-n", machine.space, "link", "set", "lo", "up")):  # fmt: skip
            done = ip(*words)
            if done.returncode != 0:
                raise AssertionError(f"ip {' '.join(words)}: {done.stderr}")

    def close(self):
        for machine in self.machines:
            for pid in ip("netns", "pids", machine.space).stdout.split():
                os.kill(int(pid), signal.SIGKILL)
            for process in machine.processes.values():
                process.wait(20)
            ip("netns", "del", machine.space)
        ip("netns", "del", self.switch)


class MachinesCase(unittest.TestCase):
    """One controller, two agents, a laptop: joined once for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        if not can_make_namespaces():
            raise unittest.SkipTest("SKIPPED: network namespaces need root and `ip` (iproute2)")
        cls.folder = Path(tempfile.mkdtemp(prefix="zed-machines-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.network = Network(cls.folder)
        cls.addClassCleanup(cls.network.close)
        cls.controller, cls.alpha, cls.beta, cls.laptop = map(cls.network.add, ("ctl", "alpha", "beta", "laptop"))
        cls.begin_fleet(cls.controller)
        for agent, gpus in ((cls.alpha, "rtx-4090"), (cls.beta, "2x-a100-80")):
            cls.join(agent)
            cls.start_agent(agent, gpus)
        cls.laptop.run("zedctl", "login", cls.controller.address, "--token", cls.token("alice", "operator"))
        wait_for("both agents to be up", lambda: cls.up() == {"alpha", "beta"})

    def run(self, result=None):
        result = self.defaultTestResult() if result is None else result
        faults = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > faults and hasattr(self, "network"):
            for machine in self.network.machines:
                for path in sorted(machine.folder.glob("*.log")):
                    lines = path.read_text(errors="replace").splitlines()[-LINES_OF_LOG:]
                    print(f"---- {machine.name}/{path.name}\n" + "\n".join(lines), file=sys.stderr, flush=True)
        return result

    # -- the fleet -----------------------------------------------------------------------------

    @classmethod
    def begin_fleet(cls, machine):
        passphrase = machine.folder / "passphrase"
        passphrase.write_text(PASSPHRASE + "\n")
        machine.run("zed-controller", "init", "--state", "c", "--name", machine.name, "--host", machine.address,
                    "--passphrase-file", passphrase)
        machine.start("zed-controller", "run", "--state", "c", "--lost-after", 7)
        wait_for("the controller's socket", (machine.folder / "c/controller.sock").exists)

    @classmethod
    def at_controller(cls, *words, **options):
        """zedctl on the controller's own machine."""
        return cls.controller.run("zedctl", "--socket", cls.controller.folder / "c/controller.sock", *words, **options)

    @classmethod
    def token(cls, name, role="agent"):
        return cls.at_controller("token", "create", "--node", name, "--role", role).stdout.strip()

    @classmethod
    def join(cls, agent, name=None):
        return agent.run("zed-agent", "join", cls.controller.address, "--token", cls.token(name or agent.name),
                         "--state", "a")

    @classmethod
    def start_agent(cls, agent, gpus="none"):
        agent.start("zed-agent", "run", "--state", "a", "--gpus", gpus, "--jobs-as-self")

    @classmethod
    def up(cls):
        rows = cls.laptop.ask("nodes")["nodes"]
        return {row["node"]["name"] for row in rows if row["node"]["status"] == "up"}

    def dispatch(self, name, epochs, body=""):
        gate = self.folder / f"{name}.allow"
        gate.write_text(str(epochs))
        words = [sys.executable, JOBS / "counter.py", "--epochs", epochs, "--allow", gate]
        argv = ", ".join(json.dumps(str(word)) for word in words)
        text = (f'deploy :test do\njob :{name} do\n  run [{argv}]\n  env PYTHONPATH: "{CLIENT}"\n{body}\nend\nend\n')
        cluster = self.laptop.folder / "cluster.exs"
        cluster.write_text(text)
        self.laptop.run("zedctl", "apply", cluster, "--yes")
        self.laptop.run("zedctl", "dispatch", name)

    def state(self, name):
        rows = self.laptop.ask("jobs", "--all")["jobs"]
        return next((row["state"] for row in rows if row["name"] == name), None)

    def holders(self, name, checkpoint):
        rows = self.laptop.ask("checkpoints", name)["checkpoints"]
        return next((set(row["nodes"]) for row in rows if row["name"] == checkpoint), set())


class Machines(MachinesCase):
    def test_1_a_job_runs_and_its_checkpoints_travel(self):
        self.dispatch("train", 3)
        wait_for("the job to succeed", lambda: self.state("train") == "succeeded")
        wait_for("its last checkpoint on both machines",
                 lambda: self.holders("train", "epoch-3") == {"alpha", "beta"})
        for agent in (self.alpha, self.beta):
            self.assertTrue(list((agent.folder / "a/pool").rglob("epoch-3")), agent.name)

    def test_2_a_viewer_looks_and_changes_nothing(self):
        viewer = self.network.add("viewer")
        viewer.run("zedctl", "login", self.controller.address, "--token", self.token("bob", "viewer"))
        self.assertEqual({row["node"]["name"] for row in viewer.ask("nodes")["nodes"]}, {"alpha", "beta"})
        for words in (("cordon", "alpha"), ("token", "create", "--node", "eve", "--role", "operator"),
                      ("node", "forget", "alpha")):  # fmt: skip
            done = viewer.run("zedctl", *words, status=REFUSED)
            self.assertIn("may look at the fleet", done.stderr)

    def test_3_tokens_are_good_once_and_for_one_name(self):
        stranger = self.network.add("stranger")
        token = self.token("gamma")
        join = ("zed-agent", "join", self.controller.address, "--state", "a", "--token")
        altered = token.replace("zed@gamma", "zed@delta")
        for wrong in (altered, token[:-1] + ("0" if token[-1] != "0" else "1"), "nonsense"):
            self.assertNotEqual(stranger.run(*join, wrong, status=None).returncode, 0, wrong)
        stranger.run(*join, token)
        shutil.rmtree(stranger.folder / "a")
        self.assertIn("used", stranger.run(*join, token, status=None).stderr)
        taken = self.at_controller("token", "create", "--node", "gamma", status=None)
        self.assertIn("zedctl node forget gamma", taken.stderr)
        self.at_controller("node", "forget", "gamma")
        self.assertTrue(self.token("gamma"))

    def test_4_another_fleets_machine_is_refused(self):
        rogue = self.network.add("rogue")
        self.begin_fleet(rogue)
        socket_path = rogue.folder / "c/controller.sock"
        token = rogue.run("zedctl", "--socket", socket_path, "token", "create", "--node", "alpha").stdout.strip()
        # Its token names another authority: it is not even shown to our controller.
        done = rogue.run("zed-agent", "join", self.controller.address, "--state", "a", "--token", token, status=None)
        self.assertIn("another certificate authority", done.stderr)
        rogue.run("zed-agent", "join", rogue.address, "--state", "a", "--token", token)
        rogue.start("zed-agent", "run", "--state", "a", "--controller", f"ctl@{self.controller.address}:4371")
        wait_for("the refusal", lambda: "another fleet" in rogue.log("zed-agent"))
        self.assertEqual(self.up(), {"alpha", "beta"})

    def test_5_plain_tcp_is_refused_unless_the_flag_is_given(self):
        lonely = self.network.add("lonely")
        words = ("zed-agent", "run", "--state", "p", "--name", "lonely", "--listen", lonely.address)
        self.assertIn("plain TCP is for this machine only", lonely.run(*words, status=None).stderr)
        lonely.start(*words, "--dangerously-allow-plain-tcp", "--controller", f"ctl@{self.controller.address}:4371")
        wait_for("it to run", lambda: "is ready" in lonely.log("zed-agent"))
        self.assertIn("whoever reaches", lonely.log("zed-agent"))
        wait_for("the controller to refuse it", lambda: "no controller yet" in lonely.log("zed-agent"))
        self.assertEqual(self.up(), {"alpha", "beta"})

    def test_6_garbage_silence_and_slow_clients_keep_nobody_out(self):
        for machine, program in ((self.controller, "zed-controller"), (self.alpha, "zed-agent")):
            soft, hard = open_files(machine.processes[program])
            self.assertEqual(soft, hard, f"{program} does with what a login has")
        attacker = self.network.add("attacker")
        script = Path(__file__).with_name("flood.py")
        for port in (4371, 4372):
            flood = subprocess.Popen(attacker.command(sys.executable, script, self.controller.address, port, 10_000),
                                     stdout=subprocess.PIPE, text=True)  # fmt: skip
            self.addCleanup(flood.kill)
            answered = 0
            while flood.poll() is None:
                self.assertEqual(self.up(), {"alpha", "beta"})
                answered += 1
            self.assertIn(" made, ", flood.communicate()[0])
            self.assertGreater(answered, 0)
        attacker.run(sys.executable, script, self.alpha.address, 4370, 300)
        attacker.run(sys.executable, script, self.alpha.address, 4373, 300)
        self.assertEqual(self.up(), {"alpha", "beta"})
        self.dispatch("after", 1)
        wait_for("a job after the flood", lambda: self.state("after") == "succeeded")

    @unittest.skipUnless(shutil.which("erl"), "SKIPPED: erl is not installed")
    def test_7_an_erlang_shell_joins_by_its_certificate(self):
        flags = self.laptop.run("zedctl", "shell-config").stdout.splitlines()[0]
        call = ("pong = net_adm:ping('zed_controller@ctl'), "
                "R = gen_server:call({zed, 'zed_controller@ctl'}, {zed, 1, 'Elixir.Zed.Cluster', nodes, []}, 5000), "
                'io:format("~0tp~n", [R]), halt(0).')
        done = self.laptop.run("sh", "-c", f"{flags} -noinput -eval {shlex.quote(call)}")
        self.assertIn("{ok,", done.stdout)
        self.assertIn("alpha", done.stdout)
        # In another's name the certificate does not do.
        other = flags.replace("alice@alice", "zed@alpha")
        done = self.laptop.run("sh", "-c", f"{other} -noinput -eval {shlex.quote(call)}", status=None)
        self.assertNotIn("{ok,", done.stdout)

    def test_8_tokens_do_for_programs_without_a_certificate(self):
        tls = ssl.create_default_context(cafile=str(self.controller.folder / "c/pki/ca.pem"))
        token = (self.controller.folder / "c/viewer.token").read_text().strip()
        script = self.laptop.folder / "curl.py"
        script.write_text(
            "import ssl, sys, urllib.request\n"
            f"tls = ssl.create_default_context(cafile={str(self.controller.folder / 'c/pki/ca.pem')!r})\n"
            f"ask = urllib.request.Request('https://{self.controller.address}:4372/v1/jobs', data=b'{{}}', "
            f"headers={{'Authorization': 'Bearer {token}'}})\n"
            "print(urllib.request.urlopen(ask, context=tls, timeout=10).read().decode())\n")
        self.assertIsNotNone(tls)
        self.assertIn('"jobs"', self.laptop.run(sys.executable, script).stdout)

    def test_9_a_forgotten_machine_is_out_at_once_and_every_change_is_written_down(self):
        self.at_controller("node", "forget", "beta", "--force")
        wait_for("beta to be away", lambda: "beta" not in self.up(), patience=20)
        wait_for("beta to be refused", lambda: "revoked" in self.beta.log("zed-agent")
                 or "does not believe" in self.beta.log("zed-agent"))
        wait_for("alpha to go on", lambda: self.up() == {"alpha"})
        lines = [json.loads(line) for line in (self.controller.folder / "c/audit.log").read_text().splitlines()]
        forgotten = [line for line in lines if line["what"] == "node-forget" and line["result"] == "ok"]
        self.assertTrue(forgotten)
        self.assertEqual(forgotten[-1]["door"], "socket")
        dispatched = next(line for line in lines if line["what"] == "dispatch")
        self.assertEqual((dispatched["who"], dispatched["door"]), ("alice@alice", "https"))
        self.assertTrue(dispatched["from"].startswith(self.laptop.address))
        refused = [line for line in lines if line["what"] == "node-duty"]
        self.assertIn("may look at the fleet", refused[0]["result"])
        self.assertNotIn("zed1:", (self.controller.folder / "c/audit.log").read_text())
        # Under its name it joins again, and is believed.
        self.beta.stop("zed-agent")
        shutil.rmtree(self.beta.folder / "a/pki")
        self.join(self.beta)
        self.start_agent(self.beta, "2x-a100-80")
        wait_for("beta to be back", lambda: self.up() == {"alpha", "beta"})


if __name__ == "__main__":
    unittest.main()
