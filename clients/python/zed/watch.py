"""Checkpoints of scripts that know nothing of Zed.

    python3 -m zed.watch -- python3 their_train.py

runs the script and looks below the job's folder for the marks with which frameworks end a checkpoint;
one that has been quiet for a few seconds is committed. It cannot make a script write a checkpoint: a
stop passes SIGTERM on, and what was committed last is what the next attempt goes on from.

| mark | of |
|---|---|
| `checkpoint-N/trainer_state.json` | Hugging Face Trainer |
| `.metadata` beside `*.distcp` | torch.distributed.checkpoint |
| `commit_success.txt`, `_CHECKPOINT_METADATA` | Orbax |
| `latest_checkpointed_iteration.txt` | Megatron-LM, which names the folder `iter_N` |
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

import zed

from ._files import sync_tree

#: So long nothing below a checkpoint may change before it counts as written.
QUIET_SECONDS = 5.0
_LOOK_SECONDS = 1.0
_DEEPEST = 5
_MOST_ENTRIES = 20_000
_SKIPPED = frozenset({".zed", "metrics", ".git"})


@dataclasses.dataclass(frozen=True)
class Found:
    """A checkpoint on disk, whole as far as its framework says."""

    path: str  #: the folder, absolute
    step: Optional[int]
    epoch: Optional[int] = None
    metrics: Tuple[Tuple[str, float], ...] = ()


class Watcher:
    """Looks when it is told to; time is an argument. What was there before is not taken for new."""

    def __init__(self, folder: Path, now: float, quiet: float = QUIET_SECONDS) -> None:
        self._folder = folder
        self._quiet = quiet
        self._done: Dict[str, float] = {found.path: _newest(found.path) for found in _find(folder)}
        self._seen: Dict[str, Tuple[float, float]] = {}  # path -> newest time stamp, since when

    def tick(self, now: float) -> List[Found]:
        """Those that have become whole and quiet, oldest step first. Each is given once, and again
        only if it is written again."""
        ready = []
        for found in _find(self._folder):
            stamp = _newest(found.path)
            if self._done.get(found.path) == stamp:
                continue
            known = self._seen.get(found.path)
            if known is None or known[0] != stamp:
                self._seen[found.path] = (stamp, now)
            elif now - known[1] >= self._quiet:
                self._done[found.path] = stamp
                del self._seen[found.path]
                ready.append(found)
        return sorted(ready, key=lambda found: (found.step or 0, found.path))


def _find(folder: Path) -> Iterator[Found]:
    left = [_MOST_ENTRIES]
    for directory, names in _folders(folder, 0, left):
        path = str(directory)
        if "trainer_state.json" in names and re.fullmatch(r"checkpoint-[0-9]+", directory.name):
            state = _hugging_face(directory)
            if state is not None:
                yield state
        elif ".metadata" in names and any(name.endswith(".distcp") for name in names):
            yield Found(path, _number_in(directory.name))
        elif "commit_success.txt" in names or "_CHECKPOINT_METADATA" in names:
            yield Found(path, _number_in(directory.name))
        elif "latest_checkpointed_iteration.txt" in names:
            megatron = _megatron(directory)
            if megatron is not None:
                yield megatron


def _folders(folder: Path, depth: int, left: List[int]) -> Iterator[Tuple[Path, List[str]]]:
    """Each folder with its names; bounded, and never through a symlink."""
    names = []
    inner = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                left[0] -= 1
                if left[0] < 0:
                    return
                names.append(entry.name)
                if entry.is_dir(follow_symlinks=False) and entry.name not in _SKIPPED:
                    inner.append(Path(entry.path))
    except OSError:
        return  # gone while we looked
    yield folder, names
    if depth < _DEEPEST:
        for one in sorted(inner):
            yield from _folders(one, depth + 1, left)


def _hugging_face(folder: Path) -> Optional[Found]:
    try:
        state = json.loads((folder / "trainer_state.json").read_text())
        step = int(state["global_step"])
        epoch = state.get("epoch")
        metrics: Dict[str, float] = {}
        for entry in state.get("log_history", []):
            metrics.update({k: float(v) for k, v in entry.items() if isinstance(v, (int, float))})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # not written to its end yet
    kept = tuple((name, value) for name, value in sorted(metrics.items()) if name not in ("epoch", "step"))
    return Found(str(folder), step, int(epoch + 1e-6) if epoch is not None else None, kept)


def _megatron(folder: Path) -> Optional[Found]:
    try:
        text = (folder / "latest_checkpointed_iteration.txt").read_text().strip()
    except OSError:
        return None
    if not re.fullmatch(r"[0-9]{1,9}", text):
        return None
    checkpoint = folder / f"iter_{int(text):07d}"
    return Found(str(checkpoint), int(text)) if checkpoint.is_dir() else None


def _number_in(name: str) -> Optional[int]:
    numbers = re.findall(r"[0-9]{1,15}", name)
    return int(numbers[-1]) if numbers else None


def _newest(path: str) -> float:
    """The latest change of anything in the folder."""
    newest = 0.0
    for folder, _, names in os.walk(path):
        for name in [*names, "."]:
            try:
                newest = max(newest, os.lstat(os.path.join(folder, name)).st_mtime)
            except OSError:
                newest = max(newest, time.time())  # it changes right now
    return newest


def commit(found: Found) -> bool:
    """Whether the agent took it."""
    sync_tree(found.path)
    metrics = dict(found.metrics)
    return zed.checkpoint(step=found.step, epoch=found.epoch, paths=[found.path], **metrics) is not None


def run(argv: List[str], quiet: float = QUIET_SECONDS) -> int:
    """Runs the command; its exit status, as a shell gives it."""
    folder = zed.job_dir
    if folder is None:
        return subprocess.call(argv)
    watcher = Watcher(folder, time.monotonic(), quiet)
    child = subprocess.Popen(argv)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: child.send_signal(received))
    told = False
    while True:
        try:
            status = child.wait(_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            status = None
        for found in watcher.tick(time.monotonic()):
            commit(found)
        if zed.should_stop and not told and status is None:
            told = True
            child.send_signal(signal.SIGTERM)
        if status is not None:
            break
    # Nothing writes any more: what is whole needs no quiet time.
    for later in (2 * quiet, 4 * quiet):
        for found in watcher.tick(time.monotonic() + later):
            commit(found)
    if told:
        zed.leave()
        return 0
    return status if status >= 0 else 128 - status


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m zed.watch", description="Commits a script's own checkpoints.")
    parser.add_argument("--quiet", type=float, default=QUIET_SECONDS, metavar="SECONDS", help="without changes (5)")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        parser.error("name the command: python3 -m zed.watch -- python3 train.py")
    return run(command, arguments.quiet)


if __name__ == "__main__":
    sys.exit(main())
