"""What the agent tells a job through its environment, parsed once."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Mapping, Optional

_UNITS = {"epoch": "epoch", "step": "step", "minute": "minutes"}


@dataclasses.dataclass(frozen=True)
class Resume:
    """The checkpoint that this attempt goes on from."""

    name: str  #: as the snapshot is called: "epoch-15"
    epoch: Optional[int]  #: the last finished epoch, counted from 1
    step: Optional[int]


@dataclasses.dataclass(frozen=True)
class Every:
    """A job's `checkpoint_every`."""

    unit: str  #: "epoch", "step" or "minutes"
    count: int  #: at least 1


@dataclasses.dataclass(frozen=True)
class Environment:
    """Every field is None (or 0, for skip_batches) outside Zed."""

    job: Optional[str] = None
    job_dir: Optional[Path] = None
    model_dir: Optional[Path] = None
    data_dir: Optional[Path] = None
    attempt: Optional[int] = None
    generation: Optional[str] = None
    resume: Optional[Resume] = None
    every: Optional[Every] = None
    socket: Optional[str] = None
    skip_batches: int = 0


def read(environ: Mapping[str, str]) -> Environment:
    """Without ZED_SOCKET this process is outside Zed, whatever else is set. A value that makes no
    sense counts as absent: a job must not die of a typo in its surroundings."""
    if not environ.get("ZED_SOCKET"):
        return Environment()
    return Environment(
        job=environ.get("ZED_JOB") or None,
        job_dir=_folder(environ.get("ZED_JOB_DIR")),
        model_dir=_folder(environ.get("ZED_MODEL_DIR")),
        data_dir=_folder(environ.get("ZED_DATA_DIR")),
        attempt=_natural(environ.get("ZED_ATTEMPT")),
        generation=environ.get("ZED_GENERATION", ""),
        resume=_resume(environ),
        every=parse_every(environ.get("ZED_CHECKPOINT_EVERY", "")),
        socket=environ["ZED_SOCKET"],
        skip_batches=_natural(environ.get("ZED_SKIP_BATCHES")) or 0,
    )


def parse_every(text: str) -> Optional[Every]:
    """ "1 epoch", "500 steps", "10 minutes"; None for anything else."""
    match = re.fullmatch(r"\s*([0-9]{1,9})\s+(epoch|step|minute)s?\s*", text, re.ASCII)
    if match is None or int(match.group(1)) == 0:
        return None
    return Every(_UNITS[match.group(2)], int(match.group(1)))


def _resume(environ: Mapping[str, str]) -> Optional[Resume]:
    name = environ.get("ZED_CHECKPOINT")
    if not name:
        return None
    return Resume(
        name.lstrip("@"),
        _natural(environ.get("ZED_CHECKPOINT_EPOCH")),
        _natural(environ.get("ZED_CHECKPOINT_STEP")),
    )


def _folder(text: Optional[str]) -> Optional[Path]:
    return Path(os.path.abspath(text)) if text else None


def _natural(text: Optional[str]) -> Optional[int]:
    if not text or re.fullmatch(r"[0-9]{1,18}", text, re.ASCII) is None:
        return None
    return int(text)
