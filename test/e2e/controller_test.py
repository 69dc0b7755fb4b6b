"""kill -9 of the controller at several moments, then up again: nothing is lost."""

import sys
import unittest

from support import CLIENT, JOBS, ONE, RUNNING, TWO, FleetCase, wait_for

sys.path[:0] = [str(JOBS), str(CLIENT)]
import counter  # noqa: E402


class ControllerKilled(FleetCase):
    nodes = TWO

    def test_pending_jobs(self):
        names = [f"job{n}" for n in range(20)]
        self.fleet.do("cordon", "alpha")
        self.fleet.do("cordon", "beta")
        self.apply(*(self.counter(name, epochs=1) for name in names))
        for name in names:
            self.fleet.do("dispatch", name)
        before = {row["name"]: row["id"] for row in self.fleet.ask("jobs")["jobs"]}
        self.fleet.kill("controller")
        self.fleet.up()
        after = {row["name"]: row["id"] for row in self.fleet.ask("jobs")["jobs"] if row["state"] == "pending"}
        self.assertEqual(after, before)
        self.assertEqual(self.fleet.node_status("alpha"), "cordoned")
        self.fleet.do("uncordon", "alpha")
        self.fleet.do("uncordon", "beta")
        for name in names:
            self.fleet.wait_state("succeeded", name)
            self.assertEqual(self.fleet.job(name)["attempt"], 1)

    def test_running_jobs(self):
        self.dispatch(self.counter(epochs=6, allowed=2))
        self.fleet.wait_checkpoint("epoch-2")
        (pid,) = self.fleet.job_processes()
        before = self.fleet.job()
        self.fleet.kill("controller")
        self.allow(4)  # commits need no controller
        wait_for("the job to go on alone", lambda: self.has_snapshot(before["node"], "epoch-4"))
        self.fleet.up()
        self.fleet.wait_checkpoint("epoch-4")
        after = self.fleet.job()
        self.assertEqual((after["id"], after["generation"], after["attempt"]),
                         (before["id"], before["generation"], before["attempt"]))
        self.assertEqual(self.fleet.job_processes(), [pid])
        self.allow(6)
        self.fleet.wait_state("succeeded")
        self.assertIn(counter.digest_after(6), self.fleet.live_files(before["node"], "final"))

    def has_snapshot(self, node, name):
        return any(path.name.endswith(f"-{name}") for path in (self.fleet.pool(node) / "snapshots").iterdir())

    def test_a_job_that_ends_meanwhile(self):
        self.dispatch(self.counter(epochs=3, allowed=1))
        self.fleet.wait_checkpoint("epoch-1")
        self.fleet.kill("controller")
        self.allow(3)
        wait_for("the job to end", lambda: not self.fleet.job_processes())
        self.fleet.up()
        self.assertEqual(self.fleet.wait_state(("succeeded", "failed"))["state"], "succeeded")
        self.assertEqual(self.fleet.job()["attempt"], 1)

    def test_during_a_rollback(self):
        """Killed right after the answer, while the work that follows it is under way."""
        self.dispatch(self.counter(epochs=8, allowed=4))
        self.fleet.wait_checkpoint("epoch-4")
        for _ in range(3):
            self.allow(4)
            self.fleet.do("rollback", "job@epoch-2", "--yes")
            self.fleet.kill("controller")
            self.fleet.up()
            self.fleet.wait_checkpoint("epoch-4")
        rows = self.fleet.checkpoints()
        for n in (3, 4):
            named = [row for row in rows if row["name"].startswith(f"epoch-{n}")]
            self.assertEqual(len(named), 4, named)
        self.allow(8)
        self.fleet.wait_state("succeeded")
        self.assertEqual(self.fleet.current(), [f"epoch-{n}" for n in range(1, 9)])
        home = self.fleet.job()["node"]
        self.assertIn(counter.digest_after(8), self.fleet.live_files(home, "final"))

    def test_again_and_again_while_a_job_runs(self):
        self.dispatch(self.counter(epochs=5, allowed=0))
        for epoch in range(1, 6):
            self.fleet.kill("controller")
            self.fleet.up()
            self.allow(epoch)
            self.fleet.wait_checkpoint(f"epoch-{epoch}")
        self.fleet.wait_state("succeeded")
        self.assertEqual(self.fleet.job()["attempt"], 1)


class ControllerAndMachineKilled(FleetCase):
    nodes = ONE

    def test_everything_at_once(self):
        self.dispatch(self.counter(epochs=4, allowed=2))
        self.fleet.wait_checkpoint("epoch-2")
        self.fleet.do("dev", "kill", "controller")
        self.fleet.do("dev", "kill", "alpha")
        self.allow(4)
        self.fleet.up()
        row = self.fleet.wait_state(("succeeded", "failed"))
        self.assertEqual(row["state"], "succeeded", row)
        self.assertNotIn(self.fleet.state(), RUNNING)
        self.assertEqual(self.fleet.current(), [f"epoch-{n}" for n in range(1, 5)])
        self.assertIn(counter.digest_after(4), self.fleet.live_files("alpha", "final"))


if __name__ == "__main__":
    unittest.main()
