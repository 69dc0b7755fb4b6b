"""Jobs that mean harm, a clock that jumps, a GPU that is not clean."""

import os
import signal
import struct
import unittest
from pathlib import Path

from support import ONE, FleetCase, wait_for

SHIM = Path(os.environ.get("ZED_CLOCK_SHIM", ""))
HOUR_S = 3600


class HostileJob(FleetCase):
    nodes = ONE

    def setUp(self):
        super().setUp()
        self.outside = self.folder / "outside"
        (self.outside / "log").mkdir(parents=True)
        (self.outside / "secret").write_text("secret\n")

    def assert_outside_is_untouched(self):
        found = sorted(str(path.relative_to(self.outside)) for path in self.outside.rglob("*"))
        self.assertEqual(found, ["log", "secret"])
        self.assertEqual((self.outside / "secret").read_text(), "secret\n")

    def test_links_in_its_folder_lead_nobody_out(self):
        """Neither its log, nor its next attempt's, nor a snapshot, nor what is shown of it follows a link."""
        script = (f'if [ "$ZED_ATTEMPT" = 1 ]; then echo first; ln -s {self.outside}/secret innocent; '
                  f"mv .zed old; ln -s {self.outside} .zed; echo still heard; exit 3; fi; echo second")
        self.dispatch(self.shell("job", script, "retries 1"))
        row = self.fleet.wait_state("failed")
        self.assertEqual(row["attempt"], 2)
        self.assertIn("symlink", row["reason"])
        self.assert_outside_is_untouched()
        self.assertNotIn("secret", self.fleet.zedctl("logs", "job", "--all").stdout)
        pool = self.fleet.pool("alpha")
        copies = [path for path in pool.rglob("innocent") if "snapshots" in path.relative_to(pool).parts]
        self.assertTrue(copies, "no closing snapshot has it")
        for copy in copies:
            self.assertTrue(copy.is_symlink(), f"{copy} holds what the link led to")

    def test_a_segment_of_its_log_that_is_a_link(self):
        target = self.outside / "secret"
        script = (f'if [ "$ZED_ATTEMPT" = 1 ]; then echo first; rm .zed/log/*; '
                  f"ln -s {target} .zed/log/00000000000000000000.log; exit 3; fi; echo second")
        self.dispatch(self.shell("job", script, "retries 1"))
        self.fleet.wait_state("succeeded")
        self.assert_outside_is_untouched()
        self.assertIn("second", self.fleet.log())

    def test_a_checkpoint_of_what_lies_outside(self):
        """A path through a link is refused, whatever the client lets through."""
        program = (f"import json, os, socket, time\n"
                   f"os.symlink({str(self.outside)!r}, 'out')\n"
                   f"s = socket.socket(socket.AF_UNIX); s.connect(os.environ['ZED_SOCKET']); f = s.makefile('rw')\n"
                   f"g = os.environ['ZED_GENERATION']\n"
                   f"def say(**w): f.write(json.dumps(dict(w, v=1)) + chr(10)); f.flush(); return f.readline()\n"
                   f"say(op='hello', generation=g, pid=os.getpid())\n"
                   f"for n, p in enumerate(['out/secret', '/etc/passwd', '../x'], 1):\n"
                   f"    print(say(op='checkpoint', generation=g, request=n, metrics={{}}, paths=[p], epoch=n,\n"
                   f"              deadline_ms=int(time.monotonic() * 1000) + 20000))\n")
        self.dispatch(self.job_text("job", ["python3", "-c", program]))
        self.fleet.wait_state("succeeded")
        answers = [line for line in self.fleet.log() if '"request"' in line]
        self.assertEqual(len(answers), 3, self.fleet.log())
        for answer in answers:
            self.assertIn('"invalid"', answer)
        self.assertEqual(self.fleet.checkpoints(), [])


@unittest.skipUnless(SHIM.is_file(), "the library that moves the clock is not built")
class JumpingClock(FleetCase):
    nodes = ONE
    starts_up = False

    def move(self, seconds):
        with open(self.clock, "r+b") as file:
            file.write(struct.pack("=q", seconds))

    def test_an_hour_forward_and_two_back(self):
        """Nobody is lost, nothing ends, and checkpoints and their order go on, because nothing trusts the wall clock."""
        self.clock = self.folder / "clock"
        self.clock.write_bytes(struct.pack("=q", 0))
        self.fleet.environment.update(LD_PRELOAD=str(SHIM), ZED_TEST_CLOCK=str(self.clock))
        self.fleet.up()
        pids = {name: self.fleet.pid(name) for name in ("controller", "alpha")}
        self.dispatch(self.counter(epochs=6, allowed=2))
        self.fleet.wait_checkpoint("epoch-2")
        for seconds, allowed in ((HOUR_S, 4), (-HOUR_S, 5)):
            self.move(seconds)
            self.allow(allowed)
            self.fleet.wait_checkpoint(f"epoch-{allowed}")
            self.assertEqual(self.fleet.node_status("alpha"), "up")
        # A restart of the agent in the wrong hour: it knows its processes by their ticks.
        self.fleet.kill("alpha")
        self.move(3 * HOUR_S)
        self.fleet.up()
        self.allow(6)
        row = self.fleet.wait_state("succeeded")
        self.assertEqual(row["attempt"], 1)
        self.assertEqual(self.fleet.current(), [f"epoch-{n}" for n in range(1, 7)])
        self.assertEqual(self.fleet.pid("controller"), pids["controller"])


class UncleanGpu(FleetCase):
    nodes = ONE

    def test_is_offered_again_only_when_clean(self):
        """A supervisor is killed while a grandchild of its job, in a session of its own and deaf to SIGTERM, still
        has the GPU: the next job starts on it after that one is gone, not before."""
        pidfile = self.files / "child"
        child = f"trap '' TERM HUP; echo $$ > {pidfile}.new; mv {pidfile}.new {pidfile}; while :; do sleep 0.2; done"
        first = self.shell("first", f'setsid sh -c "{child.replace("$$", chr(92) + "$$")}" & wait; sleep 1000',
                           "retries 0\n  requires vram: 20")
        # A zombie, which whoever is init here has not reaped yet, holds nothing.
        look = f"$(sed -n 's/^State:.//p' /proc/$(cat {pidfile})/status 2>/dev/null)"
        second = self.shell("second", f'case "{look}" in ""|Z*|X*) echo clean;; *) echo dirty;; esac',
                            "requires vram: 20")
        self.apply(first, second)
        self.fleet.do("dispatch", "first")
        wait_for("the grandchild", pidfile.is_file)
        self.fleet.do("dispatch", "second")
        self.fleet.wait_state("pending", "second")
        (supervisor,) = self.fleet.supervisors("alpha")
        os.kill(supervisor, signal.SIGKILL)
        self.fleet.do("cancel", "first")
        self.fleet.wait_state("succeeded", "second")
        self.assertIn("clean", self.fleet.log("second"))
        self.assertNotIn("dirty", self.fleet.log("second"))


if __name__ == "__main__":
    unittest.main()
