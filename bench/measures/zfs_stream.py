"""Whole and changed models from one OpenZFS to another, against a bare pipe and syncoid; and the rest of a broken one."""

import tempfile

from .machine import BenchError
from .table import Row
from .zfs_lab import MODEL_BYTES, machines, payload, seconds_of, wait_for
from .zfs_peers import pipe, syncoid, with_syncoid
from openssh import start_sshd  # of test/lab, which zfs_lab has found

CHANGED = MODEL_BYTES // 100
PLACES = 12  # that a change of 1 % is spread over
BLOCK = 4096
KILLED_AT = 0.9
SLOW = 5  # megabits a second: what is left at 90 % is to take longer than progress takes to be told


def change(lab, name):
    """One percent of it, in several places, and a snapshot by hand; its name."""
    blocks = CHANGED // PLACES // BLOCK
    lab.server.run(
        f"zfs set readonly=off nvme/models/{name}; zfs mount nvme/models/{name} 2> /dev/null; i=0;"
        f"while [ $i -lt {PLACES} ]; do dd if=/dev/urandom of=/nvme/models/{name}/weights conv=notrunc bs={BLOCK}"
        f" seek=$((i * {MODEL_BYTES // PLACES // BLOCK})) count={blocks} 2> /dev/null; i=$((i + 1)); done;"
        f"zfs snapshot nvme/models/{name}@changed"
    )
    wait_for("the change to be known", lambda: lab.is_known(f"models/{name}", "changed"))
    return "changed"


def measure(_bench):
    """A whole model and a change of 1 %: by Zed, by `zfs send | zfs recv` and by syncoid over the same link."""
    name, source = "stream", "nvme/models/stream"
    with tempfile.TemporaryDirectory() as keys:
        made = with_syncoid(payload(), keys)
        with machines("server", "workstation", "macbook", made=made) as lab:
            start_sshd(lab.workstation)
            first = lab.model(name)
            lab.workstation.run("zfs create tank/pipe; zfs create tank/syncoid")
            lab.shape()
            rows = streams(lab, "full stream", name, f"{source}@{first}")
            last = change(lab, name)
            rows += streams(lab, "1 % changed", name, f"-i @{first} {source}@{last}")
            moved = wait_for("what moved", lambda: lab.moved(f"models/{name}", "server -> macbook"))
    # A changed 4 KiB costs a record of the model's dataset, whoever sends it.
    return [*rows, Row("zfs-stream", "1 % changed, on the wire", moved / 1e6, "MB", "the whole model", MODEL_BYTES / 1e6)]


def streams(lab, what, name, send):
    ours = lab.replicate(name, lab.macbook)
    bare = pipe(lab.server, send, lab.workstation, f"pipe/{name}")
    theirs = syncoid(lab.server, f"nvme/models/{name}", lab.workstation, f"tank/syncoid/{name}")
    return [Row("zfs-stream", what, ours, "s", "zfs send | zfs recv", bare),
            Row("zfs-stream", what, ours, "s", "syncoid", theirs)]


def measure_resume(_bench):
    """The receiving agent is killed at 90 % and started again: what travels afterwards, against the whole."""
    with machines("server", "laptop") as lab:
        lab.model("resume")
        lab.shape(SLOW)
        whole = seconds_of(lambda: break_and_mend(lab))
        moved = wait_for("what moved", lambda: lab.moved("models/resume", "server -> laptop"))
        return [Row("zfs-resume", "moved after a kill at 90 %", moved / 1e6, "MB", "the whole model", MODEL_BYTES / 1e6),
                Row("zfs-resume", "order to end, with the kill", whole, "s", "the wire alone", MODEL_BYTES * 8 / SLOW / 1e6)]


def break_and_mend(lab):
    ordered = lab.zed.begin("replicate models/resume --to laptop")

    def far_enough():
        if ordered.poll() is not None:
            raise BenchError(f"it was there before anybody could be killed: {ordered.communicate()[0]}")
        row = next((row for row in lab.zed.ask("transfers")["transfers"] if row["target"] == "laptop"), None)
        return row and row["total"] and row["done"] >= KILLED_AT * row["total"]

    wait_for(f"{KILLED_AT:.0%}", far_enough, pause=0.1)
    lab.zed.kill_agent("laptop")
    lab.zed.start_agent(lab.laptop)
    lab.end(ordered)
