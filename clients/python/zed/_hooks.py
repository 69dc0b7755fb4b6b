"""What the hooks of the training frameworks share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

import zed


def job_folder(name: str) -> Path:
    """The folder `name` of the job; outside Zed that of the working directory."""
    return zed.job_dir / name if zed.job_dir is not None else Path(name)


def newest_file(folder: str, pattern: str) -> Optional[str]:
    """The file in the job's `folder` whose name matches `pattern` with the highest number, its first
    group; None if there is none."""
    found = {}
    root = job_folder(folder)
    if root.is_dir():
        for entry in root.iterdir():
            match = re.fullmatch(pattern, entry.name)
            if match:
                found[int(match.group(1))] = str(entry)
    return found[max(found)] if found else None


def numbers_in(metrics: Mapping[str, Any]) -> Dict[str, float]:
    """The metrics that are numbers, without `step` and `epoch`, which are told on their own."""
    numbers = {}
    for name, value in metrics.items():
        try:
            numbers[name] = float(value)
        except (TypeError, ValueError):
            continue
    return {name: value for name, value in numbers.items() if name not in ("step", "epoch")}
