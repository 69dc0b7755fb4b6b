"""zed.state: what is put back is what was saved, to the last bit, after kill -9 at any moment."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

from support import JobTest
from torch_child import TorchChild
from zed import state

PACKAGE = os.path.abspath(os.path.join(os.path.dirname(__file__), os.pardir))


class Weights:
    def __init__(self):
        self.values = [random.random() for _ in range(8)]

    def state_dict(self):
        return {"values": list(self.values)}

    def load_state_dict(self, saved):
        self.values = list(saved["values"])


class StateTest(JobTest):
    def path(self, name="epoch-1.state"):
        return os.path.join(self.job_dir, "ckpt", name)

    def test_everything_comes_back(self):
        weights, batches = Weights(), state.ShuffledBatches(10, 3, seed=4)
        iterator = iter(batches)
        next(iterator)
        state.save_state(self.path(), weights=weights, batches=batches, epoch=7)
        expected = (list(weights.values), random.random(), next(iterator))
        other, other_batches = Weights(), state.ShuffledBatches(10, 3, seed=4)
        found = state.load_state(self.path(), weights=other, batches=other_batches)
        self.assertEqual(found, {"epoch": 7})
        self.assertEqual((other.values, random.random(), next(iter(other_batches))), expected)

    def test_a_part_that_is_forgotten_is_found_out(self):
        state.save_state(self.path(), weights=Weights(), batches=state.ShuffledBatches(10, 3))
        with self.assertRaisesRegex(ValueError, "has batches too"):
            state.load_state(self.path(), weights=Weights())
        with self.assertRaisesRegex(ValueError, "has no scheduler; it has batches, weights"):
            state.load_state(self.path(), weights=Weights(), batches=state.ShuffledBatches(10, 3), scheduler=Weights())

    def test_another_file_is_refused(self):
        import pickle

        with open(self.path(), "wb") as file:
            pickle.dump([1, 2], file)
        with self.assertRaisesRegex(ValueError, "was not written by"):
            state.load_state(self.path())

    def test_the_place_in_other_data_is_refused(self):
        saved = state.ShuffledBatches(10, 3).state_dict()
        with self.assertRaisesRegex(ValueError, "data with size 10, not 11"):
            state.ShuffledBatches(11, 3).load_state_dict(saved)

    def test_batches_are_all_of_the_data_in_another_order_each_epoch(self):
        batches = state.ShuffledBatches(10, 3, seed=1)
        first = [index for batch in batches for index in batch]
        second = [index for batch in batches for index in batch]
        self.assertEqual(sorted(first), list(range(10)))
        self.assertNotEqual(first, second)
        self.assertEqual(batches.epoch, 2)
        self.assertEqual(len(state.ShuffledBatches(10, 3, drop_last=True)), 3)

    def test_batches_are_skipped_over_the_ends_of_epochs(self):
        batches = state.ShuffledBatches(10, 3)
        list(batches)
        batches.skip(6)
        self.assertEqual((batches.epoch, batches.done), (2, 2))

    def test_numpys_generator_comes_back(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not here")
        state.save_state(self.path(), epoch=1)
        expected = numpy.random.random(4).tolist()
        state.load_state(self.path())
        self.assertEqual(numpy.random.random(4).tolist(), expected)


#: Trains eight numbers; what it ends with depends on every draw and every batch.
TRAINING = """
import os, random, sys
sys.path.insert(0, {package!r})
import zed
from zed import state

class Weights:
    def __init__(self): self.values = [random.random() for _ in range(8)]
    def state_dict(self): return {{"values": list(self.values)}}
    def load_state_dict(self, saved): self.values = list(saved["values"])

random.seed(3)
weights, batches = Weights(), state.ShuffledBatches(64, 4, seed=9)
if zed.resume:
    state.load_state(zed.job_dir / f"ckpt/epoch-{{zed.resume.epoch}}.state", weights=weights, batches=batches)

def save(name):
    return state.save_state(zed.job_dir / f"ckpt/{{name}}.state", weights=weights, batches=batches)

for epoch in zed.epochs(12, save=save):
    for batch in batches:
        for index in batch:
            weights.values[index % 8] += random.gauss(0, 0.1) * (index + 1) / weights.values[(index * 3) % 8]
with zed.atomic_write(zed.job_dir / "final.txt", "w") as file:
    file.write(" ".join(value.hex() for value in weights.values))
"""


PATIENCE_S = 180


class KillTest(JobTest):
    """kill -9 at random moments; each next attempt begins from the newest committed checkpoint."""

    KILLS = 8

    def environment(self, **more):
        return {**os.environ, **self.environ, "ZED_CHECKPOINT_EVERY": "1 epoch", **more}

    def start(self, **more):
        script = TRAINING.format(package=PACKAGE)
        return subprocess.Popen([sys.executable, "-c", script], env=self.environment(**more), stderr=subprocess.PIPE)

    def final(self):
        with open(os.path.join(self.job_dir, "final.txt"), encoding="utf-8") as file:
            return file.read()

    def connected(self, agent, count):
        """Whether so many processes in all have said hello, soon enough."""
        with agent._changed:
            return agent._changed.wait_for(lambda: len(agent._of("hello")) >= count, PATIENCE_S)

    def begin_anew(self, agent):
        for name in ("ckpt", "metrics"):
            shutil.rmtree(os.path.join(self.job_dir, name), ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.job_dir, "final.txt"))
        agent.committed.clear()

    def life(self, agent, moment, most):
        """One run from its beginning to its end, killed on the way at most so often: how often it was."""
        kills, more = 0, {}
        while not os.path.exists(os.path.join(self.job_dir, "final.txt")):
            hellos = len(agent._of("hello"))
            began, child = time.monotonic(), self.start(**more)
            try:
                if kills < most:
                    after_hello, seconds = moment()
                    if after_hello:
                        self.connected(agent, hellos + 1)
                    _, errors = child.communicate(timeout=seconds)
                else:
                    _, errors = child.communicate(timeout=PATIENCE_S)
                self.assertEqual(child.returncode, 0, errors)
                if not more:  # a busy machine may be idle by now: moments beyond the end kill nobody
                    self.whole_s = min(self.whole_s, time.monotonic() - began)
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
                child.communicate(timeout=PATIENCE_S)
                kills += 1
            if agent.committed:
                newest = agent.committed[-1]["snapshot"]
                more = {"ZED_CHECKPOINT": newest, "ZED_CHECKPOINT_EPOCH": newest.split("-")[1].split(".")[0]}
        return kills

    def test_resume_after_kill_9_is_bit_exact(self):
        agent = self.agent()
        began = time.monotonic()
        child = self.start()
        self.assertTrue(self.connected(agent, 1))
        begin_s = time.monotonic() - began
        _, errors = child.communicate(timeout=PATIENCE_S)
        self.assertEqual(child.returncode, 0, errors)
        self.whole_s = time.monotonic() - began
        expected = self.final()
        draw = random.Random(5)

        def moment():
            """Every second one while it trains, the others at any time from its start on."""
            after_hello = draw.random() < 0.5
            training_s = max(self.whole_s - begin_s, self.whole_s / 2)
            return after_hello, draw.uniform(0, training_s if after_hello else self.whole_s)

        kills = lives = 0
        while kills < self.KILLS:
            self.begin_anew(agent)
            kills += self.life(agent, moment, self.KILLS - kills)
            lives += 1
            self.assertEqual(self.final(), expected, f"after {kills} kills in {lives} lives")
        self.assertEqual(kills, self.KILLS)


class TorchKillTest(KillTest):
    """The same with PyTorch's own weights, optimizer, schedule and generators."""

    KILLS = int(os.environ.get("ZED_TORCH_KILLS", "6"))

    def setUp(self):
        super().setUp()
        if os.environ.get("ZED_TEST_FULL") != "1":
            self.skipTest("./dev test-full runs it")
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("PyTorch is not here")

    def start(self, **more):
        script = os.path.join(PACKAGE, os.pardir, os.pardir, "examples", "train_torch.py")
        path = os.pathsep.join([PACKAGE, os.environ.get("PYTHONPATH", "")])
        return TorchChild(script, ["--epochs", "12"], self.environment(PYTHONPATH=path, **more))


class RunFactsTest(JobTest):
    def test_a_checkpoint_has_the_parameters_and_packages_of_its_run(self):
        self.agent()
        client = self.client()
        client.parameters({"lr": 0.1, "size": [1, 2], "loss": float("nan")})
        client.checkpoint(1, None, [], 5.0, {})
        with open(os.path.join(self.job_dir, "metrics", "run.json"), encoding="utf-8") as file:
            facts = json.load(file)
        self.assertEqual(facts["parameters"], {"loss": "nan", "lr": 0.1, "size": "[1, 2]"})
        self.assertIn("python", facts)


if __name__ == "__main__":
    unittest.main()
