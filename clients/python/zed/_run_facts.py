"""What `zedctl diff` compares besides files: parameters, packages, interpreter. In `metrics/run.json`
of the job, so that each checkpoint has those of its own run."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any, Dict, Mapping

from ._files import atomic_write

FILE = "run.json"
_MOST_PACKAGES = 2000
_LONGEST_TEXT = 1000


def plain(value: Any) -> Any:
    """A parameter as JSON has it; anything that is no plain value as its text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    return str(value)[:_LONGEST_TEXT]


def collect(parameters: Mapping[str, Any]) -> Dict[str, Any]:
    packages: Dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        if name and len(packages) < _MOST_PACKAGES:
            packages[str(name).lower()] = str(distribution.version)
    return {
        "python": platform.python_version(),
        "argv": list(sys.argv),
        "parameters": {str(name): plain(value) for name, value in sorted(parameters.items())},
        "packages": dict(sorted(packages.items())),
    }


def write(folder: Path, parameters: Mapping[str, Any]) -> None:
    """Raises OSError. Nothing is written if it is there as it is."""
    text = json.dumps(collect(parameters), indent=1, ensure_ascii=False)
    path = folder / FILE
    try:
        if path.read_text(encoding="utf-8") == text:
            return
    except (OSError, UnicodeDecodeError):
        pass
    os.makedirs(folder, exist_ok=True)
    with atomic_write(path, "w") as file:
        file.write(text)
