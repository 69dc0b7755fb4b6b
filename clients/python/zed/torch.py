"""The state of a PyTorch training, in one file: see zed.state.

    zed.torch.save_state(f"ckpt/{name}.pt", model=model, optimizer=optimizer, scheduler=scheduler, epoch=epoch)
    found = zed.torch.load_state(path, model=model, optimizer=optimizer, scheduler=scheduler)
"""

from __future__ import annotations

import sys
from typing import Any, Dict

from . import state
from .state import PathArgument, ShuffledBatches

__all__ = ["ShuffledBatches", "load_state", "save_state"]


def _torch() -> Any:
    if "torch" not in sys.modules:
        __import__("torch")
    return sys.modules["torch"]


def save_state(path: PathArgument, **parts: Any) -> str:
    """As zed.state.save_state, by torch.save."""
    return state.save_state(path, dump=_torch().save, **parts)


def load_state(path: PathArgument, **parts: Any) -> Dict[str, Any]:
    """As zed.state.load_state, by torch.load onto the CPU: load_state_dict moves what belongs
    elsewhere."""

    def load(file: Any) -> Any:
        torch = _torch()
        try:  # newer releases refuse Python's and NumPy's generator states unless told
            return torch.load(file, map_location="cpu", weights_only=False)
        except TypeError:
            file.seek(0)
            return torch.load(file, map_location="cpu")

    return state.load_state(path, load=load, **parts)
