#!/usr/bin/env python3
"""Trains a small network on 1,797 handwritten digits, as a job of a Zed fleet or without one.

The numbers it computes depend on --seed, --hidden and --epochs alone: however often it is stopped,
killed, rolled back or moved, the final weights are the same to the last bit as in one run undisturbed.
That takes three things: all state is in each checkpoint (weights, optimiser, random generator), the
arithmetic uses one thread, and nothing depends on the time.
"""

import os

# A BLAS that splits a product over threads adds in an order that varies from run to run. It reads
# these when it is loaded, so they come before numpy.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[_name] = "1"

import argparse  # noqa: E402
import dataclasses  # noqa: E402
import hashlib  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import zipfile  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

import zed  # noqa: E402

DIGITS = "digits.csv.gz"
IMAGES, PIXELS, CLASSES = 1797, 64, 10
TEST_IMAGES = 360
BATCH = 32
RATE = 1e-3
BROKEN_RATE = 1000 * RATE
NAMES = ("w1", "b1", "w2", "b2")
KINDS = ("weights", "mean", "square")  # the arrays of a Training, each with one of every name


# -- data --------------------------------------------------------------------------------------------


def find_digits(given):
    """The file of the digits: --data, ZED_DATA_DIR, or where scikit-learn is installed. The latter
    is only looked at, never imported: its own dependencies need not be there."""
    if given is not None:
        return given / DIGITS if given.is_dir() else given
    folder = os.environ.get("ZED_DATA_DIR")
    if folder:
        found = sorted(Path(folder).glob(DIGITS)) + sorted(Path(folder).glob(f"*/{DIGITS}"))
        if found:
            return found[0]
    package = importlib.util.find_spec("sklearn")
    for place in (package.submodule_search_locations or []) if package else []:
        if (path := Path(place) / "datasets" / "data" / DIGITS).is_file():
            return path
    sys.exit(
        f"train_digits: cannot find {DIGITS}: not in ZED_DATA_DIR, and no scikit-learn beside {sys.executable}; "
        f"name it with --data, or: {sys.executable} -m pip install --no-deps scikit-learn"
    )


@dataclasses.dataclass(frozen=True)
class Digits:
    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def read_digits(path):
    try:
        table = np.loadtxt(path, delimiter=",", dtype=np.float64)
    except (OSError, ValueError) as error:
        sys.exit(f"train_digits: cannot read the digits in {path}: {error}")
    if table.shape != (IMAGES, PIXELS + 1) or table.min() < 0 or table.max() > 16:
        sys.exit(f"train_digits: {path} is not the digits: a table of {table.shape}, not of {(IMAGES, PIXELS + 1)}")
    # The split belongs to the data set, not to the run: one order for every seed.
    order = np.random.default_rng(1797).permutation(IMAGES)
    x, y = table[order, :PIXELS] / 16.0, table[order, PIXELS].astype(np.int64)
    return Digits(x[TEST_IMAGES:], y[TEST_IMAGES:], x[:TEST_IMAGES], y[:TEST_IMAGES])


# -- the network -------------------------------------------------------------------------------------


@dataclasses.dataclass
class Training:
    """All that the next epoch depends on."""

    weights: dict
    mean: dict  # Adam's running means of the gradient and its square
    square: dict
    step: int
    order: np.random.Generator  # shuffles the training images


def begin(seed, hidden, model):
    """The weights come from the model's file if there is one, else from the seed. Their generator is
    not the one that shuffles, so that both give the same training."""
    weights = read_model(model, hidden) if model else initial_weights(seed, hidden)
    zeros = {name: np.zeros_like(value) for name, value in weights.items()}
    return Training(weights, zeros, {k: v.copy() for k, v in zeros.items()}, 0, np.random.default_rng([seed, 1]))


def initial_weights(seed, hidden):
    random = np.random.default_rng([seed, 0])
    return {
        "w1": random.normal(0.0, np.sqrt(2.0 / PIXELS), (PIXELS, hidden)),
        "b1": np.zeros(hidden),
        "w2": random.normal(0.0, np.sqrt(2.0 / hidden), (hidden, CLASSES)),
        "b2": np.zeros(CLASSES),
    }


def forward(weights, x):
    hidden = np.maximum(x @ weights["w1"] + weights["b1"], 0.0)
    logits = hidden @ weights["w2"] + weights["b2"]
    logits -= logits.max(axis=1, keepdims=True)
    return hidden, logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def gradient(weights, x, y):
    hidden, log_likelihood = forward(weights, x)
    delta = np.exp(log_likelihood)
    delta[np.arange(len(y)), y] -= 1.0
    delta /= len(y)
    back = (delta @ weights["w2"].T) * (hidden > 0.0)
    return {"w1": x.T @ back, "b1": back.sum(axis=0), "w2": hidden.T @ delta, "b2": delta.sum(axis=0)}


def update(training, gradients, rate):
    """One step of Adam (Kingma and Ba, 2015, algorithm 1)."""
    training.step += 1
    for name in NAMES:
        g, m, v = gradients[name], training.mean[name], training.square[name]
        m += 0.1 * (g - m)
        v += 0.001 * (g * g - v)
        corrected = m / (1.0 - 0.9**training.step)
        training.weights[name] -= rate * corrected / (np.sqrt(v / (1.0 - 0.999**training.step)) + 1e-8)


def train_epoch(training, digits, rate, skip_batches):
    order = training.order.permutation(len(digits.train_y))
    for start in range(skip_batches * BATCH, len(order), BATCH):
        batch = order[start : start + BATCH]
        update(training, gradient(training.weights, digits.train_x[batch], digits.train_y[batch]), rate)


def measure(weights, x, y):
    """Loss and accuracy."""
    log_likelihood = forward(weights, x)[1]
    loss = -log_likelihood[np.arange(len(y)), y].mean()
    return float(loss), float((log_likelihood.argmax(axis=1) == y).mean())


# -- files -------------------------------------------------------------------------------------------


def write_checkpoint(path, training):
    state = json.dumps(training.order.bit_generator.state).encode()
    arrays = {f"{kind}_{name}": getattr(training, kind)[name] for kind in KINDS for name in NAMES}
    path.parent.mkdir(exist_ok=True)
    with zed.atomic_write(path) as file:
        np.savez(file, step=np.int64(training.step), order=np.frombuffer(state, np.uint8), **arrays)
    return path


def read_checkpoint(path, hidden):
    arrays = read_arrays(path)
    try:
        kinds = [{name: arrays[f"{kind}_{name}"] for name in NAMES} for kind in KINDS]
        order = np.random.default_rng()
        order.bit_generator.state = json.loads(arrays["order"].tobytes())
        training = Training(*kinds, int(arrays["step"]), order)
    except (KeyError, ValueError) as error:
        sys.exit(f"train_digits: {path} is no checkpoint of this program: {error}")
    check_shape(path, training.weights, hidden)
    return training


def read_model(path, hidden):
    arrays = read_arrays(path)
    if set(arrays) != set(NAMES):
        sys.exit(f"train_digits: {path} has the arrays {sorted(arrays)}, not {sorted(NAMES)}")
    check_shape(path, arrays, hidden)
    return arrays


def read_arrays(path):
    try:
        with np.load(path) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        sys.exit(f"train_digits: cannot read {path}: {error}")


def check_shape(path, weights, hidden):
    if weights["w1"].shape != (PIXELS, hidden):
        sys.exit(f"train_digits: {path} has {weights['w1'].shape[-1]} hidden units, this run has --hidden {hidden}")


def write_weights(path, weights):
    """The file and, beside it, its hash as `sha256sum -c` reads it. The same weights give the same
    bytes: the archive holds no time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zed.atomic_write(path) as file:
        np.savez(file, **{name: weights[name] for name in NAMES})
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    with zed.atomic_write(path.with_name(path.name + ".sha256"), "w") as file:
        file.write(f"{digest}  {path.name}\n")
    return digest


# -- the run -----------------------------------------------------------------------------------------


def find_model(given):
    if given is not None or zed.model_dir is None:
        return given
    found = sorted(zed.model_dir.glob("*.npz"))
    if len(found) > 1:
        sys.exit(f"train_digits: {zed.model_dir} holds {len(found)} .npz files; name one with --model")
    return found[0] if found else None


def start(options):
    """The state to go on from: the checkpoint that Zed names, else the beginning."""
    if zed.resume is None:
        return begin(options.seed, options.hidden, find_model(options.model))
    # By number, not by the snapshot's name: that has a suffix where a name was taken.
    return read_checkpoint(checkpoint_path(f"epoch-{zed.resume.epoch}"), options.hidden)


def checkpoint_path(name):
    return (zed.job_dir or Path.cwd()) / "ckpt" / f"{name}.npz"


def forget_older():
    """Only what is older than a checkpoint that surely exists may go."""
    if zed.committed is None or zed.committed.epoch is None:
        return
    for path in checkpoint_path("any").parent.glob("epoch-*.npz"):
        if int(path.stem.split("-")[1]) < zed.committed.epoch:
            path.unlink()


def train(options, digits, training):
    skip_batches = zed.skip_batches
    for epoch in zed.epochs(options.epochs, save=lambda name: write_checkpoint(checkpoint_path(name), training)):
        began = time.monotonic()
        forget_older()
        broken = zed.attempt == 1 and options.break_at_epoch is not None and epoch >= options.break_at_epoch
        train_epoch(training, digits, BROKEN_RATE if broken else RATE, skip_batches)
        skip_batches = 0
        report(options, epoch, training, digits)
        time.sleep(max(options.epoch_seconds - (time.monotonic() - began), 0.0))
    forget_older()


def report(options, epoch, training, digits):
    loss, accuracy = measure(training.weights, digits.train_x, digits.train_y)
    _, test_accuracy = measure(training.weights, digits.test_x, digits.test_y)
    zed.log(step=training.step, epoch=epoch, loss=loss, accuracy=accuracy, test_accuracy=test_accuracy)
    print(
        f"epoch {epoch:3}/{options.epochs}  loss {loss:9.6f}  accuracy {accuracy:6.4f}"
        f"  test accuracy {test_accuracy:6.4f}",
        flush=True,
    )


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=positive, default=25, metavar="N")
    parser.add_argument("--hidden", type=positive, default=128, metavar="N", help="hidden units (128)")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--data", type=Path, metavar="PATH", help=f"{DIGITS}, or the folder that holds it")
    parser.add_argument("--model", type=Path, metavar="FILE", help="initial weights (ZED_MODEL_DIR/*.npz, else by --seed)")
    parser.add_argument("--out", type=Path, default=Path("weights.npz"), metavar="FILE", help="final weights (weights.npz)")
    parser.add_argument("--initial", action="store_true", help="write the initial weights to --out and stop")
    parser.add_argument(
        "--break-at-epoch", type=positive, metavar="N", help="spoil the learning rate from epoch N on, in a job's first attempt"
    )
    parser.add_argument(
        "--epoch-seconds", type=float, default=0.0, metavar="S", help="spend S seconds on each epoch, for a person to watch"
    )
    return parser.parse_args(arguments)


def positive(text):
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{value} is not positive")
    return value


def main(arguments):
    options = parse(arguments)
    if options.initial:
        digest = write_weights(options.out, initial_weights(options.seed, options.hidden))
        print(f"initial weights {options.out}  sha256 {digest}")
        return
    digits = read_digits(find_digits(options.data))
    training = start(options)
    if zed.resume is not None:
        print(f"continuing after {zed.resume.name}, attempt {zed.attempt}", flush=True)
    train(options, digits, training)
    if zed.stopped:
        print("stopped as asked; the next attempt continues")
        return
    print(f"final weights {options.out}  sha256 {write_weights(options.out, training.weights)}")


if __name__ == "__main__":
    main(sys.argv[1:])
