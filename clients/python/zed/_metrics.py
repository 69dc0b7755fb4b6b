"""The metrics file of a job: JSON lines in `metrics/000001.jsonl` of the job's own dataset.

They lie beside the checkpoints so that they travel and roll back with them. A line is
`{"s":step,"t":seconds since 1970,"loss":…}`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Union

from . import _clock, _files
from ._values import Number

ROTATE_BYTES = 64_000_000
FLUSH_SECONDS = 1.0
#: Beyond this the buffer is written at once, so a burst cannot grow it.
BUFFER_BYTES = 64 * 1024
#: A signal handler may log while its own thread is inside log(): it gives up instead of hanging.
LOCK_SECONDS = 1.0

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
#: What stands before the value of each metric, escaped once: `,"loss":`.
_prefixes: Dict[str, str] = {}
MOST_PREFIXES = 4096
_FILE_NAME = re.compile(r"([0-9]{6,})\.jsonl", re.ASCII)


class MetricsFile:
    """Appends to the newest metrics file. Safe to use from several threads, and several processes
    may append to one folder: each write is whole lines and O_APPEND."""

    def __init__(
        self, folder: Path, warn: Callable[[str, str], None], rotate_bytes: int = ROTATE_BYTES
    ) -> None:
        self._folder = folder
        self._warn = warn
        self._rotate_bytes = rotate_bytes
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._flusher: Optional[threading.Thread] = None
        self._lines: List[bytes] = []
        self._bytes = 0
        self._oldest = 0.0  # when the first of _lines came in
        self._number = 0
        self._descriptor = -1
        self._torn = False  # the file's last line has no end

    def append(self, step: Optional[int], metrics: Mapping[str, Number]) -> None:
        """Takes one line; it is in the file at most FLUSH_SECONDS later."""
        encoded = _line(step, time.time(), metrics)
        # As _locked() does, without what a context manager costs each call.
        if not self._lock.acquire(timeout=LOCK_SECONDS):
            return
        try:
            now = _clock.now()
            if not self._lines:  # the flusher was woken for all that follow
                self._oldest = now
                self._start_flusher()
            self._lines.append(encoded)
            self._bytes += len(encoded)
            if self._bytes >= BUFFER_BYTES or now - self._oldest >= FLUSH_SECONDS:
                self._write_out()
        finally:
            self._lock.release()

    def flush(self) -> None:
        """Writes what is buffered."""
        with self._locked() as ours:
            if ours:
                self._write_out()

    def sync(self) -> None:
        """Writes what is buffered and makes the file durable."""
        with self._locked() as ours:
            if not ours:
                return
            self._write_out()
            copy = os.dup(self._descriptor) if self._descriptor >= 0 else -1
        if copy < 0:
            return
        try:  # outside the lock: a slow disk must not hold up log()
            os.fsync(copy)
        except OSError as error:
            self._complain(error)
        finally:
            os.close(copy)

    def close(self) -> None:
        with self._locked() as ours:
            if ours:
                self._write_out()
                self._close_file()

    def abandon(self) -> None:
        """For a forked child: the buffered lines are the parent's to write."""
        self._lines = []
        self._close_file()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[bool]:
        ours = self._lock.acquire(timeout=LOCK_SECONDS)
        try:
            yield ours
        finally:
            if ours:
                self._lock.release()

    def _write_out(self) -> None:
        if not self._lines:
            return
        data = b"".join(self._lines)
        self._lines = []
        self._bytes = 0
        try:
            self._open_for(len(data))
            if self._torn:
                data = b"\n" + data
            written = os.write(self._descriptor, data)
        except OSError as error:
            self._complain(error)
            return
        # A short write means a full disk. What is missing is dropped; the next line starts afresh.
        self._torn = not data[:written].endswith(b"\n")

    def _open_for(self, size: int) -> None:
        if self._descriptor < 0:
            self._open(max(numbers_in(self._folder), default=1))
        have = os.fstat(self._descriptor).st_size
        if have > 0 and have + size > self._rotate_bytes:
            with contextlib.suppress(OSError):
                os.fsync(self._descriptor)  # sync() only reaches the newest file
            self._open(self._number + 1)

    def _open(self, number: int) -> None:
        self._close_file()
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{number:06d}.jsonl"
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(path, flags, 0o666)
        self._number = number
        self._torn = _lacks_end_of_line(self._descriptor)
        _files.sync_folder(str(self._folder))

    def _close_file(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def _complain(self, error: OSError) -> None:
        self._warn("metrics", f"cannot write metrics in {self._folder}: {error.strerror or error}")

    def _start_flusher(self) -> None:
        if self._flusher is None:
            self._flusher = threading.Thread(target=self._flush_forever, name="zed-metrics", daemon=True)
            self._flusher.start()
        self._wake.set()

    def _flush_forever(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            time.sleep(FLUSH_SECONDS * 0.8)
            self.flush()


def _line(step: Optional[int], at: float, metrics: Mapping[str, Number]) -> bytes:
    """A record as JSON. By hand: it is half the time of a call that logs, and a training loop makes
    thousands of those a second."""
    parts = ['{"t":%.3f' % at if step is None else '{"s":%d,"t":%.3f' % (step, at)]
    for name, value in metrics.items():
        kind = type(value)
        if kind is float:
            text = repr(value)  # finite: others are strings by now
        elif kind is int:
            text = int.__repr__(value)
        else:
            text = _encode(value)
        parts.append(_prefixes.get(name) or _prefix(name))
        parts.append(text)
    parts.append("}\n")
    return "".join(parts).encode("utf-8", "replace")


def _prefix(name: str) -> str:
    if len(_prefixes) >= MOST_PREFIXES:
        _prefixes.clear()
    made = _prefixes[name] = "," + _encode(name) + ":"
    return made


def numbers_in(folder: Path) -> List[int]:
    """The numbers of the metrics files there, ascending."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    matches = (_FILE_NAME.fullmatch(name) for name in names)
    return sorted(int(match.group(1)) for match in matches if match)


def read_metrics(job_dir: Union[str, "os.PathLike[str]"]) -> Iterator[Dict[str, Any]]:
    """The records of a job folder's metrics files, oldest first.

    A line that a crash or a full disk cut short is left out. Steps may come twice: an attempt that
    starts again on the same files repeats what came after its checkpoint, and the later one counts.
    """
    folder = Path(job_dir) / "metrics"
    for number in numbers_in(folder):
        with open(folder / f"{number:06d}.jsonl", "rb") as file:
            for line in file:
                with contextlib.suppress(ValueError):
                    record = json.loads(line)
                    if line.endswith(b"\n") and isinstance(record, dict):
                        yield record


def _lacks_end_of_line(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
