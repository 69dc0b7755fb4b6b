"""Hugging Face Trainer on Zed: its checkpoints become Zed's, its logs Zed's metrics, and a stop or a
drain ends the training after a checkpoint.

    from zed.huggingface import ZedCallback, resume_path

    args = TrainingArguments(output_dir=zed.huggingface.output_dir("run"), save_strategy="epoch", ...)
    trainer = Trainer(..., args=args, callbacks=[ZedCallback()])
    trainer.train(resume_from_checkpoint=resume_path(args.output_dir))

The Trainer calls `on_save` after `trainer_state.json`, the last file of a checkpoint, is written; it
fsyncs nothing, so that is done here before the agent is asked.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

import zed

from ._files import sync_tree

try:
    from transformers import TrainerCallback  # type: ignore[import-not-found,unused-ignore]
except ImportError:  # the class can be made, and tested, without it

    class TrainerCallback:  # type: ignore[no-redef]
        pass


__all__ = ["ZedCallback", "output_dir", "resume_path"]


def output_dir(name: str = "run") -> str:
    """A folder below the job's, so that checkpoints have it; outside Zed just `name`."""
    return str(zed.job_dir / name) if zed.job_dir is not None else name


def resume_path(folder: Union[str, "os.PathLike[str]"]) -> Optional[str]:
    """The newest whole checkpoint-N there, for `train(resume_from_checkpoint=…)`; None if none is."""
    found: List[int] = []
    root = Path(folder)
    if root.is_dir():
        for entry in root.iterdir():
            match = re.fullmatch(r"checkpoint-([0-9]+)", entry.name)
            if match and _is_whole(entry):
                found.append(int(match.group(1)))
    return str(root / f"checkpoint-{max(found)}") if found else None


def _is_whole(checkpoint: Path) -> bool:
    try:
        return isinstance(json.loads((checkpoint / "trainer_state.json").read_text()), dict)
    except (OSError, ValueError):
        return False


class ZedCallback(TrainerCallback):
    """Harmless outside Zed, and on all processes but the first of the world."""

    def __init__(self, timeout: float = 30.0) -> None:
        self._timeout = timeout
        self._latest: Dict[str, Any] = {}
        self._leaving = False

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Dict[str, Any]] = None, **_: Any) -> Any:
        if state.is_world_process_zero and logs:
            numbers = {name: value for name, value in logs.items() if _is_number(value) and name != "epoch"}
            self._latest.update(numbers)
            zed.log(step=state.global_step, **numbers)
        return control

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        if zed.due(step=state.global_step):
            control.should_save = True
        return control

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        if zed.due(epoch=_whole_epochs(state)):
            control.should_save = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        if state.is_world_process_zero:
            folder = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
            sync_tree(folder)
            metrics = {name: value for name, value in self._latest.items() if name not in ("step", "epoch")}
            zed.checkpoint(
                step=state.global_step,
                epoch=_whole_epochs(state),
                paths=[os.path.abspath(folder)],
                timeout=self._timeout,
                **metrics,
            )
        if zed.should_stop:
            control.should_training_stop = True
            self._leaving = state.global_step < state.max_steps
        return control

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        if self._leaving and state.is_world_process_zero:
            zed.leave()
        return control


def _whole_epochs(state: Any) -> Optional[int]:
    return int(state.epoch + 1e-6) if state.epoch is not None else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
