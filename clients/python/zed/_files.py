"""Files that are whole or not there."""

from __future__ import annotations

import contextlib
import os
from typing import IO, Any, Iterator, Union


@contextlib.contextmanager
def atomic_write(path: Union[str, "os.PathLike[str]"], mode: str = "wb") -> Iterator[IO[Any]]:
    """A file to write in; when the block ends well, `path` is its content, durably.

    The content goes to a temporary name beside `path`, then file, rename and folder are made
    durable in that order. After an exception, or a crash at any point, `path` is what it was.
    `mode` is "wb" or "w" (UTF-8). The temporary name belongs to `path` alone, so that what a crash
    leaves behind is reused by the next try instead of piling up; two writers of one path at one
    time are a mistake, and the first to notice raises FileExistsError.
    """
    if mode not in ("w", "wb"):
        raise ValueError(f"atomic_write({os.fspath(path)!r}): mode must be 'wb' or 'w', not {mode!r}")
    target = os.path.abspath(os.fspath(path))
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.zed-tmp")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(temporary, flags, 0o666)
    try:
        with open(descriptor, mode, encoding=None if "b" in mode else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            _must_be_ours(file.fileno(), temporary, target)
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    sync_folder(folder)


def sync_folder(folder: str) -> None:
    """Makes the names in `folder` durable. Windows cannot open a folder and needs none of it."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _must_be_ours(descriptor: int, temporary: str, target: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(descriptor), os.stat(temporary)):
            return
    raise FileExistsError(f"cannot write {target}: somebody else is writing it at the same time")


def sync_tree(path: str) -> None:
    """Makes a file, or a folder with all that is in it, durable: for checkpoints that a library wrote
    without doing so. Symlinks are not followed."""
    if os.name == "nt":
        return
    if not os.path.isdir(path):
        _sync_file(path)
        sync_folder(os.path.dirname(os.path.abspath(path)))
        return
    for folder, _, names in os.walk(path):
        for name in names:
            _sync_file(os.path.join(folder, name))
        sync_folder(folder)
    sync_folder(os.path.dirname(os.path.abspath(path)))


def _sync_file(path: str) -> None:
    if os.path.islink(path) or not os.path.isfile(path):
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
