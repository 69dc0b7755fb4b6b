"""The demo says what is wrong instead of waiting for what cannot come. ./dev demo plays the whole of it."""

import sys
import time
import unittest
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import demo  # noqa: E402


class BrokenFleet(demo.Fleet):
    """Its job fails before its first checkpoint: no zedctl runs."""

    def __init__(self):
        super().__init__(Path("/nowhere"))

    def run(self, *words, check=True):
        assert words[0] == "logs", words
        return SimpleNamespace(stdout="ModuleNotFoundError: No module named 'zed'\n")

    def job(self):
        return {"name": demo.JOB, "state": "failed", "node": "server", "reason": "exit code 1"}

    def checkpoints(self):
        return []


class Demo(unittest.TestCase):
    def test_a_job_that_fails_ends_each_wait_and_says_why(self):
        fleet = BrokenFleet()
        began = time.monotonic()
        for wait in (demo.break_and_roll_back, demo.wait_until_elsewhere):
            with self.assertRaises(demo.Failed) as failed:
                wait(fleet, demo.Watch(fleet))
            self.assertIn("exit code 1", str(failed.exception))
            self.assertIn("No module named 'zed'", str(failed.exception))
            self.assertIn("./dev demo", str(failed.exception))
        self.assertLess(time.monotonic() - began, demo.PATIENCE_S / 2)

    def test_what_moved_is_read_from_events_whatever_else_they_say(self):
        def event(text, kind="transfer"):
            return {"kind": kind, "subject": "models/wide@v1.0", "text": text}

        moved = demo.moved_by([
            event("server -> macbook, 1.00 MiB"),
            event("server -> macbook, 512 KiB"),
            event("macbook -> laptop2, 1.00 MiB, passed on while it arrived there"),
            event("node laptop2: receive models/wide failed: the other end -> was silent, 3 times"),
            event("ok -> lost, 1 B", kind="node"),
        ])
        self.assertEqual(moved, {("models/wide", "server -> macbook"): (2, 1.5 * 2**20),
                                 ("models/wide", "macbook -> laptop2"): (1, 2.0**20)})


if __name__ == "__main__":
    unittest.main()
