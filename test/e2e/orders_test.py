"""What a person orders of a job: stop, cancel, resume, rollback, drain, dispatch again."""

import json
import sys
import unittest

from support import CLIENT, DONE, JOBS, NOT_FOUND, ONE, REFUSED, RUNNING, THREE, TWO, FleetCase, wait_for

sys.path[:0] = [str(JOBS), str(CLIENT)]
import counter  # noqa: E402


class Stop(FleetCase):
    nodes = ONE

    def test_stopped_is_resumable_and_goes_on_where_it_was(self):
        self.dispatch(self.counter(allowed=2))
        self.fleet.wait_checkpoint("epoch-2")
        self.fleet.do("stop", "job")
        self.fleet.wait_state("stopped")
        self.fleet.do("stop", "job")  # once more changes nothing
        self.allow(5)
        self.fleet.do("resume", "job")
        self.fleet.wait_state("succeeded")
        self.assertEqual(self.fleet.current(), [f"epoch-{n}" for n in range(1, 6)])
        self.assertIn("attempt 2 from epoch-2", self.fleet.log())
        self.assertEqual(self.fleet.live_files("alpha", "final"), [counter.digest_after(5)])

    def test_cancelled_is_for_good(self):
        self.dispatch(self.counter(allowed=1))
        self.fleet.wait_checkpoint("epoch-1")
        self.fleet.do("cancel", "job")
        self.fleet.wait_state("cancelled")
        for words in (["resume", "job"], ["rollback", "job@epoch-1", "--yes"], ["stop", "job"]):
            with self.subTest(" ".join(words)):
                self.fleet.zedctl(*words, status=REFUSED)
        self.fleet.do("cancel", "job")  # once more changes nothing
        self.assertEqual(self.fleet.current(), ["epoch-1"])

    def test_a_pending_job_can_be_cancelled(self):
        self.fleet.do("cordon", "alpha")
        self.dispatch(self.counter())
        self.assertEqual(self.fleet.state(), "pending")
        self.fleet.do("cancel", "job")
        self.fleet.wait_state("cancelled")
        self.fleet.do("uncordon", "alpha")
        self.assertEqual(self.fleet.state(), "cancelled")

    def test_a_log_before_there_is_one(self):
        self.fleet.do("cordon", "alpha")
        self.dispatch(self.counter())
        self.assert_says(self.fleet.zedctl("logs", "job", status=NOT_FOUND), "has not run yet")

    def test_a_job_that_ignores_sigterm_is_killed_after_the_grace(self):
        self.dispatch(self.shell("job", "trap '' TERM; echo begun; while :; do sleep 1; done"))
        self.fleet.wait_line("begun")
        self.fleet.do("stop", "job")
        self.fleet.wait_state("stopped", patience=60)


class Success(FleetCase):
    nodes = ONE

    def test_a_succeeded_job_is_not_run_again_by_mistake(self):
        self.dispatch(self.counter(epochs=2))
        self.fleet.wait_state("succeeded")
        refused = self.fleet.zedctl("dispatch", "job", status=REFUSED)
        self.assert_says(refused, "--again")
        self.fleet.zedctl("resume", "job", status=REFUSED)
        self.fleet.zedctl("rollback", "job@epoch-1", "--yes", status=REFUSED)
        first = self.fleet.job()["id"]

        self.fleet.do("dispatch", "job", "--again", "--wait")
        rows = [row for row in self.fleet.ask("jobs", "--all")["jobs"] if row["name"].startswith("job")]
        self.assertEqual(len(rows), 2, rows)
        self.assertTrue(all(row["state"] == "succeeded" for row in rows), rows)
        new = next(row for row in rows if row["id"] != first)
        self.assertEqual(self.fleet.current(new["name"]), ["epoch-1", "epoch-2"])


class Rollback(FleetCase):
    nodes = TWO

    def begin(self, epochs=6, allowed=4):
        self.dispatch(self.counter(epochs=epochs, allowed=allowed))
        self.fleet.wait_checkpoint(f"epoch-{allowed}")

    def test_discard_says_what_goes_and_leaves_nothing(self):
        self.begin()
        refused = self.fleet.zedctl("rollback", "job@epoch-2", "--discard")
        self.assertEqual(refused.returncode, REFUSED, "without a terminal and without --yes")
        self.assert_says(refused, "epoch-3", "epoch-4")
        dry = self.fleet.do("rollback", "job@epoch-2", "--discard", "--dry-run")
        self.assert_says(dry, "epoch-3", "epoch-4")
        self.assertEqual(len(self.fleet.current()), 4)

        self.allow(3)
        self.fleet.do("rollback", "job@epoch-2", "--discard", "--yes")
        self.fleet.wait_checkpoint("epoch-3")
        wait_for("the branch to be gone", lambda: not [row for row in self.fleet.checkpoints() if not row["current"]])
        self.assertEqual(self.fleet.current(), ["epoch-1", "epoch-2", "epoch-3"])

    def test_hold_does_not_run_it(self):
        self.begin()
        self.fleet.do("rollback", "job@epoch-2", "--hold", "--yes")
        self.fleet.wait_state("stopped")
        self.assertEqual(self.fleet.current(), ["epoch-1", "epoch-2"])
        self.allow(6)
        self.fleet.do("resume", "job")
        self.fleet.wait_state("succeeded")
        self.assertIn("attempt 2 from epoch-2", self.fleet.log())

    def test_the_same_rollback_twice(self):
        self.begin()
        self.allow(3)
        for _ in range(2):
            self.fleet.do("rollback", "job@epoch-2", "--yes")
            self.fleet.wait_checkpoint("epoch-3")
        self.allow(6)
        self.fleet.wait_state("succeeded")
        self.assertEqual(self.fleet.current(), [f"epoch-{n}" for n in range(1, 7)])
        branches = {row["dataset"] for row in self.fleet.checkpoints() if not row["current"]}
        self.assertEqual(len(branches), 2, branches)
        # What was done to it is no part of it: the audit tells of what was rolled back too.
        lines = (self.fleet.state_of("controller") / "audit.log").read_text().splitlines()
        done = [entry["what"] for entry in map(json.loads, lines) if entry["result"] == "ok"]
        self.assertEqual(done, ["apply", "dispatch", "rollback", "rollback"])

    def test_refused_while_the_home_is_away_unless_forced(self):
        self.begin()
        home = self.fleet.job()["node"]
        other = "beta" if home == "alpha" else "alpha"
        self.fleet.wait_copies("epoch-4", [other])
        self.allow(3)
        if home == "alpha":  # the controller's machine; only its agent goes
            self.fleet.kill("alpha")
        else:
            self.fleet.do("dev", "kill", home)
        wait_for("the home to be missed", lambda: self.fleet.node_status(home) != "up")
        self.fleet.zedctl("rollback", "job@epoch-2", "--yes", status=REFUSED)


class Resume(FleetCase):
    nodes = THREE

    def test_from_an_older_checkpoint_on_another_machine(self):
        self.dispatch(self.counter(epochs=6, allowed=4, body='prefer gpu: "A100"'))
        self.fleet.wait_checkpoint("epoch-4")
        self.assertEqual(self.fleet.job()["node"], "beta")
        self.allow(6)
        self.fleet.do("resume", "job", "--from", "@epoch-3", "--on", "alpha", "--yes")
        row = self.fleet.wait_state(("succeeded", "failed"))
        self.assertEqual((row["state"], row["node"]), ("succeeded", "alpha"))
        self.assertIn("attempt 2 from epoch-3", self.fleet.log())
        self.assertIn(counter.digest_after(6), self.fleet.live_files("alpha", "final"))

    def test_on_a_machine_that_cannot(self):
        self.dispatch(self.counter(allowed=2, body="requires vram: 20"))
        self.fleet.wait_checkpoint("epoch-2")
        done = self.fleet.zedctl("resume", "job", "--on", "gamma", "--yes")
        self.assertNotIn(done.returncode, (DONE, NOT_FOUND), done.stdout)
        self.assert_says(done, "gamma")
        self.assertIn(self.fleet.state(), RUNNING)

    def test_from_the_start(self):
        self.dispatch(self.counter(allowed=2))
        self.fleet.wait_checkpoint("epoch-2")
        self.allow(5)
        self.fleet.do("resume", "job", "--from", "start", "--yes")
        self.fleet.wait_state("succeeded")
        self.assertIn("attempt 2 from start", self.fleet.log())
        self.assertEqual(self.fleet.current(), [f"epoch-{n}" for n in range(1, 6)])

    def test_drain_moves_what_runs(self):
        self.dispatch(self.counter(epochs=4, allowed=2, body='prefer gpu: "A100"'))
        self.fleet.wait_checkpoint("epoch-2")
        self.fleet.do("drain", "beta")
        wait_for("the job to run elsewhere",
                 lambda: (row := self.fleet.job())["state"] in RUNNING and row["node"] not in ("", "beta"))
        self.allow(4)
        row = self.fleet.wait_state(("succeeded", "failed"))
        self.assertEqual(row["state"], "succeeded")
        self.assertNotEqual(row["node"], "beta")
        self.assertEqual(self.fleet.current(), [f"epoch-{n}" for n in range(1, 5)])


if __name__ == "__main__":
    unittest.main()
