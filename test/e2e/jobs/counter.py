"""A small training run: counts epochs, commits each, and can prove that it went on where it left off.

Its state is a digest over all epochs, so a run that lost or repeated one ends with another number.
"""

import argparse
import hashlib
import os
import sys
import time
from pathlib import Path

import zed


def digest_after(epochs):
    """What an undisturbed run ends with."""
    state = "start"
    for epoch in range(1, epochs + 1):
        state = next_state(state, epoch)
    return state


def next_state(state, epoch):
    return hashlib.sha256(f"{state} {epoch}".encode()).hexdigest()


def options_of(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--allow", type=Path, required=True, help="file with the highest epoch that may begin")
    parser.add_argument("--first-ballast", type=int, default=0, help="bytes of noise that the first epoch leaves")
    parser.add_argument("--timeout", type=float, default=30, help="seconds that a checkpoint may take")
    return parser.parse_args(arguments)


def allowed(options):
    return int(options.allow.read_text())


def wait_for_permission(options, epoch):
    """False if the job is to stop instead."""
    while allowed(options) < epoch:
        if zed.should_stop:
            return False
        time.sleep(0.02)
    return True


def write(path, data):
    with zed.atomic_write(path) as file:
        file.write(data)


def main():
    options = options_of(sys.argv[1:])
    folder = Path("ckpt")
    folder.mkdir(exist_ok=True)
    state = "start"
    if zed.resume is not None:
        state = (folder / f"epoch-{zed.resume.epoch}").read_text()
    print(f"attempt {os.environ.get('ZED_ATTEMPT')} from {os.environ.get('ZED_CHECKPOINT') or 'start'}", flush=True)
    for epoch in zed.epochs(options.epochs):
        if not wait_for_permission(options, epoch):
            zed.leave()
            return
        state = next_state(state, epoch)
        path = folder / f"epoch-{epoch}"
        write(path, state.encode())
        if epoch == 1 and options.first_ballast:
            write(folder / "noise", os.urandom(options.first_ballast))
        zed.log(step=epoch, loss=1 / epoch)
        done = zed.checkpoint(epoch=epoch, loss=1 / epoch, paths=[path], timeout=options.timeout)
        print(f"epoch {epoch} {done.snapshot if done else 'not committed'}", flush=True)
    if not zed.stopped:
        Path("final").write_text(state)
        print("finished", flush=True)


if __name__ == "__main__":
    main()
