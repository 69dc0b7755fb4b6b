"""The whole story on real pools: checkpoint, roll back, lose a machine's power, go on elsewhere, finish."""

import sys
import time
import unittest

from daemons import Daemons, counter, payload
from fleet import ROOT, Fleet

sys.path[:0] = [str(ROOT / "test" / "e2e" / "jobs"), str(ROOT / "clients" / "python")]
from counter import digest_after  # noqa: E402

GATE = "/run/allow"
PATIENCE = 400


def wait_for(what, test, patience=PATIENCE):
    end = time.monotonic() + patience
    while True:
        value = test()
        if value:
            return value
        if time.monotonic() >= end:
            raise AssertionError(f"waited {patience} s in vain for {what}; last: {value!r}")


class StoryTest(unittest.TestCase):
    def setUp(self):
        self.fleet = Fleet(payload=payload())
        self.addCleanup(self.fleet.close)
        self.workstation = self.fleet.machine("workstation", pool="tank", memory=1024, wait=False)
        self.server = self.fleet.machine("server", pool="nvme", memory=1024, wait=False)
        for machine in self.fleet.machines:
            machine.wait_ready()
        self.zed = Daemons(self.workstation)
        self.allow(0)
        self.zed.start_controller()
        self.zed.start_agent(self.workstation, gpus="rtx-4090")
        self.zed.start_agent(self.server, gpus="2x-a100-80")
        # A laptop without ZFS is the normal case; its agent is on the workstation's machine.
        self.zed.start_agent(self.workstation, name="laptop2", gpus="rtx-3080-10", store="dir", port=10)
        wait_for("three nodes", lambda: [row["node"]["status"] for row in self.zed.ask("nodes")["nodes"]] == ["up"] * 3)

    def allow(self, epoch):
        for machine in self.fleet.machines:
            if machine.process.poll() is None:
                machine.run(f"echo {epoch} > {GATE}.new; mv {GATE}.new {GATE}")

    def wait_current(self, names):
        wait_for(f"{names} to be current", lambda: self.zed.current("job") == names)

    def guid(self, machine, snapshot):
        return machine.status(f"zfs get -Hp -o value guid {snapshot}")[1].strip()

    def test_the_story(self):
        zed, server, workstation = self.zed, self.server, self.workstation
        zed.apply("deploy :test do\n" + counter("job", 6, GATE, 'prefer gpu: "A100"') + "end\n")
        self.allow(5)
        zed.do("dispatch job")
        self.wait_current([f"epoch-{n}" for n in range(1, 6)])
        job = zed.job("job")
        self.assertEqual(job["node"], "server")
        dataset = zed.checkpoints("job")[0]["dataset"]

        # Each checkpoint is a snapshot with properties that anyone can read.
        home = f"nvme/{dataset}"
        self.assertEqual(
            server.run(f"zfs get -H -o value,source com.zed:epoch {home}@epoch-5").split(), ["5", "local"])
        self.assertEqual(server.run(f"zfs get -H -o value com.zed:checkpoint {home}").strip(), "@epoch-5")

        # What a person does by hand is noticed within seconds.
        server.run(f"zfs snapshot {home}@by-hand")
        wait_for("the snapshot taken by hand", lambda: "by-hand" in
                 [row["name"] for row in zed.ask("checkpoints job")["checkpoints"]])

        # A rollback keeps what it leaves.
        self.allow(4)
        zed.do("rollback job@epoch-3 --yes", timeout=PATIENCE)
        self.wait_current([f"epoch-{n}" for n in range(1, 5)])
        branches = server.run("zfs list -H -o name -r nvme/jobs").split()
        branch = [name for name in branches if name.startswith(f"{home}.")]
        self.assertEqual(len(branch), 1, branches)
        kept = server.run(f"zfs list -H -t snapshot -o name -d 1 {branch[0]}").split()
        self.assertIn(f"{branch[0]}@epoch-5", kept)
        self.assertEqual(server.run(f"zfs get -H -o value readonly {branch[0]}").strip(), "on")

        # Between two pools it is the same snapshot: the stream was ZFS's own.
        copy = f"tank/{dataset}@epoch-4"
        wait_for("a copy of epoch-4", lambda: self.guid(workstation, copy).isdigit())
        wait_for("its properties", lambda: workstation.status(
            f"zfs get -H -o value com.zed:epoch {copy}")[1].strip() == "4")
        self.assertEqual(self.guid(workstation, copy), self.guid(server, f"{home}@epoch-4"))

        # The machine's power goes; the job goes on where its copy is, and finishes.
        server.cut_power()
        self.allow(6)
        wait_for("the job to end", lambda: (zed.job("job") or {}).get("state") in ("succeeded", "failed"))
        ended = zed.job("job")
        self.assertEqual(ended["state"], "succeeded", zed.logs())
        self.assertEqual(zed.current("job"), [f"epoch-{n}" for n in range(1, 7)])
        self.assertNotEqual(ended["node"], "server")
        self.assertEqual(workstation.run(f"cat /tank/{dataset}/final").strip(), digest_after(6))

        # The machine comes back with its pool as it was; what it had beyond is a branch.
        server.start()
        zed.start_agent(server, gpus="2x-a100-80")
        wait_for("the server's copy to be up to date", lambda: self.guid(server, f"{home}@epoch-6").isdigit())
        self.assertEqual(zed.job("job")["state"], "succeeded")


if __name__ == "__main__":
    unittest.main()
