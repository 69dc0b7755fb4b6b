"""PyTorch Lightning on Zed.

    from zed.lightning import ZedCallback, ZedLogger, resume_path

    trainer = Trainer(callbacks=[ZedCallback()], logger=ZedLogger(), enable_checkpointing=False, ...)
    trainer.fit(model, ckpt_path=resume_path())

ZedCallback writes and commits checkpoints when the job's `checkpoint_every` or the agent wants one.
ZedLogger logs, and commits what a ModelCheckpoint of yours has written: Lightning calls
`after_save_checkpoint` after the write (`on_save_checkpoint` comes before it).
"""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional

import zed

from ._files import sync_folder, sync_tree
from ._hooks import job_folder, newest_file, numbers_in


def _lightning(module: str, name: str, otherwise: type) -> type:
    """Of `lightning`, or of the older `pytorch_lightning`; a plain class if neither is there."""
    for package in ("lightning.pytorch", "pytorch_lightning"):
        try:
            found = getattr(__import__(f"{package}.{module}", fromlist=[name]), name)
        except (ImportError, AttributeError):
            continue
        if isinstance(found, type):
            return found
    return otherwise


class _Plain:
    pass


_Callback: Any = _lightning("callbacks", "Callback", _Plain)
_Logger: Any = _lightning("loggers", "Logger", _Plain)

__all__ = ["ZedCallback", "ZedLogger", "resume_path"]


def resume_path(folder: str = "ckpt") -> Optional[str]:
    """What ZedCallback wrote last there, for `fit(ckpt_path=…)`; None at a beginning."""
    return newest_file(folder, r"step-([0-9]+)\.ckpt")


class ZedCallback(_Callback):  # type: ignore[misc]
    def __init__(self, folder: str = "ckpt", timeout: float = 30.0) -> None:
        super().__init__()
        self._folder_name = folder
        self._timeout = timeout
        self._saved_step: Optional[int] = None
        self._leaving = False

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any, **__: Any) -> None:
        if zed.due(step=trainer.global_step):
            self._save(trainer, None)

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        epoch = trainer.current_epoch + 1
        if zed.due(epoch=epoch):
            self._save(trainer, epoch)

    def on_train_end(self, trainer: Any, module: Any) -> None:
        if self._leaving and trainer.is_global_zero:
            zed.leave()

    def _save(self, trainer: Any, epoch: Optional[int]) -> None:
        step = int(trainer.global_step)
        if step != self._saved_step:
            self._saved_step = step
            path = job_folder(self._folder_name) / f"step-{step}.ckpt"
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(path.name + ".zed-tmp")
            trainer.save_checkpoint(str(temporary))  # on all processes: it may gather shards
            if trainer.is_global_zero:
                sync_tree(str(temporary))
                os.replace(temporary, path)
                sync_folder(str(path.parent))
                metrics = numbers_in(trainer.callback_metrics)
                zed.checkpoint(step=step, epoch=epoch, paths=[str(path)], timeout=self._timeout, **metrics)
        if zed.should_stop:
            trainer.should_stop = True
            self._leaving = True


class ZedLogger(_Logger):  # type: ignore[misc]
    def __init__(self, timeout: float = 30.0) -> None:
        super().__init__()
        self._timeout = timeout
        self._committed: Optional[str] = None
        self._latest: Dict[str, float] = {}

    @property
    def name(self) -> str:
        return zed.job or "zed"

    @property
    def version(self) -> Any:
        return zed.attempt or 0

    def log_hyperparams(self, params: Any, *_: Any, **__: Any) -> None:
        values = params if isinstance(params, Mapping) else vars(params)
        zed.parameters(**{str(name): value for name, value in values.items()})

    def log_metrics(self, metrics: Mapping[str, Any], step: Optional[int] = None) -> None:
        numbers = numbers_in(metrics)
        self._latest.update(numbers)
        zed.log(step=step, **numbers)

    def after_save_checkpoint(self, checkpoint_callback: Any) -> None:
        path = checkpoint_callback.last_model_path or checkpoint_callback.best_model_path
        if not path or path == self._committed:
            return
        self._committed = path
        sync_tree(path)
        sync_folder(os.path.dirname(os.path.abspath(path)))
        step = getattr(checkpoint_callback, "_last_global_step_saved", None)
        zed.checkpoint(step=step, paths=[os.path.abspath(path)], timeout=self._timeout, **self._latest)
