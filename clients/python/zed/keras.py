"""Keras on Zed.

    from zed.keras import ZedCallback, resume_path

    path = resume_path()
    model = keras.models.load_model(path) if path else build()
    model.fit(..., initial_epoch=zed.resume.epoch if zed.resume else 0, callbacks=[ZedCallback()])
"""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional

import zed

from ._files import sync_folder, sync_tree
from ._hooks import job_folder, newest_file, numbers_in

try:
    from keras.callbacks import Callback  # type: ignore[import-not-found,unused-ignore]
except ImportError:

    class Callback:  # type: ignore[no-redef]
        def set_model(self, model: Any) -> None:
            self.model = model


__all__ = ["ZedCallback", "resume_path"]


def resume_path(folder: str = "ckpt") -> Optional[str]:
    """What ZedCallback wrote last there, for `keras.models.load_model`; None at a beginning."""
    return newest_file(folder, r"epoch-([0-9]+)\.keras")


class ZedCallback(Callback):  # type: ignore[misc]
    """Logs, commits whole models (optimizer included) after an epoch when one is due, and ends the
    training early after a stop."""

    def __init__(self, folder: str = "ckpt", timeout: float = 30.0) -> None:
        super().__init__()
        self._folder_name = folder
        self._timeout = timeout
        self._leaving = False
        self._saved = False

    def on_epoch_end(self, epoch: int, logs: Optional[Mapping[str, Any]] = None) -> None:
        number = epoch + 1  # Keras counts from 0
        metrics = numbers_in(logs or {})
        zed.log(step=number, epoch=number, **metrics)
        if zed.due(epoch=number):
            self._save(number, metrics)
        if zed.should_stop:
            if not self._saved:
                self._save(number, metrics)
            self.model.stop_training = True
            self._leaving = number < int((getattr(self, "params", None) or {}).get("epochs", number + 1))

    def on_train_end(self, logs: Optional[Mapping[str, Any]] = None) -> None:
        if self._leaving:
            zed.leave()

    def on_epoch_begin(self, epoch: int, logs: Optional[Mapping[str, Any]] = None) -> None:
        self._saved = False

    def _save(self, epoch: int, metrics: Dict[str, float]) -> None:
        self._saved = True
        path = job_folder(self._folder_name) / f"epoch-{epoch}.keras"
        path.parent.mkdir(parents=True, exist_ok=True)
        # Keras goes by the ending, so the temporary name has it too.
        temporary = path.with_name(f".writing-{path.name}")
        self.model.save(str(temporary))
        sync_tree(str(temporary))
        os.replace(temporary, path)
        sync_folder(str(path.parent))
        zed.checkpoint(epoch=epoch, paths=[str(path)], timeout=self._timeout, **metrics)
