"""train_digits.py gives the same weights to the last bit, whatever happens on the way.

    /usr/bin/python3 -m unittest discover -s examples/tests

Processes are real, and killed with SIGKILL; the agent is the fake one of the client's tests, whose
snapshots are real copies of the job's folder.
"""

import gzip
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "train_digits.py"
sys.path[:0] = [str(ROOT / "clients" / "python" / "tests"), str(ROOT / "clients" / "python"), str(SCRIPT.parent)]

import train_digits  # noqa: E402
from fake_agent import FakeAgent  # noqa: E402

EPOCHS = 8
SMALL = ["--epochs", str(EPOCHS), "--hidden", "16"]


def write_synthetic_digits(path):
    """Ten patterns with noise, in the shape of the real data, which need not be installed here."""
    rng = np.random.default_rng(0)
    labels = np.arange(train_digits.IMAGES) % 10
    patterns = rng.integers(0, 17, (10, train_digits.PIXELS))
    noisy = np.clip(patterns[labels] + rng.integers(-6, 7, (len(labels), train_digits.PIXELS)), 0, 16)
    with gzip.open(path, "wt") as file:
        np.savetxt(file, np.column_stack([noisy, labels]), fmt="%d", delimiter=",")


class Fixture(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = Path(tempfile.mkdtemp(prefix="zed-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        cls.data = cls.shared / train_digits.DIGITS
        write_synthetic_digits(cls.data)

    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="zed-"))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)

    def environ(self, **more):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ZED_")}
        return {**clean, "PYTHONPATH": str(ROOT / "clients" / "python"), **more}

    def run_plain(self, *arguments, data=True, check=True, **environ):
        """Outside Zed; returns the finished process."""
        extra = ["--data", str(self.data)] if data else []
        result = subprocess.run(
            [sys.executable, str(SCRIPT), *arguments, *extra],
            cwd=self.root,
            env=self.environ(**environ),
            capture_output=True,
            text=True,
            timeout=120,
        )
        if check:
            self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def undisturbed(self):
        """The weights' bytes of one run without Zed, computed once."""
        if not hasattr(Fixture, "reference"):
            self.run_plain(*SMALL)
            Fixture.reference = (self.root / "weights.npz").read_bytes()
        return Fixture.reference


class Job:
    """One job over many attempts: what an agent does for it, in small."""

    def __init__(self, test, rng):
        self.test, self.rng = test, rng
        self.dir, self.snapshots = test.root / "job", test.root / "snapshots"
        self.dir.mkdir()
        self.snapshots.mkdir()
        self.timeline = []  # committed epochs of the current timeline
        self.attempt = 0
        self.output = []

    def start(self, *arguments, seconds="0.03"):
        self.attempt += 1
        newest = str(self.timeline[-1]) if self.timeline else ""
        socket = str(self.test.root / "s")
        if os.path.exists(socket):
            os.unlink(socket)
        self.agent = FakeAgent(socket, str(self.dir), generation=f"1.x.{self.attempt}", snapshots=str(self.snapshots))
        environ = self.test.environ(
            ZED_SOCKET=socket, ZED_JOB="digits", ZED_JOB_DIR=str(self.dir), ZED_ATTEMPT=str(self.attempt),
            ZED_GENERATION=f"1.x.{self.attempt}", ZED_CHECKPOINT=f"epoch-{newest}" if newest else "",
            ZED_CHECKPOINT_EPOCH=newest, ZED_CHECKPOINT_STEP="", ZED_CHECKPOINT_EVERY="1 epoch",
            ZED_DATA_DIR=str(self.test.data.parent),
        )  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT), *SMALL, "--epoch-seconds", seconds, *arguments],
            cwd=self.dir, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.lines = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True)
        self.reader.start()

    def wait_for(self, predicate, what):
        end = time.monotonic() + 60
        while not predicate():
            self.test.assertLess(time.monotonic(), end, f"never came: {what}; output {self.lines}")
            if self.process.poll() is not None:
                return
            time.sleep(0.002)

    def epochs_seen(self):
        return sum(line.startswith("epoch ") for line in self.lines)

    def end(self, kill=False):
        """Returns the exit code, once all that the agent had begun is done."""
        if kill:
            self.process.send_signal(signal.SIGKILL)
        code = self.process.wait(60)
        self.reader.join(10)
        self.process.stdout.close()
        self.agent.stop()
        self.agent.join()
        self.timeline += [int(reply["snapshot"].split("-")[1]) for reply in self.agent.committed]
        self.output += self.lines
        return code

    def kill_at_random(self):
        if self.rng.random() < 0.25:
            time.sleep(self.rng.uniform(0.0, 0.6))  # while it starts, too
        else:
            wanted = self.rng.randint(0, 3)
            self.wait_for(lambda: self.epochs_seen() >= wanted, f"{wanted} epochs")
            time.sleep(self.rng.uniform(0.0, 0.06))
        return self.end(kill=True)

    def go_back_to(self, epoch):
        """Rolled back or moved: the folder becomes a copy of the snapshot, nothing else is left."""
        shutil.rmtree(self.dir)
        self.dir.mkdir()
        self.timeline = [e for e in self.timeline if epoch is not None and e <= epoch]
        if self.timeline:
            shutil.copytree(self.snapshots / f"epoch-{epoch}", self.dir, dirs_exist_ok=True)

    def disturb(self):
        """What happens between two attempts."""
        what = self.rng.choice(["retry here", "move", "roll back"])
        if what == "move":
            self.go_back_to(self.timeline[-1] if self.timeline else None)
        elif what == "roll back":
            self.go_back_to(self.rng.choice([None, *self.timeline]))

    def weights(self):
        return (self.dir / "weights.npz").read_bytes()


class BitIdentical(Fixture):
    def job(self, seed=0):
        return Job(self, random.Random(seed))

    def test_undisturbed_twice_and_with_zed(self):
        again = self.undisturbed()
        self.run_plain(*SMALL)
        self.assertEqual((self.root / "weights.npz").read_bytes(), again)
        job = self.job()
        job.start(seconds="0")
        self.assertEqual(job.end(), 0, job.output)
        self.assertEqual(job.timeline, list(range(1, EPOCHS + 1)))
        self.assertEqual(job.weights(), again)

    def test_the_comparison_can_fail(self):
        self.run_plain(*SMALL, "--seed", "2")
        self.assertNotEqual((self.root / "weights.npz").read_bytes(), self.undisturbed())

    def test_killed_moved_and_rolled_back_at_random(self):
        for seed in range(4):
            with self.subTest(seed=seed):
                self.root = Path(tempfile.mkdtemp(prefix="zed-"))
                self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
                job = self.job(seed)
                for _ in range(5):
                    job.start()
                    job.kill_at_random()
                    job.disturb()
                job.start(seconds="0")
                self.assertEqual(job.end(), 0, job.output)
                self.assertEqual(job.weights(), self.undisturbed(), "".join(job.output))

    def test_a_broken_epoch_rolled_back(self):
        job = self.job()
        job.start("--break-at-epoch", "4")
        job.wait_for(lambda: len(job.agent.committed) >= 5, "epoch 5")
        job.end(kill=True)
        losses = [float(line.split()[3]) for line in job.output if line.startswith("epoch ")]
        self.assertLess(losses[2], losses[1])
        self.assertGreater(losses[3], losses[2] + 0.5)
        job.go_back_to(3)
        job.start("--break-at-epoch", "4", seconds="0")
        self.assertEqual(job.end(), 0, job.output)
        self.assertEqual(job.weights(), self.undisturbed())

    def test_a_broken_epoch_kept_gives_other_weights(self):
        job = self.job()
        job.start("--break-at-epoch", "4", seconds="0")
        self.assertEqual(job.end(), 0, job.output)
        self.assertNotEqual(job.weights(), self.undisturbed())

    def test_outside_zed_nothing_is_broken(self):
        self.run_plain(*SMALL, "--break-at-epoch", "2", ZED_ATTEMPT="1")
        self.assertEqual((self.root / "weights.npz").read_bytes(), self.undisturbed())

    def test_stopped_as_asked_and_continued(self):
        job = self.job()
        job.start(seconds="0.2")
        job.wait_for(lambda: job.epochs_seen() >= 2, "2 epochs")
        job.agent.ask("stop")
        self.assertEqual(job.end(), 0, job.output)
        self.assertLess(job.timeline[-1], EPOCHS)
        self.assertIn("stopped as asked", job.output[-1])
        self.assertFalse((job.dir / "weights.npz").exists())
        self.assertEqual(job.agent.received("stopped")[0]["op"], "stopped")
        job.start(seconds="0")
        self.assertEqual(job.end(), 0, job.output)
        self.assertEqual(job.weights(), self.undisturbed())

    def test_the_agent_dies_for_good(self):
        job = self.job()
        job.start()
        job.wait_for(lambda: job.epochs_seen() >= 2, "2 epochs")
        job.agent.stop()
        self.assertEqual(job.end(), 0, job.output)
        self.assertEqual(job.weights(), self.undisturbed())
        self.assertEqual(sum("no checkpoint" in line for line in job.output), 1, job.output)

    def test_finished_already(self):
        job = self.job()
        job.start(seconds="0")
        job.end()
        job.go_back_to(EPOCHS)
        job.start(seconds="0")
        self.assertEqual(job.end(), 0, job.output)
        self.assertEqual(job.weights(), self.undisturbed())

    def test_beginning_from_the_models_file_is_the_same(self):
        model = self.root / "model"
        model.mkdir()
        self.run_plain("--initial", "--hidden", "16", "--out", "model/base.npz")
        self.run_plain(*SMALL, "--model", "model/base.npz")
        self.assertEqual((self.root / "weights.npz").read_bytes(), self.undisturbed())


class Files(Fixture):
    def test_older_checkpoints_go_only_after_a_positive_reply(self):
        job = Job(self, random.Random(0))
        job.start(seconds="0.05")
        job.wait_for(lambda: len(job.agent.committed) >= 3, "3 checkpoints")
        job.agent.behaviour = lambda request, answer: b'{"v":1,"request":%d,"ok":false}\n' % request["request"]
        self.assertEqual(job.end(), 0, job.output)
        kept = sorted(int(path.stem.split("-")[1]) for path in (job.dir / "ckpt").glob("*.npz"))
        self.assertEqual(kept, list(range(job.timeline[-1], EPOCHS + 1)))

    def test_the_hash_file_is_for_sha256sum(self):
        self.run_plain(*SMALL, "--out", "out/final.npz")
        subprocess.run(["sha256sum", "-c", "final.npz.sha256"], cwd=self.root / "out", check=True, capture_output=True)

    def test_pacing_takes_time_and_changes_nothing(self):
        began = time.monotonic()
        self.run_plain(*SMALL, "--epoch-seconds", "0.1")
        self.assertGreater(time.monotonic() - began, 0.1 * EPOCHS)
        self.assertEqual((self.root / "weights.npz").read_bytes(), self.undisturbed())


class Errors(Fixture):
    def refusal(self, *arguments, **options):
        result = self.run_plain(*SMALL, *arguments, check=False, **options)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertNotIn("Traceback", result.stderr)
        return result.stderr

    def test_no_such_data(self):
        self.assertIn("cannot read the digits in", self.refusal("--data", "nowhere.csv", data=False))

    def test_data_of_another_shape(self):
        (self.root / "other.csv").write_text("1,2\n3,4\n")
        self.assertIn("is not the digits", self.refusal("--data", "other.csv", data=False))

    def test_a_model_of_another_width(self):
        self.run_plain("--initial", "--hidden", "8", "--out", "base.npz")
        self.assertIn("has 8 hidden units", self.refusal("--model", "base.npz"))

    def test_a_model_that_is_none(self):
        (self.root / "base.npz").write_bytes(b"PK\x03\x04 broken")
        self.assertIn("cannot read base.npz", self.refusal("--model", "base.npz"))

    def test_a_checkpoint_whose_file_is_missing(self):
        more = {"ZED_SOCKET": str(self.root / "s"), "ZED_JOB_DIR": str(self.root)}
        self.assertIn(
            "cannot read", self.refusal(**more, ZED_CHECKPOINT="epoch-3", ZED_CHECKPOINT_EPOCH="3")
        )


@unittest.skipUnless(train_digits.importlib.util.find_spec("sklearn"), "scikit-learn's data is not installed")
class RealDigits(Fixture):
    def test_learns_them(self):
        result = self.run_plain("--epochs", "10", data=False)
        self.assertGreater(float(result.stdout.splitlines()[9].split()[-1]), 0.95, result.stdout)


if __name__ == "__main__":
    unittest.main()
