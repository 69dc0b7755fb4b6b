"""The whole story on real pools: the four machines of the vision, one without ZFS.

Models go where the cluster file says; a training breaks and is rolled back; the server loses its power
in the middle of a checkpoint; the job goes on elsewhere and finishes; a stream outlives its sender; a
laptop sleeps in another one. What it ends with is proven: the weights are those of the same training
undisturbed, to the last bit.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from daemons import training
from fleet import HERE, ROOT
from lab_case import GATE, LAPTOP2, MACBOOK, PATIENCE, SERVER, WORKSTATION, LabCase, wait_for

JOB = "finetune"
HOME = "nvme/jobs/finetune-001"
EPOCHS = 10
STATE_BYTES = 300_000
LAST_GOOD = 3
BROKEN = range(LAST_GOOD + 1, LAST_GOOD + 3)  # the epochs that the first attempt spoils
IN_CHECKPOINT = 7  # the power goes while this one is committed
WIDE_BYTES = 12_000_000
# After half has arrived; OpenZFS's receive has a queue, and what was in that when it ended comes again.
MOST_AGAIN = WIDE_BYTES * 0.9
SLOW_LINK = 8  # megabits a second: the wide model takes 12 s
INITIAL = json.dumps([0.5, 0, 0, 0, 0, 0.5])

CLUSTER = (
    """deploy :fleet do
  node :workstation, pool: "tank" do
    gpu "RTX 4090", vram: 24
  end

  node :macbook, pool: "zpool" do
    gpu "M3 Max", vram: 64, type: :unified
    dataset "models"
  end

  model :base do
    dataset "models/base"
    requires vram: 8
  end

  model :wide do
    dataset "models/wide"
    requires vram: 24
  end

  replicate :models do
    from :server
    to [:workstation, :macbook, :laptop2]
    filter "size_gb < 0.01"
  end

  replicate :wide do
    from :server
    to :workstation
  end
"""
    + training(
        JOB,
        EPOCHS,
        GATE,
        'dataset "jobs/finetune-001"\nmodel :base\ncheckpoint_every "1 epoch"\nprefer gpu: "A100"',
        break_at_epoch=BROKEN[0],
        state_bytes=STATE_BYTES,
        marks="/run/marks",
    )
    + "end\n"
)


def epochs(last):
    return [f"epoch-{n}" for n in range(1, last + 1)]


def train_alone():
    """The final weights of the same training, undisturbed and without Zed."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "initial.json").write_text(INITIAL)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ZED_")}
        environment["PYTHONPATH"] = str(ROOT / "clients" / "python")
        words = ["/usr/bin/python3", HERE / "jobs" / "train.py", "--epochs", str(EPOCHS), "--initial", "initial.json"]
        subprocess.run(words, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        return (Path(folder) / "weights.json").read_text()


class StoryTest(LabCase):
    nodes = (WORKSTATION, MACBOOK, LAPTOP2, SERVER)

    def test_the_vision(self):
        for chapter in (
            self.models_go_where_the_file_says,
            self.a_training_breaks_and_is_rolled_back,
            self.the_server_dies_in_a_checkpoint,
            self.the_server_comes_back,
            self.a_stream_outlives_its_sender,
            self.a_laptop_sleeps_in_a_stream,
        ):
            print(f"  {chapter.__name__.replace('_', ' ')}", file=sys.stderr, flush=True)
            chapter()

    def copies(self, model):
        row = next((row for row in self.zed.ask("models")["models"] if row["name"] == model), None)
        return sorted(copy["node"] for copy in row["copies"]) if row else []

    def models_go_where_the_file_says(self):
        self.server.run(
            f"mkdir -p /run/models/base; echo '{INITIAL}' > /run/models/base/initial.json;"
            f"mkdir -p /run/models/wide; head -c {WIDE_BYTES} /dev/urandom > /run/models/wide/weights"
        )
        for name, vram in (("base", 8), ("wide", 24)):
            self.zed.do(f"model add /run/models/{name} --name {name} --version 1.0 --requires vram={vram} --node server")
        self.zed.apply(CLUSTER)
        wait_for("base to be everywhere", lambda: self.copies("base") == ["laptop2", "macbook", "server", "workstation"])
        wait_for("wide to be on the workstation", lambda: self.copies("wide") == ["server", "workstation"])
        # Between two pools it is the same snapshot, and its properties came along.
        name, guid = next(iter(self.guids(self.server, "nvme/models/base").items()))
        self.assertEqual(self.guid(self.workstation, f"tank/models/base@{name}"), guid)
        self.assertEqual(self.value(self.macbook, "requires", "zpool/models/base"), "vram:8")

    def a_training_breaks_and_is_rolled_back(self):
        self.allow(BROKEN[-1])
        self.zed.do(f"dispatch {JOB}")
        self.wait_current(epochs(BROKEN[-1]), JOB)
        self.assertEqual(self.zed.job(JOB)["node"], "server")
        # Each checkpoint is a snapshot with properties that anyone can read.
        self.assertEqual(
            self.server.run(f"zfs get -H -o value,source com.zed:epoch {HOME}@epoch-3").split(), ["3", "local"])  # fmt: skip
        self.assertEqual(self.value(self.server, "checkpoint", HOME), f"@epoch-{BROKEN[-1]}")
        self.assertGreater(float(self.value(self.server, "loss", f"{HOME}@epoch-{BROKEN[-1]}")), 100)
        before = self.guids(self.server, HOME)
        replica = self.replica_of(f"epoch-{BROKEN[-1]}")

        self.allow(IN_CHECKPOINT - 1)
        self.zed.do(f"rollback {JOB}@epoch-{LAST_GOOD} --yes")
        self.wait_current(epochs(IN_CHECKPOINT - 1), JOB)
        self.assertLess(float(self.value(self.server, "loss", f"{HOME}@epoch-{IN_CHECKPOINT - 1}")), 10)
        # The bad timeline is kept, at home and on the replica, and its snapshots are what they were.
        self.branch_keeps(self.server, HOME, before)
        pool = replica.pool
        wait_for("the replica's branch", lambda: self.branches(replica, f"{pool}/jobs/finetune-001"))
        self.branch_keeps(replica, f"{pool}/jobs/finetune-001", before)

    def replica_of(self, checkpoint):
        """The machine with ZFS that has a copy of it beside the server."""
        def found():
            rows = [row for row in self.zed.checkpoints(JOB) if row["name"] == checkpoint and row["current"]]
            return [node for row in rows for node in row["nodes"] if node in ("workstation", "macbook")]

        return getattr(self, wait_for(f"a copy of {checkpoint}", found)[0])

    def branch_keeps(self, machine, dataset, before):
        """What there was before the rollback has its guid still, the bad epochs on a readonly branch."""
        branches = self.branches(machine, dataset)
        self.assertEqual(len(branches), 1, branches)
        self.assertEqual(machine.run(f"zfs get -H -o value readonly {branches[0]}").strip(), "on")
        on_branch = self.guids(machine, branches[0])
        self.assertEqual({name: guid for name, guid in on_branch.items() if name in before},
                         {f"epoch-{n}": before[f"epoch-{n}"] for n in BROKEN})  # fmt: skip
        here = self.guids(machine, dataset)
        self.assertEqual([here[name] for name in epochs(LAST_GOOD)], [before[name] for name in epochs(LAST_GOOD)])

    def the_server_dies_in_a_checkpoint(self):
        asked = self.server.run_soon(f"until [ -e /run/marks/epoch-{IN_CHECKPOINT} ]; do :; done")
        self.allow(IN_CHECKPOINT)
        self.server.answer(asked)
        self.server.cut_power()
        self.allow(EPOCHS)
        ended = self.wait_ended(JOB)
        self.assertEqual(ended["state"], "succeeded", ended)
        self.assertNotEqual(ended["node"], "server")
        self.assertEqual(self.zed.current(JOB), epochs(EPOCHS))
        self.assertEqual(self.zed.do(f"cp {JOB}:weights.json -"), train_alone())

    def the_server_comes_back(self):
        self.server.start()
        # Whether the checkpoint was whole when the power went or not: what is there has its properties.
        for name in self.guids(self.server, HOME):
            if name.startswith("epoch-"):
                self.assertEqual(self.value(self.server, "epoch", f"{HOME}@{name}"), name.split("-")[1].split(".")[0])
        self.start_agent(self.server)
        home = getattr(self, self.zed.job(JOB)["node"])
        last = self.guid(home, f"{home.pool}/jobs/finetune-001@epoch-{EPOCHS}") if home.pool else ""
        wait_for("the server's copy to follow", lambda: self.guid(self.server, f"{HOME}@epoch-{EPOCHS}"))
        if last:
            self.assertEqual(self.guid(self.server, f"{HOME}@epoch-{EPOCHS}"), last)
        self.assertEqual(self.zed.job(JOB)["state"], "succeeded")

    def half_has_arrived(self, node):
        row = self.transfer_to(node)
        return row and row["total"] and row["done"] > row["total"] / 2

    def a_stream_outlives_its_sender(self):
        self.macbook.shape(SLOW_LINK)
        ordered = self.zed.begin("replicate wide --to macbook")
        wait_for("half of the model", lambda: self.half_has_arrived("macbook"), pause=0.1)
        self.server.cut_power()
        # It ends with its sender, or has gone on with another one by itself.
        if self.zed.finish(ordered, PATIENCE)[0] != 0:
            self.zed.do("replicate wide --to macbook")
        self.macbook.shape(None)
        name, guid = next(iter(self.guids(self.workstation, "tank/models/wide").items()))
        self.assertEqual(self.guid(self.macbook, f"zpool/models/wide@{name}"), guid)
        self.assertEqual(self.value(self.macbook, "requires", "zpool/models/wide"), "vram:24")
        self.moved_less_than(MOST_AGAIN, "models/wide", "workstation -> macbook")

    def moved_less_than(self, most, dataset, route):
        found = [text for text in self.moved(dataset) if text.startswith(route)]
        self.assertEqual(len(found), 1, self.moved(dataset))
        amount, unit = found[0].split(", ")[1].split(" ")[:2]
        factor = {"B": 1, "KiB": 2**10, "MiB": 2**20}[unit]
        self.assertLess(float(amount) * factor, most, found)

    def a_laptop_sleeps_in_a_stream(self):
        self.workstation.run(f"mkdir -p /run/models/night; head -c {WIDE_BYTES} /dev/urandom > /run/models/night/weights")
        self.zed.do("model add /run/models/night --name night --version 1.0 --node workstation")
        before = self.received(self.macbook)
        self.macbook.shape(SLOW_LINK)
        ordered = self.zed.begin("replicate night --to macbook")
        wait_for("half of the model", lambda: self.half_has_arrived("macbook"), pause=0.1)
        self.macbook.freeze()
        wait_for("the macbook to be missed", lambda: self.node_status("macbook") == "lost")
        self.macbook.thaw()
        self.wait_up(["macbook"])
        self.zed.finish(ordered, PATIENCE)
        name, guid = next(iter(self.guids(self.workstation, "tank/models/night").items()))
        wait_for("the rest of the model", lambda: self.guid(self.macbook, f"zpool/models/night@{name}") == guid)
        # On the same connection or on a new one, from where it was.
        self.assertLess(self.received(self.macbook) - before, WIDE_BYTES * 1.3)

    @staticmethod
    def received(machine):
        return int(machine.run("cat /sys/class/net/eth0/statistics/rx_bytes"))


if __name__ == "__main__":
    unittest.main()
