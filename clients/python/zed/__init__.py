"""Checkpoints, metrics and resuming for a training job on a Zed fleet.

    import zed

    for epoch in zed.epochs(50, save=write_checkpoint):
        loss = train_one_epoch()
        zed.log(step=epoch * 1000, loss=loss)

Outside Zed all of it does nothing and the loop just counts. Inside, no call waits longer than its
time-out, and none raises because the agent is away: training goes on. See README.md.
"""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Optional

from ._agent import Checkpoint
from ._client import DEFAULT_TIMEOUT, Paths, Save
from ._client import Client as _Job
from ._environment import Resume
from ._files import atomic_write
from ._metrics import read_metrics
from .fleet import Client as Client
from .fleet import FleetError as FleetError

__version__ = "0.1.0"
__all__ = [
    "Checkpoint", "Client", "FleetError", "Resume", "atomic_write", "attempt", "checkpoint", "committed",
    "data_dir", "due", "epochs", "generation", "job", "job_dir", "leave", "log", "model_dir", "parameters",
    "read_metrics", "resume", "should_checkpoint", "should_stop", "skip_batches", "step", "steps", "stopped",
]  # fmt: skip

if TYPE_CHECKING:  # served by __getattr__ below
    job: Optional[str]  #: the job's name
    job_dir: Optional[Path]  #: the job's folder: what lies below it is in every checkpoint
    model_dir: Optional[Path]  #: the model, read-only
    data_dir: Optional[Path]  #: the input data, read-only
    attempt: Optional[int]  #: counts the starts of this job from 1
    generation: Optional[str]
    resume: Optional[Resume]  #: the checkpoint to go on from; None for a job that begins
    skip_batches: int  #: after a rollback: leave out so many batches, 0 if none
    should_stop: bool  #: the agent has asked this job to checkpoint and end
    should_checkpoint: bool  #: the agent waits for a checkpoint (before a stop, or just so)
    stopped: bool  #: the loop ended early because of a stop: work remains for the next attempt
    committed: Optional[Checkpoint]  #: the newest checkpoint that this process committed

_ENVIRONMENT = frozenset({"job", "job_dir", "model_dir", "data_dir", "attempt", "generation", "resume", "skip_batches"})
_STATE = frozenset({"should_stop", "should_checkpoint", "stopped", "committed"})

_client = _Job(os.environ)
atexit.register(lambda: _client.close())


def epochs(
    total: int, *, save: Optional[Save] = None, start: Optional[int] = None, timeout: float = DEFAULT_TIMEOUT
) -> Iterator[int]:
    """The epochs still to do, up to and including `total`; the first of all is 1.

    `save(name)`, if given, writes a checkpoint under that new name and returns its path or paths.
    It is called after an epoch when the job's `checkpoint_every` says so or the agent asks, and the
    checkpoint carries the last logged value of each metric. `timeout` (seconds) bounds each commit.
    Without `save`, call `checkpoint` yourself. After the agent asks for a stop the loop ends as soon
    as a checkpoint is committed; `stopped` is True then. `start` overrides where to begin, for
    scripts that resume inside an epoch.
    """
    return _client.loop("epoch", total, save, start, timeout)


def steps(
    total: int, *, save: Optional[Save] = None, start: Optional[int] = None, timeout: float = DEFAULT_TIMEOUT
) -> Iterator[int]:
    """Like `epochs`, for a loop that counts training steps."""
    return _client.loop("step", total, save, start, timeout)


def step(number: int) -> Optional[Checkpoint]:
    """Inside an `epochs` loop: training step `number`, counted over the whole run, is done.

    Commits with the loop's `save` when `checkpoint_every` in steps is due or the agent asks. Call it
    only if what `save` writes can be resumed from in the middle of an epoch.
    """
    return _client.finished("step", number)


def checkpoint(
    *,
    epoch: Optional[int] = None,
    step: Optional[int] = None,
    paths: Paths = (),
    timeout: float = DEFAULT_TIMEOUT,
    **metrics: Any,
) -> Optional[Checkpoint]:
    """Commits the job's folder as a checkpoint; `paths` (files or folders there) must exist.

    Returns None if that failed: a warning says why, once, and training goes on. Delete older files
    only after a Checkpoint came back, and never change a written one in place. Waits at most
    `timeout` seconds.
    """
    return _client.checkpoint(epoch, step, paths, timeout, metrics)


def log(*, step: Optional[int] = None, epoch: Optional[int] = None, **metrics: Any) -> None:
    """Appends numbers to the job's metrics; they are on disk within a second."""
    _client.log(step, epoch, metrics)


def due(*, epoch: Optional[int] = None, step: Optional[int] = None) -> bool:
    """For loops and frameworks of their own: whether `checkpoint_every` wants a checkpoint after this
    finished epoch or step, or the agent waits for one. False outside Zed."""
    return _client.due(epoch, step)


def parameters(**values: Any) -> None:
    """Notes what this run was made with (`lr=0.1`): `zedctl diff` compares it. Each checkpoint after
    the call has it."""
    _client.parameters(values)


def leave() -> None:
    """For loops of your own: tells the agent that this job ends here because of its stop, with work
    remaining. Call it after the last checkpoint, then exit."""
    _client.leave()


def __getattr__(name: str) -> Any:
    if name in _ENVIRONMENT:
        return getattr(_client.environment, name)
    if name in _STATE:
        return getattr(_client, name)
    raise AttributeError(f"module 'zed' has no attribute {name!r}")


def _start_afresh_in_child() -> None:
    global _client
    _client.abandon()
    _client = _Job(os.environ)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh_in_child)
