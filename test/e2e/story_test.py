"""The whole story in small: checkpoint, roll back, lose a machine, go on elsewhere, finish."""

import sys
import unittest

from support import CLIENT, JOBS, RUNNING, THREE, FleetCase, wait_for

sys.path[:0] = [str(JOBS), str(CLIENT)]
import counter  # noqa: E402


class Story(FleetCase):
    nodes = THREE

    def test_rollback_keeps_a_branch_and_the_job_survives_its_machine(self):
        self.dispatch(self.counter(epochs=6, allowed=5, body='prefer gpu: "A100"'))
        self.fleet.wait_checkpoint("epoch-5")
        self.assertEqual(self.fleet.job()["node"], "beta")

        self.allow(4)
        done = self.fleet.do("rollback", "job@epoch-3", "--yes")
        self.assert_says(done, "epoch-3")
        self.fleet.wait_checkpoint("epoch-4")
        self.assertEqual(self.fleet.current(), ["epoch-1", "epoch-2", "epoch-3", "epoch-4"])
        branch = [row for row in self.fleet.checkpoints() if not row["current"]]
        self.assertEqual(sorted(row["name"] for row in branch), ["epoch-4", "epoch-5"])
        self.assertTrue(all(row["dataset"].startswith("jobs/job.") for row in branch), branch)

        holders = self.other_copies_of("epoch-4")
        self.fleet.do("dev", "kill", "beta")
        row = wait_for("the job to run elsewhere", lambda: self.runs_off("beta"))
        holder = row["node"]
        self.assertIn(holder, holders, f"a machine that has a copy is preferred\n{self.fleet.do('events').stdout}")
        self.allow(6)
        row = self.fleet.wait_state(("succeeded", "failed"))
        self.assertEqual((row["state"], row["node"]), ("succeeded", holder))
        self.assertEqual(self.fleet.current(), [f"epoch-{n}" for n in range(1, 7)])
        self.assertIn(counter.digest_after(6), self.fleet.live_files(holder, "final"))

        self.fleet.up()
        wait_for("the branch to be known to the machine that came back", lambda: self.branches_on("beta"))
        self.assertEqual(self.fleet.state(), "succeeded")

    def runs_off(self, node):
        row = self.fleet.job()
        return row if row["state"] in RUNNING and row["node"] not in ("", node) else None

    def other_copies_of(self, checkpoint):
        def elsewhere():
            row = next(row for row in self.fleet.checkpoints() if row["current"] and row["name"] == checkpoint)
            return [node for node in row["nodes"] if node != "beta"]

        return wait_for(f"a second copy of {checkpoint}", elsewhere)

    def branches_on(self, node):
        return [row for row in self.fleet.checkpoints() if not row["current"] and node in row["nodes"]]


if __name__ == "__main__":
    unittest.main()
