"""The machines of test/lab, as measurements on real OpenZFS use them.

Both sides of every ratio are taken in one run, on the same machines, over links shaped to RATE each way, so that
the wire and not the emulated processor is the limit. Where a processor is the limit all the same (commits,
listings) the emulation slows both sides alike.
"""

import contextlib
import json
import os
import re
import sys
import time
from pathlib import Path

from .machine import BenchError, Skipped

LAB = Path(__file__).resolve().parents[2] / "test" / "lab"
sys.path.insert(0, str(LAB))

from daemons import Daemons, payload  # noqa: E402
from fleet import Fleet, LabError  # noqa: E402
from lab_case import GATE, wait_for  # noqa: E402

RATE = 20  # megabits a second, each way
MODEL_BYTES = 24_000_000
PATIENCE = 1800
POOLS = {"server": "nvme", "workstation": "tank", "macbook": "zpool", "laptop": "data"}
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def seconds_of(work):
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


class Machines:
    """A server with the controller, and those that it sends to; an agent on each."""

    def __init__(self, fleet, names):
        self.fleet = fleet
        for name in names:
            setattr(self, name, fleet.machine(name, pool=POOLS[name], memory=1024, disk=3072, wait=False))
        for machine in fleet.machines:
            machine.wait_ready()
        self.zed = Daemons(self.server)
        self.zed.start_controller()
        for machine in fleet.machines:
            self.zed.start_agent(machine)
        self.wait_up(set(names))

    def wait_up(self, names):
        def up():
            rows = self.zed.ask("nodes")["nodes"]
            return {row["node"]["name"] for row in rows if row["node"]["status"] == "up"}

        wait_for("all nodes", lambda: names <= up())

    def allow(self, epoch):
        """The training may begin epochs up to that one."""
        self.server.run(f"echo {epoch} > {GATE}.new; mv {GATE}.new {GATE}")

    def shape(self, rate=RATE):
        for machine in self.fleet.machines:
            machine.shape(rate)

    def model(self, name):
        """Makes one of MODEL_BYTES on the server, replicated nowhere; its snapshot's name."""
        weights = f"/run/m/{name}/weights"
        self.server.run(f"mkdir -p /run/m/{name}; head -c {MODEL_BYTES} /dev/urandom > {weights}", PATIENCE)
        self.zed.do(f"model add /run/m/{name} --name {name} --version 1.0 --node server", PATIENCE)
        self.server.run(f"rm -r /run/m/{name}; zpool sync")
        return self.server.run(f"zfs list -H -o name -t snapshot -d 1 nvme/models/{name}").split()[-1].split("@")[1]

    def is_known(self, dataset, snapshot):
        """Whether the controller knows that snapshot."""
        return snapshot in json.dumps(self.zed.ask(f"datasets {dataset}"))

    def replicate(self, name, *targets):
        """Seconds until the last of them has it, all begun at once."""

        def work():
            commands = [self.zed.begin(f"replicate models/{name} --to {target.name}") for target in targets]
            for command in commands:
                self.end(command)

        return seconds_of(work)

    def end(self, command):
        """Waits for a zedctl that was begun; what it said."""
        status, said = self.zed.finish(command, PATIENCE)
        if status != 0:
            raise BenchError(f"{' '.join(map(str, command.args[1:]))}: {said}")
        return said

    def moved(self, dataset, route):
        """Bytes of the last transfer of it that way, as the fleet's events tell; None: not told yet."""
        texts = [event["text"] for event in self.zed.ask("events --limit 1000")["events"]
                 if event["kind"] == "transfer" and event["subject"].startswith(dataset + "@")]  # fmt: skip
        found = [match for text in texts if (match := re.match(rf"{route}, ([\d.]+) (\w+)", text))]
        return float(found[-1][1]) * UNITS[found[-1][2]] if found else None


@contextlib.contextmanager
def machines(*names, made=None):
    """Running machines of those names, with the files of `made` beside Zed's (a Payload; None: Zed's alone)."""
    if os.geteuid() != 0:
        raise Skipped("the lab's machines need root")
    with contextlib.ExitStack() as stack:
        try:
            running = Machines(stack.enter_context(Fleet(payload=made or payload())), names)
            stack.callback(running.zed.close)
            yield running
        except AssertionError as error:  # a LabError, or patience that ended
            raise BenchError(str(error)) from error
