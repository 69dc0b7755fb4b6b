"""A small training run for a lab machine: fits a plane by gradient descent with momentum, in plain Python.

What it computes depends on its options alone, however often it is killed, rolled back or moved: all state
is in each checkpoint (weights, momentum, random generator), and the arithmetic adds, multiplies and
divides, which every processor does alike. `--state-bytes` of each checkpoint stand for a real optimiser's
state: they follow from the weights, are new in every epoch and do not compress.
"""

import argparse
import hashlib
import json
import os
import random
import sys
import time
from pathlib import Path

import zed

WIDTH = 6
SAMPLES = 60
RATE = 0.02
BROKEN_RATE = 5.0
MOMENTUM = 0.5
STEEPEST = 1.0  # gradients are clipped, so that a broken rate gives a bad loss and no infinity


class Training:
    """The whole state of the run."""

    def __init__(self, weights, momentum, numbers):
        self.weights = weights
        self.momentum = momentum
        self.numbers = numbers

    @staticmethod
    def begin(initial):
        return Training(list(initial), [0.0] * WIDTH, random.Random(7))

    @staticmethod
    def read(path):
        state = json.loads(path.read_text())
        numbers = random.Random()
        version, words, gauss = state["numbers"]
        numbers.setstate((version, tuple(words), gauss))
        return Training(state["weights"], state["momentum"], numbers)

    def text(self):
        return json.dumps({"weights": self.weights, "momentum": self.momentum, "numbers": self.numbers.getstate()})

    def epoch(self, rate):
        """Goes over new samples of the same plane; the mean loss."""
        total = 0.0
        for _ in range(SAMPLES):
            x = [self.numbers.uniform(-1, 1) for _ in range(WIDTH)]
            error = sum(w * v for w, v in zip(self.weights, x)) - sum((i + 1) * v for i, v in enumerate(x))
            total += error * error
            for i, v in enumerate(x):
                gradient = max(-STEEPEST, min(STEEPEST, error * v))
                self.momentum[i] = MOMENTUM * self.momentum[i] + gradient
                self.weights[i] -= rate * self.momentum[i]
        return total / SAMPLES


def options_of(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--allow", type=Path, help="file with the highest epoch that may begin")
    parser.add_argument("--marks", type=Path, help="folder that learns of each checkpoint before it is asked for")
    parser.add_argument("--break-at-epoch", type=int, help="spoil the rate from there on, in the first attempt")
    parser.add_argument("--initial", type=Path, help="initial weights, if there is no model")
    parser.add_argument("--state-bytes", type=int, default=0)
    return parser.parse_args(arguments)


def may_begin(options, epoch):
    """Waits for permission; False if the job is to stop instead."""
    while options.allow and int(options.allow.read_text()) < epoch:
        if zed.should_stop:
            return False
        time.sleep(0.1)
    return True


def start(options):
    if zed.resume is not None:
        return Training.read(Path("ckpt") / f"epoch-{zed.resume.epoch}" / "training.json")
    initial = zed.model_dir / "initial.json" if zed.model_dir else options.initial
    return Training.begin(json.loads(initial.read_text()) if initial else [0.0] * WIDTH)


def write_checkpoint(options, training, epoch):
    folder = Path("ckpt") / f"epoch-{epoch}"
    folder.mkdir(parents=True, exist_ok=True)
    text = training.text()
    files = {"training.json": text.encode()}
    if options.state_bytes:
        files["state"] = hashlib.shake_256(text.encode()).digest(options.state_bytes)
    for name, data in files.items():
        with zed.atomic_write(folder / name) as file:
            file.write(data)
    return folder


def train(options, training):
    for epoch in zed.epochs(options.epochs):
        if not may_begin(options, epoch):
            zed.leave()
            return
        broken = zed.attempt == 1 and options.break_at_epoch is not None and epoch >= options.break_at_epoch
        loss = training.epoch(BROKEN_RATE if broken else RATE)
        folder = write_checkpoint(options, training, epoch)
        zed.log(step=epoch, epoch=epoch, loss=loss)
        if options.marks:
            options.marks.mkdir(exist_ok=True)
            (options.marks / f"epoch-{epoch}").touch()
        begin = time.monotonic()
        done = zed.checkpoint(epoch=epoch, loss=loss, paths=[folder], timeout=120)
        what = f"{done.snapshot if done else 'not committed'} took {time.monotonic() - begin:.3f} s"
        print(f"epoch {epoch} loss {loss:.4f} {what}", flush=True)


def main():
    options = options_of(sys.argv[1:])
    training = start(options)
    print(f"attempt {os.environ.get('ZED_ATTEMPT')} from {os.environ.get('ZED_CHECKPOINT') or 'start'}", flush=True)
    train(options, training)
    if not zed.stopped:
        Path("weights.json").write_text(training.text())
        print("finished", flush=True)


if __name__ == "__main__":
    main()
