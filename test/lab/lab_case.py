"""What tests with Zed's daemons on lab machines share: the fleet of the vision, operated by zedctl."""

import sys
import unittest

from daemons import Daemons, payload
from fleet import PATIENCE, ROOT, Fleet

sys.path.append(str(ROOT / "test/e2e"))
import support  # noqa: E402

GATE = "/run/allow"  # the highest epoch that the training may begin
LOST_AFTER = 40

# Machine, its pool (None: a laptop without ZFS, its agent on the dir store), its GPUs.
WORKSTATION = ("workstation", "tank", "rtx-4090")
MACBOOK = ("macbook", "zpool", "m3-max-64")
LAPTOP2 = ("laptop2", None, "rtx-3080-10")
SERVER = ("server", "nvme", "2x-a100-80")


def wait_for(what, test, patience=PATIENCE, pause=0.5):
    """The first true value of test(). Each question costs an emulated machine time, so there is a longer pause."""
    return support.wait_for(what, test, patience, pause)


class LabCase(unittest.TestCase):
    """A test with machines and daemons of its own. The controller is on the first machine, and zedctl."""

    nodes = (WORKSTATION, SERVER)
    lost_after = LOST_AFTER
    disk = 2048  # megabytes

    def setUp(self):
        self.fleet = Fleet(payload=payload())
        self.addCleanup(self.fleet.close)
        for name, pool, _ in self.nodes:
            setattr(self, name, self.fleet.machine(name, pool=pool, memory=1024, disk=self.disk, wait=False))
        for machine in self.fleet.machines:
            machine.wait_ready()
        self.zed = Daemons(self.fleet.machines[0], self.lost_after)
        self.addCleanup(self.zed.close)
        self.allow(0)
        self.zed.start_controller()
        for machine in self.fleet.machines:
            self.start_agent(machine)
        self.wait_up([name for name, _, _ in self.nodes])

    def tearDown(self):
        found = self._outcome.result
        if any(test is self for test, _ in found.failures + found.errors):  # their machines go, and the logs with them
            print(self.zed.logs(), file=sys.stderr, flush=True)

    # ---- daemons

    def start_agent(self, machine):
        _, pool, gpus = next(node for node in self.nodes if node[0] == machine.name)
        self.zed.start_agent(machine, gpus=gpus, store="zfs" if pool else "dir")

    def wait_up(self, names):
        def all_up():
            states = {row["node"]["name"]: row["node"]["status"] for row in self.zed.ask("nodes")["nodes"]}
            return all(states.get(name) == "up" for name in names)

        wait_for(f"{names} to be up", all_up)

    def node_status(self, name):
        return next(row["node"]["status"] for row in self.zed.ask("nodes")["nodes"] if row["node"]["name"] == name)

    # ---- the training

    def allow(self, epoch):
        for machine in self.fleet.machines:
            if machine.process.poll() is None:
                machine.run(f"echo {epoch} > {GATE}.new; mv {GATE}.new {GATE}")

    def wait_current(self, names, job="job"):
        wait_for(f"{names} to be the current checkpoints", lambda: self.zed.current(job) == names)

    def wait_ended(self, job="job"):
        return wait_for(f"{job} to end", lambda: self.ended(job))

    def ended(self, job):
        row = self.zed.job(job)
        return row if row and row["state"] in ("succeeded", "failed") else None

    # ---- ZFS

    def guid(self, machine, snapshot):
        """As text; "" if there is no such snapshot."""
        status, printed = machine.status(f"zfs get -Hp -o value guid '{snapshot}' 2> /dev/null")
        return printed.strip() if status == 0 else ""

    def guids(self, machine, dataset):
        """Of its snapshots: name without dataset -> guid."""
        printed = machine.run(f"zfs list -Hp -t snapshot -o name,guid -d 1 '{dataset}'")
        rows = [line.split("\t") for line in printed.splitlines()]
        return {name.split("@")[1]: guid for name, guid in rows}

    def value(self, machine, name, dataset):
        return machine.status(f"zfs get -H -o value com.zed:{name} '{dataset}' 2> /dev/null")[1].strip()

    def branches(self, machine, dataset):
        """Datasets beside it that keep timelines it has left."""
        pool, relative = dataset.split("/", 1)
        printed = machine.run(f"zfs list -H -o name,com.zed:type -r {pool}/{relative.split('/')[0]}")
        rows = [line.split("\t") for line in printed.splitlines()]
        return [name for name, kind in rows if kind == "branch"]

    # ---- what moved

    def moved(self, dataset):
        """The events that tell what was transferred of it."""
        events = self.zed.ask("events --limit 1000")["events"]
        return [event["text"] for event in events
                if event["kind"] == "transfer" and event["subject"].startswith(f"{dataset}@")]  # fmt: skip

    def transfer_to(self, node):
        rows = self.zed.ask("transfers")["transfers"]
        return next((row for row in rows if row["target"] == node), None)
