"""What is in the way when a fleet starts: ports that are taken, stale pid files, a second start."""

import json
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import BINARIES, DONE, ERROR, NOT_FOUND, ONE, REFUSED, TWO, FleetCase, wait_for


class PortInUse(FleetCase):
    starts_up = False

    def setUp(self):
        super().setUp()
        self.holder = socket.socket()
        self.addCleanup(self.holder.close)
        self.holder.bind(("127.0.0.1", 0))
        self.holder.listen()
        self.port = self.holder.getsockname()[1]
        self.cookie = self.folder / "cookie"
        self.cookie.write_text("secret")
        self.cookie.chmod(0o600)

    def refusal(self, program, *options):
        command = [BINARIES / program, "run", f"--state={self.folder / 'state'}", "--name=alpha",
                   f"--cookie-file={self.cookie}", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, ERROR, done.stderr)
        self.assertIn(str(self.port), done.stderr)
        return done.stderr

    def test_the_controllers(self):
        self.refusal("zed-controller", f"--port={self.port}", f"--socket={self.folder / 's'}")

    def test_an_agents(self):
        self.refusal("zed-agent", f"--port={self.port}", "--data-port=0")

    def test_an_agents_for_data(self):
        self.refusal("zed-agent", "--port=0", f"--data-port={self.port}")

    def test_an_address_beyond_loopback_is_refused(self):
        for program in ("zed-controller", "zed-agent"):
            command = [BINARIES / program, "run", f"--state={self.folder / 'state'}", "--name=alpha",
                       f"--cookie-file={self.cookie}", "--listen=0.0.0.0", "--port=0"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, ERROR, done.stderr)
            self.assertIn("0.0.0.0", done.stderr)


class Arguments(unittest.TestCase):
    """What the daemons say of words that they cannot read: status 1 as everywhere, the place and the way out."""

    def refusal(self, program, *words):
        done = subprocess.run([BINARIES / program, *words], capture_output=True, text=True, timeout=30)
        self.assertEqual((done.returncode, done.stdout), (ERROR, ""), done.stderr)
        return done.stderr

    def test_what_cannot_be_read_is_named(self):
        for program in ("zed-agent", "zed-controller"):
            self.assertEqual(self.refusal(program, "rnu"),
                             f"{program}: there is no rnu\n  next: {program} --help\n")
            self.assertIn(f"next: {program} run --help", self.refusal(program, "run", "--frobnicate"))
            self.assertIn("--port", self.refusal(program, "run", "--port=many"))
        help_text = subprocess.run([BINARIES / "zed-agent", "run", "--help"], capture_output=True, text=True, timeout=30)
        self.assertEqual(help_text.returncode, DONE)
        self.assertIn("--store", help_text.stdout)

    def test_an_agent_of_no_fleet_says_how_to_join_one(self):
        with tempfile.TemporaryDirectory() as state:
            said = self.refusal("zed-agent", "run", f"--state={state}/a")
        self.assertIn("joined no fleet yet", said)
        self.assertIn("zed-agent join", said)


class ControllerWithoutCertificates(FleetCase):
    starts_up = False

    def test_takes_this_machines_name_and_says_whom_it_serves(self):
        """The first thing that a newcomer types."""
        log = self.folder / "log"
        command = [BINARIES / "zed-controller", "run", f"--state={self.folder / 'c'}", "--port=0"]
        with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as controller:
            self.addCleanup(controller.kill)
            wait_for("it to be ready", lambda: "controller ready" in log.read_text() or controller.poll() is not None)
            self.assertIsNone(controller.poll(), log.read_text())
            self.assertIn("only this machine is served; for others: zed-controller init", log.read_text())
            controller.terminate()


class StalePidFile(FleetCase):
    nodes = ONE

    def test_of_a_process_that_is_someone_elses(self):
        """After a power cut the pid may be anybody's: it is neither taken for ours nor killed."""
        self.fleet.kill("alpha")
        self.fleet.kill("controller")
        stranger = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(stranger.wait)
        self.addCleanup(stranger.kill)
        for daemon in ("alpha", "controller"):
            path = self.fleet.state_of(daemon) / "pid.json"
            identity = json.loads(path.read_text())
            identity["pid"] = stranger.pid
            path.write_text(json.dumps(identity))
        self.assertEqual(self.fleet.process("alpha")["state"], "not running")
        self.fleet.up()
        self.assertEqual(self.fleet.node_status("alpha"), "up")
        self.fleet.down()
        self.assertIsNone(stranger.poll())

    def test_that_is_no_pid_file(self):
        self.fleet.kill("alpha")
        for text in ("", "\0\0\0\0", "[" * 10_000, '{"pid": -1}', '{"pid": 1, "boot": "x", "start": 0}'):
            (self.fleet.state_of("alpha") / "pid.json").write_text(text)
            self.fleet.up()
            self.assertEqual(self.fleet.node_status("alpha"), "up")
            self.fleet.kill("alpha")

    def test_stale_sockets_are_no_obstacle(self):
        self.dispatch(self.counter(epochs=2, allowed=1))
        self.fleet.wait_checkpoint("epoch-1")
        for daemon in ("alpha", "controller"):
            self.fleet.kill(daemon)
        self.allow(2)
        self.fleet.up()
        self.fleet.wait_state("succeeded")


class SecondStart(FleetCase):
    nodes = TWO

    def test_up_twice_is_up_once(self):
        pids = [self.fleet.pid(name) for name in ("controller", "alpha", "beta")]
        self.fleet.up()
        self.assertEqual(pids, [self.fleet.pid(name) for name in ("controller", "alpha", "beta")])

    def test_another_profile_in_the_same_folder_is_refused(self):
        profile = self.folder / "other.json"
        profile.write_text(json.dumps({"schema": 1, "nodes": ONE}))
        self.fleet.zedctl("dev", "up", profile, status=REFUSED)

    def test_an_agent_beside_the_one_that_runs(self):
        state = self.fleet.state_of("alpha")
        words = Path(f"/proc/{self.fleet.pid('alpha')}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        done = subprocess.run(words, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, ERROR)
        self.assertIn(str(state), done.stderr)
        self.assertEqual(self.fleet.node_status("alpha"), "up")

    def test_down_up_goes_on(self):
        self.dispatch(self.counter(epochs=3, allowed=2))
        self.fleet.wait_checkpoint("epoch-2")
        self.fleet.down()
        self.allow(3)
        self.fleet.up()
        self.fleet.wait_state("succeeded")
        self.assertEqual(self.fleet.current(), ["epoch-1", "epoch-2", "epoch-3"])

    def test_a_broken_profile(self):
        for text in ("{", '{"schema": 2}', '{"schema": 1, "nodes": []}', '{"schema": 1, "nodes": [{"name": "../x"}]}',
                     '{"schema": 1, "nodes": [{"name": "a", "gpus": "rtx-9999"}]}'):
            profile = self.folder / "broken.json"
            profile.write_text(text)
            folder = self.folder / "other"
            done = self.fleet.zedctl("dev", "up", profile, "--dir", folder)
            self.assertNotEqual(done.returncode, DONE, text)
            # Nothing of it is left: no process, no fleet.
            self.fleet.zedctl("dev", "status", "--dir", folder, status=NOT_FOUND)
            self.assertEqual(list(Path(folder).glob("**/*.sock")), [])


if __name__ == "__main__":
    unittest.main()
