"""The client of one process: what the functions of the package do, with the state they share."""

from __future__ import annotations

import contextlib
import operator
import os
import re
import sys
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Set, Union

from . import _clock, _environment, _run_facts
from ._agent import Agent, Checkpoint, Refused, Wish
from ._metrics import MetricsFile
from ._values import Number, to_numbers

PathArgument = Union[str, "os.PathLike[str]"]
Paths = Union[PathArgument, Iterable[PathArgument], None]
#: Writes a checkpoint under the given name ("epoch-15") and returns its path or paths.
Save = Callable[[str], Paths]

DEFAULT_TIMEOUT = 30.0
#: The metrics file uses these names itself.
_RESERVED = frozenset({"s", "t"})
#: Kinds of trouble that are told; a script that makes up new ones at each step is not followed.
_MOST_WARNINGS = 64
#: The same refusal of another epoch's file is not another kind.
_NUMBERS = re.compile(r"[0-9]+")
#: Troubles that a committed checkpoint shows to be over.
_PASSING = frozenset({"timeout", "unavailable", "no_space", "busy", "io"})


class Client:
    """All methods are safe from several threads, and harmless outside Zed."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environment = _environment.read(environ)
        self.stopped = False
        self.committed: Optional[Checkpoint] = None
        self._warned: Set[str] = set()
        self._save: Optional[Save] = None
        self._save_timeout = DEFAULT_TIMEOUT
        self._explicit = False  # this script calls checkpoint() itself
        self._stop_served = False  # a checkpoint was committed after the stop ask
        self._latest: Dict[str, Number] = {}  # last logged value of each metric
        self._step: Optional[int] = None  # the last one heard of
        self._parameters: Dict[str, Any] = {}
        self._facts_are_new = True  # run.json is not written yet, or lacks parameters
        resume = self.environment.resume
        #: The newest committed epoch and step, of earlier attempts too.
        self._saved: Dict[str, Optional[int]] = {
            "epoch": resume.epoch if resume else None,
            "step": resume.step if resume else None,
        }
        self._agent: Optional[Agent] = None
        self._metrics: Optional[MetricsFile] = None
        if self.environment.socket:
            self._agent = Agent(self.environment, self._warn)
        if self.environment.job_dir:
            self._metrics = MetricsFile(self.environment.job_dir / "metrics", self._warn)

    # -- loops ---------------------------------------------------------------------------------

    def loop(
        self, unit: str, total: int, save: Optional[Save], start: Optional[int], timeout: float
    ) -> Iterator[int]:
        """`unit` is "epoch" or "step". Not itself a generator: wrong arguments are reported here,
        not at the first turn."""
        last = operator.index(total)
        first = self._first(unit) if start is None else operator.index(start)
        if save is not None:
            self._save, self._save_timeout = save, timeout
        self._poll()
        return self._turns(unit, first, last)

    def _turns(self, unit: str, first: int, last: int) -> Iterator[int]:
        for number in range(first, last + 1):
            yield number
            self.finished(unit, number)
            if number < last and self._may_leave(unit, number):
                self.leave()
                return

    def _first(self, unit: str) -> int:
        resume = self.environment.resume
        if resume is None:
            return 1
        done = self._saved[unit]
        if done is None:
            self._warn(
                "start",
                f"checkpoint {resume.name} names no {unit}, so this loop begins at 1;"
                f" pass start= with the {unit} that your saved state goes on with",
            )
            return 1
        return done + 1

    def finished(self, unit: str, number: int) -> Optional[Checkpoint]:
        """Epoch or step `number` is done: commits with the save hook if that is due or asked for."""
        number = operator.index(number)
        if unit == "step":
            self._step = number
        self._poll()
        if self._agent is None or self._save is None or self._saved[unit] == number:
            return None
        if not self._is_due(unit, number) and not self.should_checkpoint:
            return None
        paths = _as_list(self._save(f"{unit}-{number}"))
        epoch = number if unit == "epoch" else None
        return self._commit(epoch, self._step, paths, self._save_timeout, dict(self._latest))

    def _is_due(self, unit: str, number: int) -> bool:
        every = self.environment.every
        if every is None or every.unit != unit:
            return False
        # By crossing a multiple, not by hitting one: what failed stays due until it succeeds, and
        # step numbers may jump.
        return number // every.count > (self._saved[unit] or 0) // every.count

    def _may_leave(self, unit: str, number: int) -> bool:
        """A stop was asked, and going on would not save more than is saved already."""
        if self._agent is None or self._agent.stop_deadline is None:
            return False
        return (
            self._stop_served
            or self._saved[unit] == number
            or (self._save is None and not self._explicit)
            or _clock.now() >= self._agent.stop_deadline
        )

    # -- checkpoints ---------------------------------------------------------------------------

    def checkpoint(
        self,
        epoch: Optional[int],
        step: Optional[int],
        paths: Paths,
        timeout: float,
        metrics: Mapping[str, Any],
    ) -> Optional[Checkpoint]:
        epoch = None if epoch is None else operator.index(epoch)
        step = None if step is None else operator.index(step)
        self._explicit = True
        return self._commit(epoch, step, _as_list(paths), timeout, self._numbers(metrics))

    def _commit(
        self,
        epoch: Optional[int],
        step: Optional[int],
        paths: List[str],
        timeout: float,
        metrics: Mapping[str, Number],
    ) -> Optional[Checkpoint]:
        if self._agent is None:
            return None
        deadline = _clock.now() + timeout
        self._write_facts()
        if self._metrics is not None:
            self._metrics.sync()
        stop_was_asked = self._agent.stop_deadline is not None
        try:
            relative = tuple(self._relative(path) for path in paths)
            checkpoint = self._agent.commit(Wish(epoch, step, relative, metrics), deadline)
        except Refused as refusal:
            # What passes is one trouble however it shows; of the script's own mistakes each is.
            kind = refusal.code if refusal.code in _PASSING else _NUMBERS.sub("#", f"{refusal.code} {refusal}")
            self._warn(kind, f"no checkpoint: {refusal}; training goes on")
            return None
        self._succeeded(checkpoint, stop_was_asked)
        return checkpoint

    def due(self, epoch: Optional[int], step: Optional[int]) -> bool:
        """Whether a checkpoint after this epoch or step is due, or the agent waits for one."""
        if self._agent is None:
            return False
        numbers = {"epoch": epoch, "step": step}
        for unit, number in numbers.items():
            if number is None:
                continue
            number = operator.index(number)
            if self._saved[unit] != number and self._is_due(unit, number):
                return True
        return self.should_checkpoint

    def parameters(self, values: Mapping[str, Any]) -> None:
        self._parameters.update(values)
        self._facts_are_new = True

    def _write_facts(self) -> None:
        """What checkpoints are compared by. Once, and again after new parameters; a disk that is full
        costs no checkpoint."""
        folder = self.environment.job_dir
        if not self._facts_are_new or folder is None:
            return
        self._facts_are_new = False
        try:
            _run_facts.write(folder / "metrics", self._parameters)
        except (OSError, ValueError) as error:
            self._warn("facts", f"parameters and packages were not recorded: {error}")

    def _succeeded(self, checkpoint: Checkpoint, stop_was_asked: bool) -> None:
        if self._warned & {"timeout", "unavailable"}:
            _say(f"the agent answers again: {checkpoint.snapshot} is committed")
        self._warned -= _PASSING
        self.committed = checkpoint
        if checkpoint.epoch is not None:
            self._saved["epoch"] = checkpoint.epoch
        if checkpoint.step is not None:
            self._saved["step"] = checkpoint.step
        self._stop_served = self._stop_served or stop_was_asked
        if self._agent is not None:
            self._agent.ask_deadline = None

    def _relative(self, path: str) -> str:
        """`path` as the agent wants it. A relative path is meant from the job's folder."""
        folder = self.environment.job_dir
        if folder is None:
            raise Refused("invalid", "ZED_JOB_DIR is not set, so the agent could not find the files")
        absolute = os.path.abspath(os.path.join(folder, path))
        for base in (str(folder), os.path.realpath(folder)):
            if os.path.commonpath([base, absolute]) == base:
                return os.path.relpath(absolute, base)
        raise Refused("invalid", f"{path} is outside the job's folder {folder}", "write it below ZED_JOB_DIR")

    # -- what the agent asks -------------------------------------------------------------------

    @property
    def should_stop(self) -> bool:
        self._poll()
        return self._agent is not None and self._agent.stop_deadline is not None

    @property
    def should_checkpoint(self) -> bool:
        if self.should_stop and not self._stop_served:
            return True
        # The agent does not wait beyond its own deadline, so afterwards there is nothing to serve.
        deadline = self._agent.ask_deadline if self._agent is not None else None
        return deadline is not None and _clock.now() < deadline

    def leave(self) -> None:
        self.stopped = True
        if self._agent is not None:
            self._agent.say_stopped()

    def _poll(self) -> None:
        if self._agent is not None:
            self._agent.poll()

    # -- metrics -------------------------------------------------------------------------------

    def log(self, step: Optional[int], epoch: Optional[int], metrics: Mapping[str, Any]) -> None:
        step = None if step is None else operator.index(step)
        epoch = None if epoch is None else operator.index(epoch)
        if self._agent is None:
            return
        numbers = self._numbers(metrics)
        self._latest.update(numbers)
        if step is not None:
            self._step = step
        if epoch is not None:
            numbers["epoch"] = epoch
        if self._metrics is not None:
            self._metrics.append(step, numbers)
        self._agent.poll_now_and_then()

    def _numbers(self, metrics: Mapping[str, Any]) -> Dict[str, Number]:
        if _RESERVED.isdisjoint(metrics):
            return to_numbers(metrics, self._leave_out)
        usable = {name: value for name, value in metrics.items() if name not in _RESERVED}
        for name in metrics.keys() - usable.keys():
            self._leave_out(name, "the metrics file uses this name itself")
        return to_numbers(usable, self._leave_out)

    def _leave_out(self, name: str, why: str) -> None:
        if self._agent is not None:
            self._warn(f"metric {name}", f"metric {name} left out: {why}")

    # -- the rest ------------------------------------------------------------------------------

    def _warn(self, key: str, text: str) -> None:
        """Once for each kind of trouble, until it is over."""
        if key not in self._warned and len(self._warned) < _MOST_WARNINGS:
            self._warned.add(key)
            _say(text)

    def close(self) -> None:
        if self._metrics is not None:
            self._metrics.close()

    def abandon(self) -> None:
        """For a forked child: lets go of what the parent goes on using."""
        if self._metrics is not None:
            self._metrics.abandon()
        if self._agent is not None:
            self._agent.abandon()


def _as_list(paths: Paths) -> List[str]:
    if paths is None:
        return []
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    return [os.fspath(path) for path in paths]


def _say(text: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr may be closed
        print(f"zed: {text}", file=sys.stderr, flush=True)
