"""Everything the next epoch depends on, in one file: weights, optimizer, schedule, random generators,
and the place in the data.

    batches = zed.state.ShuffledBatches(len(data), 32, seed=1)
    zed.state.save_state(path, model=model, optimizer=optimizer, batches=batches, epoch=epoch)
    ...
    found = zed.state.load_state(path, model=model, optimizer=optimizer, batches=batches)
    found["epoch"]

`zed.torch` is the same with PyTorch's own file format and generators. Here pickle is used: load only
what you wrote yourself, which is what a job's own checkpoint is.
"""

from __future__ import annotations

import os
import pickle
import random
import sys
from typing import Any, Callable, Dict, Iterator, List, Union

from ._files import atomic_write

PathArgument = Union[str, "os.PathLike[str]"]

_FORMAT = 1


def save_state(path: PathArgument, *, dump: Callable[[Any, Any], None] = pickle.dump, **parts: Any) -> str:
    """Writes `parts` and the state of all random generators to `path`, durably, whole or not at all.

    A part with `state_dict()` is saved by it; anything else as it is. `path` must be a new name for
    each checkpoint. Returns it as text, for `zed.checkpoint(paths=[…])`.
    """
    objects = [name for name, part in parts.items() if hasattr(part, "state_dict")]
    saved = {name: part.state_dict() if name in objects else part for name, part in parts.items()}
    target = os.fspath(path)
    folder = os.path.dirname(os.path.abspath(target))
    os.makedirs(folder, exist_ok=True)
    with atomic_write(target) as file:
        dump({"format": _FORMAT, "parts": saved, "objects": objects, "random": random_state()}, file)
    return target


def load_state(path: PathArgument, *, load: Callable[[Any], Any] = pickle.load, **parts: Any) -> Dict[str, Any]:
    """Puts everything back: each of `parts` by its `load_state_dict`, the random generators last, so
    that nothing that is made on the way moves them. Returns the plain values that were saved.

    ValueError if the file lacks a part, or has one that is not asked for: a resume that forgets its
    scheduler is found out here and not in the loss curve.
    """
    with open(path, "rb") as file:
        content = load(file)
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ValueError(f"{os.fspath(path)} was not written by zed's save_state")
    saved = content["parts"]
    for name, part in parts.items():
        if name not in saved:
            raise ValueError(f"{os.fspath(path)} has no {name}; it has {', '.join(sorted(saved))}")
        part.load_state_dict(saved[name])
    left = sorted(set(content["objects"]) - set(parts))
    if left:
        raise ValueError(f"{os.fspath(path)} has {', '.join(left)} too: pass the objects that they belong to")
    restore_random_state(content["random"])
    return {name: value for name, value in saved.items() if name not in parts}


def random_state() -> Dict[str, Any]:
    """Of Python's generator, and of NumPy's and PyTorch's (all devices) where they are in use."""
    state: Dict[str, Any] = {"python": random.getstate()}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        state["numpy"] = numpy.random.get_state()
    torch = sys.modules.get("torch")
    if torch is not None:
        state["torch"] = torch.get_rng_state()
        if torch.cuda.is_available():
            state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def restore_random_state(state: Dict[str, Any]) -> None:
    """What random_state() gave. Generators of a library that is not in use now are left out."""
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in state:
        numpy.random.set_state(state["numpy"])
    torch = sys.modules.get("torch")
    if torch is None:
        return
    if "torch" in state:
        torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available() and len(state["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(state["cuda"])


class ShuffledBatches:
    """Indices of a data set in an order that depends on seed and epoch alone, with a place that can
    be saved: a `batch_sampler` for PyTorch's DataLoader, or to iterate over as it is.

    Iterating gives the batches of the current epoch that are left; after the last one the next epoch
    begins. With workers that fetch ahead the place is the sampler's, so save it between epochs, or
    use `skip` with the number of batches that were trained on.
    """

    def __init__(self, size: int, batch: int, seed: int = 0, drop_last: bool = False) -> None:
        if size < 1 or batch < 1:
            raise ValueError("a data set has 1 element or more, and so has a batch")
        self.size = size
        self.batch = batch
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0  #: of the data, from 0
        self.done = 0  #: batches of it that were given out

    def __len__(self) -> int:
        """Batches of one whole epoch."""
        return self.size // self.batch if self.drop_last else -(-self.size // self.batch)

    def __iter__(self) -> Iterator[List[int]]:
        order = list(range(self.size))
        random.Random(f"{self.seed}/{self.epoch}").shuffle(order)
        while self.done < len(self):
            begin = self.done * self.batch
            self.done += 1
            yield order[begin : begin + self.batch]
        self.epoch += 1
        self.done = 0

    def skip(self, batches: int) -> None:
        """Leaves so many out, over the ends of epochs: `zed.skip_batches` after a rollback."""
        total = self.epoch * len(self) + self.done + batches
        self.epoch, self.done = divmod(total, len(self))

    def state_dict(self) -> Dict[str, int]:
        return {"size": self.size, "batch": self.batch, "seed": self.seed, "epoch": self.epoch, "done": self.done}

    def load_state_dict(self, state: Dict[str, int]) -> None:
        for name in ("size", "batch", "seed"):
            if state[name] != getattr(self, name):
                raise ValueError(f"the saved place is of data with {name} {state[name]}, not {getattr(self, name)}")
        self.epoch, self.done = state["epoch"], state["done"]
