"""kill -9 of an agent and of a supervisor while a job runs."""

import hashlib
import os
import signal
import sys
import unittest

from support import CLIENT, JOBS, ONE, RUNNING, TWO, FleetCase, is_running, wait_for

sys.path[:0] = [str(JOBS), str(CLIENT)]
import counter  # noqa: E402


class AgentKilled(FleetCase):
    """The job goes on without its agent and is adopted by the next one."""

    nodes = TWO
    lost_after = 60

    def begin(self):
        self.dispatch(self.counter(epochs=8, allowed=2, timeout=2, body='prefer gpu: "A100"'))
        self.fleet.wait_checkpoint("epoch-2")
        return self.job_pid()

    def job_pid(self):
        pids = self.fleet.job_processes()
        self.assertEqual(len(pids), 1, pids)
        return pids[0]

    def test_the_job_goes_on_and_is_adopted(self):
        pid = self.begin()
        generation = self.fleet.job()["generation"]
        self.fleet.kill("beta")
        self.assertTrue(is_running(pid))
        # It trains on without its agent; what it writes meanwhile must not be missing from the log.
        self.allow(3)
        file = self.live_file("ckpt/epoch-3")
        wait_for("the job to go on alone", file.exists)
        self.fleet.up()
        wait_for("beta to be up", lambda: self.fleet.node_status("beta") == "up")
        self.allow(8)
        self.fleet.wait_state("succeeded")
        row = self.fleet.job()
        self.assertEqual((row["attempt"], row["generation"]), (1, generation))
        log = self.fleet.log()
        epochs = [int(line.split()[1]) for line in log if line.startswith("epoch ")]
        self.assertEqual(epochs, list(range(1, 9)), log)
        self.assertIn("finished", log)
        self.assertEqual(self.fleet.live_files("beta", "final"), [counter.digest_after(8)])

    def live_file(self, path):
        home = os.readlink(f"/proc/{self.job_pid()}/cwd")
        return type(self.folder)(home) / path

    def test_the_exit_status_of_a_job_that_ends_meanwhile_is_known(self):
        self.dispatch(self.shell("job", f"echo begun; while [ ! -e {self.files}/go ]; do sleep 0.1; done; exit 7",
                                 "retries 0"))
        self.fleet.wait_line("begun")
        node = self.fleet.job()["node"]
        pid = self.fleet.supervisors(node)[0]
        self.fleet.kill(node)
        (self.files / "go").touch()
        wait_for("the supervisor to end", lambda: not is_running(pid))
        self.fleet.up()
        self.fleet.wait_state("failed")
        self.assertIn("7", self.fleet.job()["reason"])

    def test_agents_killed_again_and_again(self):
        self.begin()
        for epoch in (4, 6, 8):
            self.allow(epoch)
            self.fleet.kill("beta")
            self.fleet.up()
        self.fleet.wait_state("succeeded")
        self.assertEqual(self.fleet.job()["attempt"], 1)
        self.assertEqual(self.fleet.live_files("beta", "final"), [counter.digest_after(8)])


class AgentKilledAtWork(FleetCase):
    """kill -9 of the agent in the middle of what it does."""

    nodes = TWO
    lost_after = 60

    def test_while_checkpoints_are_committed(self):
        """Whatever a job was told is committed is there afterwards, and nothing half-made is."""
        self.dispatch(self.counter(epochs=60, timeout=2, body='prefer gpu: "A100"\ncopies 0'))
        self.fleet.wait_checkpoint("epoch-1")
        for _ in range(4):
            self.fleet.kill("beta")
            self.fleet.up()
        self.fleet.wait_state("succeeded")
        self.assertEqual(self.fleet.job()["attempt"], 1)
        told = [line.split()[2] for line in self.fleet.log() if line.startswith("epoch ") and "not" not in line]
        current = self.fleet.current()
        self.assertFalse(set(told) - set(current), "committed, and gone")
        self.assertEqual(len(current), len(set(current)))
        self.assertEqual(self.fleet.live_files("beta", "final"), [counter.digest_after(60)])

    def test_during_a_rollback(self):
        self.dispatch(self.counter(epochs=8, allowed=4, body='prefer gpu: "A100"'))
        self.fleet.wait_checkpoint("epoch-4")
        for _ in range(3):
            self.fleet.do("rollback", "job@epoch-2", "--yes")
            self.fleet.kill("beta")
            self.fleet.up()
            self.fleet.wait_checkpoint("epoch-4")
        self.allow(8)
        self.fleet.wait_state("succeeded")
        self.assertEqual(self.fleet.current(), [f"epoch-{n}" for n in range(1, 9)])
        branches = {row["dataset"] for row in self.fleet.checkpoints() if not row["current"]}
        self.assertEqual(len(branches), 3, branches)
        self.assertIn(counter.digest_after(8), self.fleet.live_files("beta", "final"))

    def test_while_a_model_is_on_its_way(self):
        content = os.urandom(1_000_000) * 60
        (self.files / "m.bin").write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        self.apply('model :m do\n  file "m.bin"\n  requires vram: 60\nend',
                   self.shell("job", 'sha256sum < "$ZED_MODEL_DIR/m.bin"', "model :m"))
        self.fleet.do("dispatch", "job")
        for daemon in ("beta", "alpha", "beta"):
            self.fleet.kill(daemon)
            self.fleet.up()
        self.fleet.wait_state("succeeded")
        self.assertIn(f"{digest}  -", self.fleet.log())


class SupervisorKilled(FleetCase):
    nodes = ONE

    def test_a_new_attempt_begins_and_nothing_of_the_old_is_left(self):
        self.dispatch(self.counter(epochs=4, allowed=2))
        self.fleet.wait_checkpoint("epoch-2")
        old = self.fleet.job_processes()
        generation = self.fleet.job()["generation"]
        os.kill(self.fleet.supervisors("alpha")[0], signal.SIGKILL)
        wait_for("a new attempt", lambda: (row := self.fleet.job())["attempt"] == 2 and row["state"] in RUNNING)
        self.assertFalse([pid for pid in old if is_running(pid)])
        self.assertNotEqual(self.fleet.job()["generation"], generation)
        self.allow(4)
        self.fleet.wait_state("succeeded")
        self.assertIn("attempt 2 from epoch-2", self.fleet.log())
        self.assertEqual(self.fleet.current(), [f"epoch-{n}" for n in range(1, 5)])

    def test_it_is_not_counted_as_a_retry(self):
        self.dispatch(self.counter(epochs=4, allowed=1, body="retries 0"))
        self.fleet.wait_checkpoint("epoch-1")
        for attempt in (2, 3):
            os.kill(self.fleet.supervisors("alpha")[0], signal.SIGKILL)
            wait_for(f"attempt {attempt}",
                     lambda: (row := self.fleet.job())["attempt"] == attempt and row["state"] in RUNNING
                     and self.fleet.supervisors("alpha"))
        self.allow(4)
        self.fleet.wait_state("succeeded")

    def test_with_its_agent(self):
        """Both at once, the machine staying up: the job's first process dies with its supervisor."""
        self.dispatch(self.counter(epochs=4, allowed=2))
        self.fleet.wait_checkpoint("epoch-2")
        old = self.fleet.job_processes()
        os.kill(self.fleet.pid("alpha"), signal.SIGKILL)
        os.kill(self.fleet.supervisors("alpha")[0], signal.SIGKILL)
        wait_for("the job to be gone", lambda: not any(map(is_running, old)))
        self.allow(4)
        self.fleet.up()
        self.fleet.wait_state("succeeded")
        self.assertIn("attempt 2 from epoch-2", self.fleet.log())


if __name__ == "__main__":
    unittest.main()
