#!/usr/bin/env python3
"""The whole story on one machine: what `./dev demo` plays.

Four machines of a mixed fleet run as processes here. A network is trained on one of them; its learning
rate breaks; the operator rolls back; the machine dies; the job goes on elsewhere and finishes. At the
end it is proven, not said, that nothing was lost: the final weights are those of the same training
without Zed, to the last bit, and every committed checkpoint is where it should be.

Exit status: 0 if the proof holds, else 1. KEEP=1 leaves the fleet running to look around.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
BINARIES = Path(os.environ.get("ZED_BINARIES", ROOT / "build/release/src/bin"))
JOB = "digits"
EPOCHS = 25
LAST_GOOD_EPOCH = 15
BROKEN_EPOCHS = 3  # how many bad epochs the operator watches before rolling back
EPOCHS_BEFORE_LOSS = 3  # how far the good timeline gets before the machine dies
LOST_AFTER_S = 8
PATIENCE_S = 240

BOLD, RED, GREEN, DIM, PLAIN = ("\033[1m", "\033[31m", "\033[32m", "\033[2m", "\033[0m")
if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
    BOLD = RED = GREEN = DIM = PLAIN = ""

FLEET = {
    "schema": 1,
    "controller": {"host": "workstation", "lost_after": LOST_AFTER_S},
    "nodes": [
        {"name": "workstation", "pool": "tank", "gpus": "rtx-4090"},
        {"name": "macbook", "pool": "zpool", "gpus": "m3-max-64"},
        {"name": "laptop2", "pool": "data", "gpus": "rtx-3080-10"},
        {"name": "server", "pool": "nvme", "gpus": "2x-a100-80"},
    ],
}


class Failed(Exception):
    """The story did not go as it should."""


def title(text):
    print(f"\n{BOLD}{text}{PLAIN}", flush=True)


def note(text):
    print(f"{DIM}{text}{PLAIN}", flush=True)


class Fleet:
    """A development fleet, operated as a person would: by zedctl."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = dict(os.environ, ZED_DEV_DIR=str(folder / "fleet"))

    def run(self, *words, check=True):
        command = [str(BINARIES / "zedctl"), *words]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        if check and done.returncode != 0:
            raise Failed(f"zedctl {' '.join(words)}: exit {done.returncode}\n{done.stderr}{done.stdout}")
        return done

    def say(self, *words):
        """Runs a command as the operator types it, and shows both."""
        print(f"\n{GREEN}$ zedctl {' '.join(words)}{PLAIN}", flush=True)
        done = self.run(*words)
        print((done.stdout + done.stderr).rstrip(), flush=True)

    def ask(self, *words):
        return json.loads(self.run(*words, "--json").stdout)

    def job(self):
        return next((row for row in self.ask("jobs", "--all")["jobs"] if row["name"] == JOB), None)

    def checkpoints(self):
        return self.ask("checkpoints", JOB)["checkpoints"]

    def must_go_on(self):
        """A job that has failed is not waited for: what it wrote says why."""
        job = self.job()
        if job is None or job["state"] not in ("failed", "cancelled"):
            return
        wrote = self.run("logs", JOB, "-n", "12", check=False).stdout.rstrip()
        raise Failed(f"{JOB} has {job['state']} on {job['node']}: {job['reason']}\n{wrote}\n"
                     "  next: its python3 is the first of PATH and needs numpy and zed: ./dev demo has both")

    def pool(self, node):
        return self.folder / "fleet/nodes" / node / "pool"


def wait_for(what, test):
    """The first true value of test(), asked ten times a second."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = test()
        if value:
            return value
        time.sleep(0.1)
    raise Failed(f"waited {PATIENCE_S} s in vain for {what}")


class Watch:
    """Prints each checkpoint once, as it is committed, and remembers all of them."""

    def __init__(self, fleet):
        self.fleet = fleet
        self.seen = {}

    def look(self):
        self.fleet.must_go_on()
        for row in self.fleet.checkpoints():
            if row["seq"] is None:
                continue
            if row["id"] not in self.seen:
                self.show(row)
            self.seen[row["id"]] = row
        return self.current()

    def current(self):
        rows = [row for row in self.seen.values() if row["current"]]
        return max(rows, key=lambda row: row["seq"], default=None)

    def show(self, row):
        metrics = row["metrics"]
        loss = float(metrics.get("loss", "nan"))
        bad = loss > 2
        mark = f"{RED}← something went wrong{PLAIN}" if bad else f"{GREEN}✓{PLAIN}"
        print(f"  {row['name']:<12} loss {loss:8.4f}  accuracy {float(metrics.get('accuracy', 'nan')):6.4f}"
              f"  on {', '.join(row['nodes']):<24} {mark}", flush=True)


def epoch_of(row):
    return int(row["name"].split("-")[1].split(".")[0]) if row else 0


def make_models(cluster):
    (cluster / "models").mkdir()
    for name, options in (("digits-base", []), ("digits-wide", ["--hidden", "51200"])):
        subprocess.run([sys.executable, str(cluster / "train_digits.py"), "--initial", *options,
                        "--out", str(cluster / "models" / f"{name}.npz")], check=True,
                       stdout=subprocess.DEVNULL)


def prepare(folder):
    cluster = folder / "cluster"  # what the job's `code "."` packs
    cluster.mkdir()
    for name in ("digits.exs", "train_digits.py", ".zedignore"):
        shutil.copy(EXAMPLES / name, cluster / name)
    make_models(cluster)


def train_alone(folder):
    """The same training, undisturbed and without Zed: what the fleet's must equal."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ZED_")}
    out = folder / "alone.npz"
    subprocess.run([sys.executable, str(EXAMPLES / "train_digits.py"), "--epochs", str(EPOCHS),
                    "--out", str(out)], check=True, env=environment, stdout=subprocess.DEVNULL)
    return hashlib.sha256(out.read_bytes()).hexdigest()


def replicate_models(fleet):
    def copies():
        nodes = {row["dataset"]: sorted(copy["node"] for copy in row["copies"])
                 for row in fleet.ask("models")["models"]}
        everywhere = sorted(node["name"] for node in FLEET["nodes"])
        base_is_there = nodes.get("models/digits-base") == everywhere
        wide_is_there = nodes.get("models/digits-wide") == ["macbook", "server", "workstation"]
        return base_is_there and wide_is_there

    wait_for("the models to be replicated", copies)


def break_and_roll_back(fleet, watch):
    wait_for("the first bad epochs", lambda: epoch_of(watch.look()) >= LAST_GOOD_EPOCH + BROKEN_EPOCHS)
    title("The loss has jumped. Roll back to the last good epoch; what came after stays as a branch.")
    fleet.say("rollback", f"{JOB}@epoch-{LAST_GOOD_EPOCH}", "--yes")
    wait_for("the good timeline to go on", lambda: 0 < epoch_of(watch.look()) and
             epoch_of(watch.current()) >= LAST_GOOD_EPOCH + EPOCHS_BEFORE_LOSS and
             float(watch.current()["metrics"]["loss"]) < 1)


def wait_until_elsewhere(fleet, watch):
    wait_for("the job to run elsewhere", lambda: watch.look() and (job := fleet.job()) and
             job["state"] == "running" and job["node"] not in ("server", "") and job["node"])


def lose_the_server(fleet, watch):
    title("The server dies: agent, supervisor and job are killed with -9.")
    fleet.say("dev", "kill", "server")
    note(f"  it counts as lost after {LOST_AFTER_S} s of silence")
    wait_until_elsewhere(fleet, watch)
    note(f"  the job goes on, on {fleet.job()['node']}")
    wait_for("the job to finish", lambda: watch.look() and fleet.job()["state"] == "succeeded")
    watch.look()


def find_weights(fleet, node):
    found = [path for path in fleet.pool(node).rglob("weights.npz") if "/snap" not in str(path)]
    if not found:
        raise Failed(f"there are no final weights on {node}")
    return max(found, key=lambda path: path.stat().st_mtime)


def prove(fleet, watch, alone):
    """Every claim, with what was found. All must hold."""
    job = fleet.job()
    rows = {row["id"]: row for row in fleet.checkpoints() if row["seq"] is not None}
    current = sorted((row for row in rows.values() if row["current"]), key=lambda row: row["seq"])
    branch = [row for row in rows.values() if not row["current"]]
    weights = find_weights(fleet, job["node"])
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    up = {row["node"]["name"] for row in fleet.ask("nodes")["nodes"] if row["node"]["status"] == "up"}
    lost = [row["name"] for row in watch.seen.values() if row["id"] not in rows]
    lonely = [row["name"] for row in current if len(up & set(row["nodes"])) < 1]
    return [
        ("the job succeeded", job["state"] == "succeeded", job["state"]),
        ("on another machine than it began", job["node"] != "server", job["node"]),
        (f"its timeline has every epoch, 1 to {EPOCHS}",
         [epoch_of(row) for row in current] == list(range(1, EPOCHS + 1)),
         f"{len(current)} checkpoints"),
        ("the bad epochs are kept as a branch", len(branch) >= BROKEN_EPOCHS and
         all(float(row["metrics"]["loss"]) > 1 for row in branch if epoch_of(row) > LAST_GOOD_EPOCH
             and row["timeline"] == branch[0]["timeline"]),
         ", ".join(sorted({row["dataset"] for row in branch}))),
        ("the branch is on the replicas too", any(set(row["nodes"]) & up for row in branch),
         ", ".join(sorted({node for row in branch for node in row["nodes"]}))),
        ("every checkpoint that was committed is still there", not lost, ", ".join(lost) or "all"),
        ("each of the timeline is on a machine that is up", not lonely, ", ".join(lonely) or "all"),
        ("the final weights equal those of the training without Zed, to the last bit",
         digest == alone, digest[:16]),
    ]


def moved_by(events):
    """Snapshots and bytes for each dataset and route: "server -> macbook, 29.3 MiB", with what else is said of it."""
    factor = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
    moved = {}
    for event in events:
        found = re.match(r"(\S+ -> \S+), ([0-9.]+) (B|KiB|MiB|GiB)\b", event["text"])
        if event["kind"] != "transfer" or found is None:
            continue
        route, amount, unit = found.groups()
        dataset = event["subject"].split("@")[0]
        count, total = moved.get((dataset, route), (0, 0.0))
        moved[dataset, route] = (count + 1, total + float(amount) * factor[unit])
    return moved


def show_moved(fleet):
    """What went from machine to machine, from the fleet's own events."""
    moved = moved_by(fleet.ask("events", "--limit", "1000")["events"])
    title("What moved")
    for (dataset, route), (count, total) in sorted(moved.items()):
        snapshots = f"{count} snapshot" + "s" * (count != 1)
        print(f"  {dataset:<42} {route:<26} {snapshots:>13} {total / 2**20:9.2f} MiB")


def story(folder):
    fleet = Fleet(folder)
    prepare(folder)
    title("Four machines, as processes on this one. Only the GPUs are simulated.")
    (folder / "fleet.json").write_text(json.dumps(FLEET))
    fleet.say("dev", "up", str(folder / "fleet.json"))
    try:
        title("Two models are made on the server. The cluster file says where they go.")
        for name, vram in (("digits-base", 8), ("digits-wide", 24)):
            fleet.say("model", "add", str(folder / "cluster/models" / f"{name}.npz"), "--name", name,
                      "--version", "1.0", "--requires", f"vram={vram}", "--node", "server")
        fleet.say("apply", str(folder / "cluster/digits.exs"), "--yes")
        replicate_models(fleet)
        fleet.say("nodes")
        fleet.say("models")
        title("A training run. It prefers an A100, so it starts on the server.")
        fleet.say("dispatch", JOB)
        watch = Watch(fleet)
        break_and_roll_back(fleet, watch)
        lose_the_server(fleet, watch)
        fleet.say("checkpoints", JOB)
        show_moved(fleet)
        title("The proof")
        claims = prove(fleet, watch, train_alone(folder))
        for claim, holds, found in claims:
            print(f"  {GREEN + 'yes' if holds else RED + 'NO '}{PLAIN}  {claim}: {found}")
        return all(holds for _, holds, _ in claims)
    finally:
        if os.environ.get("KEEP") == "1":
            title("The fleet is still up. Look around:")
            print(f"  export ZED_DEV_DIR={folder / 'fleet'} PATH={BINARIES}:$PATH\n"
                  f"  zedctl status; zedctl jobs --all; zedctl why {JOB}; zedctl logs {JOB}\n"
                  f"  zedctl dev down")
        else:
            fleet.run("dev", "down", "--yes", check=False)


def main():
    folder = Path(tempfile.mkdtemp(prefix="zed-demo-"))
    try:
        proven = story(folder)
    except Failed as failure:
        print(f"\n{RED}{failure}{PLAIN}", file=sys.stderr)
        proven = False
    if proven and os.environ.get("KEEP") != "1":
        shutil.rmtree(folder, ignore_errors=True)
    else:
        note(f"everything is in {folder}")
    print(f"\n{GREEN}proven{PLAIN}" if proven else f"\n{RED}not proven{PLAIN}")
    return 0 if proven else 1


if __name__ == "__main__":
    sys.exit(main())
