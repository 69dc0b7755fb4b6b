"""GPUs that break under a job, and what they are promised to."""

import json
import unittest

from support import ONE, RUNNING, UNPLACEABLE, FleetCase, wait_for


class BrokenGpu(FleetCase):
    starts_up = False

    def gpu(self, health="ok", why=""):
        """alpha's only GPU, from now on."""
        path = self.files / "alpha.json"
        new = path.with_suffix(".new")
        gpu = {"model": "NVIDIA GeForce RTX 4090", "vram_mib": 24564, "health": health, "why": why}
        new.write_text(json.dumps({"schema": 1, "gpus": [gpu]}))
        new.rename(path)
        return str(path)

    def test_a_job_leaves_a_gpu_that_is_lost(self):
        nodes = [{"name": "alpha", "pool": "tank", "gpus": self.gpu()},
                 {"name": "beta", "pool": "nvme", "gpus": "2x-a100-80"}]
        profile = json.loads(self.fleet.profile.read_text())
        self.fleet.profile.write_text(json.dumps(dict(profile, nodes=nodes)))
        self.fleet.up()
        self.dispatch(self.counter(epochs=3, allowed=1, body="requires vram: 20\nretries 0"))
        self.assertEqual(self.fleet.wait_state(RUNNING)["node"], "alpha")
        self.fleet.wait_checkpoint("epoch-1")
        self.fleet.wait_copies("epoch-1", ["beta"])
        self.gpu("lost", "XID 79: GPU has fallen off the bus")
        wait_for("the job to run on beta",
                 lambda: self.fleet.job()["node"] == "beta" and self.fleet.job()["state"] in RUNNING)
        self.assert_says(self.fleet.do("nodes"), "lost")
        refused = self.fleet.zedctl("match", "--requires", "gpu=RTX 4090", "--requires", "vram=20",
                                    status=UNPLACEABLE)
        self.assert_says(refused, "XID 79: GPU has fallen off the bus")
        self.allow(3)
        self.assertEqual(self.fleet.wait_state("succeeded")["node"], "beta")


class Reservations(FleetCase):
    nodes = ONE

    def test_what_a_gpu_is_promised_survives_every_restart(self):
        share = "requires vram: 8, share: true"
        self.apply(self.counter("one", allowed=1, body=share), self.counter("two", allowed=1, body=share),
                   self.counter("whole", epochs=1, body="requires vram: 20"),
                   self.counter("third", epochs=1, body=share))
        for name in ("one", "two"):
            self.fleet.do("dispatch", name)
            self.fleet.wait_checkpoint("epoch-1", name)
        self.fleet.kill("alpha")
        self.fleet.kill("controller")
        self.fleet.up()
        for name in ("one", "two"):
            self.fleet.wait_state(RUNNING, name)
            self.assertEqual(self.fleet.job(name)["attempt"], 1)
        # 23.99 GiB, 8 and 8 of them promised: no third share is left, and no whole card.
        self.held_by("third", "one", "two")
        self.fleet.do("stop", "one")
        self.fleet.wait_state("succeeded", "third")
        self.held_by("whole", "two")
        self.fleet.do("stop", "two")
        self.fleet.wait_state("succeeded", "whole")

    def held_by(self, name, *holders):
        self.fleet.do("dispatch", name)
        self.assert_says(self.fleet.do("why", name), *holders)
        self.assertEqual(self.fleet.state(name), "pending")


if __name__ == "__main__":
    unittest.main()
