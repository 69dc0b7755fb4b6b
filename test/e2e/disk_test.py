"""A disk that is full when a job asks for a checkpoint."""

import subprocess
import unittest

from support import RUNNING, TWO, FleetCase

DISK_MIB = 120
BALLAST = 20_000_000
ROOM_LEFT = 8_000_000


class FullDisk(FleetCase):
    nodes = TWO
    starts_up = False

    def setUp(self):
        super().setUp()
        self.disk = self.fleet.state_of("beta")
        self.disk.mkdir(parents=True, mode=0o700)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=0700", "tmpfs", self.disk],
                                 capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk], check=True)
        self.addCleanup(self.take_down)  # before the disk goes
        self.fleet.up()

    def fill(self):
        filler = self.disk / "filler"
        with filler.open("wb") as file:
            free = int(subprocess.run(["df", "-B1", "--output=avail", self.disk], check=True, capture_output=True,
                                      text=True).stdout.split()[1])
            file.write(bytes(free - ROOM_LEFT))
        return filler

    def test_the_job_goes_on_and_nothing_half_written_counts(self):
        self.dispatch(self.counter(epochs=4, allowed=1, first_ballast=BALLAST, body='prefer gpu: "A100"\ncopies 0'))
        self.fleet.wait_checkpoint("epoch-1")
        self.assertEqual(self.fleet.job()["node"], "beta")
        filler = self.fill()
        self.allow(2)
        self.fleet.wait_line("epoch 2 not committed")
        self.assertIn(self.fleet.state(), RUNNING)
        self.assertTrue([line for line in self.fleet.log() if "no space" in line.lower() or "no_space" in line],
                        self.fleet.log())
        self.assertEqual(self.fleet.current(), ["epoch-1"])
        filler.unlink()
        self.allow(3)
        self.fleet.wait_checkpoint("epoch-3")
        self.fleet.kill("beta")
        self.fleet.up()
        self.allow(4)
        self.fleet.wait_state("succeeded")
        self.assertEqual(self.fleet.current(), ["epoch-1", "epoch-3", "epoch-4"])
        self.assertEqual(self.fleet.job()["attempt"], 1)


if __name__ == "__main__":
    unittest.main()
