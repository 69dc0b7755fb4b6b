"""What a person types on a machine, and what the fleet makes of it: the vision's own commands on real pools."""

import sys
import time
import unittest

from daemons import training
from lab_case import GATE, PATIENCE, SERVER, WORKSTATION, LabCase, wait_for

JOB = "train_001"
HOME = "tank/jobs/train-001"
COPY = "nvme/jobs/train-001"
MODEL = "models/llama-finetune"
MIB = 2**20
STATE_BYTES = 2 * MIB

CLUSTER = (
    "deploy :fleet do\n"
    "  replicate :models do\n    from :server\n    to :workstation\n  end\n"
    + training(JOB, 30, GATE, 'dataset "jobs/train-001"\nprefer gpu: "RTX 4090"')
    + training("lonely", 30, GATE, 'copies 0\nprefer gpu: "RTX 4090"', state_bytes=STATE_BYTES)
    + "end\n"
)


def epochs(last):
    return [f"epoch-{n}" for n in range(1, last + 1)]


class HandsTest(LabCase):
    nodes = (WORKSTATION, SERVER)
    lost_after = 600  # nobody is to take the job over while an agent starts again

    def test_what_a_person_types(self):
        self.zed.apply(CLUSTER)
        for chapter in (
            self.a_model_made_and_snapshotted_by_hand_is_replicated,
            self.a_rollback_to_the_newest_checkpoint,
            self.a_rollback_that_destroys_checkpoints,
            self.a_rollback_by_zedctl_outlives_its_agent,
            self.a_shell_in_the_folder_is_named_and_waited_for,
            self.a_discard_says_first_what_goes,
            self.a_resume_elsewhere_moves_what_is_missing,
        ):
            print(f"  {chapter.__name__.replace('_', ' ')}", file=sys.stderr, flush=True)
            chapter()

    def a_model_made_and_snapshotted_by_hand_is_replicated(self):
        self.server.run(
            f"zfs create -p nvme/{MODEL}; echo weights > /nvme/{MODEL}/weights;"
            f"zfs set com.zed:trained_on=a100 com.zed:epochs=50 com.zed:loss=0.0023 nvme/{MODEL};"
            f"zfs snapshot nvme/{MODEL}@v1"
        )
        wait_for("it to be adopted", lambda: self.zed.zedctl(f"adopt nvme/{MODEL} --as model --yes")[0] == 0, pause=2)
        self.wait_same(f"{MODEL}@v1")
        # The properties travel with it and are set once the stream is there.
        for name, value in (("trained_on", "a100"), ("epochs", "50"), ("loss", "0.0023")):
            wait_for(f"its {name}", lambda wanted=(name, value): self.value(
                self.workstation, wanted[0], f"tank/{MODEL}") == wanted[1])  # fmt: skip
        self.server.run(f"echo better > /nvme/{MODEL}/weights; zfs snapshot nvme/{MODEL}@v2")
        self.wait_same(f"{MODEL}@v2")

    def wait_same(self, snapshot):
        """The workstation has the server's snapshot, by guid."""
        wait_for(f"{snapshot} on both", lambda: self.guid(self.workstation, f"tank/{snapshot}") ==
                 self.guid(self.server, f"nvme/{snapshot}") != "")  # fmt: skip

    def starts(self):
        return self.zed.job(JOB)["attempt"]

    def forks(self):
        return self.zed.ask(f"checkpoints {JOB}")["forks"]

    def goes_on_to(self, epoch):
        """On its current timeline; the server's copy follows."""
        self.allow(epoch)
        self.wait_current(epochs(epoch), JOB)
        self.wait_same(f"jobs/train-001@{self.newest_name()}")

    def newest_name(self):
        """A taken name has its number behind it."""
        return max((row for row in self.zed.checkpoints(JOB) if row["current"]), key=lambda row: row["seq"])["name"]

    def rolled_back_by_hand(self, command, to):
        """The running job is stopped within seconds, and goes on where the person went back to."""
        before, forks = self.starts(), len(self.forks())
        self.workstation.wait_for(command)  # a transfer may just hold what is to go
        begin = time.monotonic()
        wait_for("the fork to be recorded", lambda: len(self.forks()) == forks + 1, pause=0.1)
        print(f"    recorded after {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)
        self.assertEqual(self.forks()[-1]["why"], "hand-rollback")
        wait_for("the next attempt", lambda: self.starts() == before + 1 and self.zed.job(JOB)["state"] == "running")
        self.assertEqual(self.zed.current(JOB), epochs(to))
        self.assertEqual(self.value(self.workstation, "reverted", HOME), "-")

    def a_rollback_to_the_newest_checkpoint(self):
        self.zed.do(f"dispatch {JOB}")
        self.goes_on_to(2)
        self.assertEqual(self.zed.job(JOB)["node"], "workstation")
        # Epoch 3 is not committed: no snapshot has to go, and only the pool itself tells.
        self.rolled_back_by_hand(f"zfs rollback {HOME}@epoch-2", 2)
        self.goes_on_to(4)

    def a_rollback_that_destroys_checkpoints(self):
        self.rolled_back_by_hand(f"zfs rollback -r {HOME}@epoch-3", 3)
        self.goes_on_to(4)
        # What the replica had beyond is kept there.
        kept = [name for branch in self.branches(self.server, COPY) for name in self.guids(self.server, branch)]
        self.assertIn("epoch-4", kept)

    def a_rollback_by_zedctl_outlives_its_agent(self):
        """kill -9 as soon as the branch is seen: the fork is somewhere between its steps."""
        self.allow(5)
        self.wait_current(epochs(5), JOB)
        before = self.guids(self.workstation, HOME)
        old = self.branches(self.workstation, HOME)
        killed = self.workstation.run_soon(
            f"until [ $(zfs list -H -o name -r tank/jobs | grep -c train-001) -gt {len(old) + 1} ]; do :; done;"
            "kill -9 $(cat /run/workstation.pid)"
        )
        ordered = self.zed.begin(f"rollback {JOB}@epoch-2 --yes")
        self.workstation.answer(killed, PATIENCE)
        self.start_agent(self.workstation)
        self.zed.finish(ordered, PATIENCE)
        self.wait_current(["epoch-1", "epoch-2", "epoch-3", "epoch-4", "epoch-5"], JOB)
        new = [name for name in self.branches(self.workstation, HOME) if name not in old]
        self.assertEqual(len(new), 1, new)
        self.assertEqual(self.workstation.run(f"zfs get -H -o value readonly {new[0]}").strip(), "on")
        kept = self.guids(self.workstation, new[0])
        for name in ("epoch-4", "epoch-5"):
            self.assertEqual(kept[name], before[name])
        self.assertEqual(self.value(self.workstation, "intent", new[0]), "-")
        self.wait_same(f"jobs/train-001@{self.newest_name()}")

    def a_shell_in_the_folder_is_named_and_waited_for(self):
        self.zed.do(f"stop {JOB}", timeout=PATIENCE)
        wait_for("the job to stop", lambda: self.zed.job(JOB)["state"] == "stopped")
        shell = f"cd /{HOME} && exec sleep 5000"
        pid = self.workstation.run(f"(sh -c '{shell}' > /dev/null 2>&1 & echo $!)").strip()
        ordered = self.zed.begin(f"rollback {JOB}@epoch-3 --hold --yes")
        wait_for("the shell to be named", lambda: f"pid {pid}" in str(self.zed.ask("events --limit 200")["events"]))
        self.workstation.run(f"kill {pid}")
        self.zed.finish(ordered, PATIENCE)
        wait_for("the fork", lambda: self.zed.current(JOB) == epochs(3))

    def a_discard_says_first_what_goes(self):
        self.zed.do(f"resume {JOB}", timeout=PATIENCE)
        self.goes_on_to(5)
        old = self.branches(self.workstation, HOME)
        said = self.zed.do(f"rollback {JOB}@epoch-4 --discard --dry-run")
        self.assertIn("epoch-5", said)
        self.assertEqual(self.zed.current(JOB), epochs(5))
        self.allow(4)
        self.zed.do(f"rollback {JOB}@epoch-4 --discard --yes", timeout=PATIENCE)
        wait_for("the discard", lambda: self.zed.current(JOB) == epochs(4) and self.branches(self.workstation, HOME) == old)

    def a_resume_elsewhere_moves_what_is_missing(self):
        self.zed.do(f"cancel {JOB} --yes")
        wait_for("its GPU to be free", lambda: self.zed.job(JOB)["state"] == "cancelled" and
                 all("free" in row for row in self.zed.do("gpus").splitlines()[1:]))  # fmt: skip
        self.zed.do("dispatch lonely")
        self.assertEqual(self.zed.job("lonely")["node"], "workstation")
        self.allow(2)
        self.wait_current(epochs(2), "lonely")
        self.zed.do("replicate lonely --to server", timeout=PATIENCE)
        self.allow(4)
        self.wait_current(epochs(4), "lonely")
        before = len(self.moved("jobs/lonely"))
        self.assertGreater(before, 0, "the copies of the first epochs")
        self.zed.do("resume lonely --from @epoch-3 --on server", timeout=PATIENCE)
        wait_for("the job to run on the server", lambda: self.zed.job("lonely")["node"] == "server" and
                 self.zed.job("lonely")["state"] == "running")  # fmt: skip
        # The sender's half may still keep its bookmark when the receiver's job runs already.
        moved = wait_for("the transfer to be told", lambda: self.moved("jobs/lonely")[before:])
        print(f"    moved: {moved}", file=sys.stderr, flush=True)
        self.assertEqual(len(moved), 1, moved)
        self.assertIn("workstation -> server, 2.", moved[0])
        self.assertIn("MiB", moved[0])


if __name__ == "__main__":
    unittest.main()
