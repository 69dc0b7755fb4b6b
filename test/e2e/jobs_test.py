"""Jobs that do not behave."""

import os
import signal
import unittest

from support import ONE, REFUSED, FleetCase, is_running, wait_for

LONG_LINE = 1_000_000_000


class Stubborn(FleetCase):
    nodes = ONE

    def test_one_that_ignores_sigterm(self):
        self.dispatch(self.shell("job", "trap '' TERM; echo begun; while :; do sleep 1; done"))
        self.fleet.wait_line("begun")
        (supervisor,) = self.fleet.supervisors("alpha")
        self.fleet.do("cancel", "job")
        self.fleet.wait_state("cancelled")
        wait_for("its processes to be gone", lambda: not is_running(supervisor))

    def test_one_that_forks_and_exits(self):
        """What it left behind ends with it, though it made sessions of its own and shed its environment."""
        pidfile = self.files / "child"
        child = f"echo $$ > {pidfile}; exec sleep 1000"
        script = f"setsid env -i /bin/sh -c '{child}' & while [ ! -s {pidfile} ]; do sleep 0.1; done"
        self.dispatch(self.shell("job", script))
        self.fleet.wait_state("succeeded")
        pid = int(pidfile.read_text())
        wait_for("the grandchild to be gone", lambda: not is_running(pid))

    def test_one_that_is_killed_by_a_signal(self):
        self.dispatch(self.shell("job", "kill -SEGV $$", "retries 0"))
        row = self.fleet.wait_state("failed")
        self.assertIn("signal 11", row["reason"])

    def test_one_that_cannot_be_started(self):
        self.dispatch(self.job_text("job", ["/nowhere/program"], "retries 0"))
        row = self.fleet.wait_state("failed")
        self.assertIn("/nowhere/program", row["reason"])

    def test_one_that_fails_is_tried_as_often_as_declared(self):
        self.dispatch(self.shell("job", "echo attempt $ZED_ATTEMPT; exit 3", "retries 1"))
        row = self.fleet.wait_state("failed")
        self.assertEqual(row["attempt"], 2)
        self.assertIn("3", row["reason"])
        self.assert_says(self.fleet.zedctl("dispatch", "job", status=REFUSED), "zedctl resume job")
        self.fleet.do("resume", "job")
        # Resumed by a person, it has its retries anew.
        wait_for("it to fail again", lambda: (row := self.fleet.job())["state"] == "failed" and row["attempt"] == 4)


class Noisy(FleetCase):
    nodes = ONE

    def test_one_line_of_1_gb(self):
        """The log stays bounded, its begin and end are kept, and nobody runs out of memory."""
        script = f"echo first; head -c {LONG_LINE} /dev/zero | tr '\\\\0' x; echo; echo last"
        self.dispatch(self.shell("job", script))
        self.fleet.wait_state("succeeded", patience=120)
        log = self.fleet.do("logs", "job", "-n", "3").stdout
        self.assertIn("last", log)
        whole = self.fleet.do("logs", "job", "--all").stdout
        self.assertTrue(whole.startswith("first"), whole[:100])
        self.assertLess(len(whole), 100_000_000)
        with open(f"/proc/{self.fleet.pid('alpha')}/status") as status:
            peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        self.assertLess(peak, 300 * 1024, "KiB")


class LateCheckpoint(FleetCase):
    nodes = ONE
    lost_after = 60

    def test_one_that_timed_out_is_none(self):
        self.dispatch(self.counter(epochs=4, allowed=1, timeout=1))
        self.fleet.wait_checkpoint("epoch-1")
        agent = self.fleet.pid("alpha")
        os.kill(agent, signal.SIGSTOP)
        self.addCleanup(os.kill, agent, signal.SIGCONT)
        live = self.fleet.pool("alpha") / "live"
        self.allow(3)
        # The third epoch begins when the second one's request has timed out.
        wait_for("the job to go on without", lambda: list(live.glob("*/ckpt/epoch-3")))
        os.kill(agent, signal.SIGCONT)
        self.allow(4)
        self.fleet.wait_state("succeeded")
        self.assertIn("epoch 2 not committed", self.fleet.log())
        self.assertIn("epoch 4 epoch-4", self.fleet.log())
        self.assertNotIn("epoch-2", self.fleet.current())
        self.assertEqual(self.fleet.current()[-1], "epoch-4")


if __name__ == "__main__":
    unittest.main()
