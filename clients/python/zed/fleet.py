"""A fleet, from a program or a notebook: the operations of `zedctl` over the controller's socket.

    import zed

    fleet = zed.Client()
    fleet.jobs()                                  # a table in a notebook, a list elsewhere
    fleet.metrics("digits", "loss")
    job = fleet.run(["python3", "train.py"], requires="vram:24", code=".")
    fleet.wait(job.name)

Standard library only. Everything that `zedctl --json` can say is in a row: `row["field"]`, and as an
attribute `row.field`. docs/zedctl.md says what the fields mean.
"""

from __future__ import annotations

import dataclasses
import html
import http.client
import json
import os
import re
import secrets
import shlex
import socket
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

__all__ = ["Client", "FleetError", "Rows", "Row"]

DEFAULT_TIMEOUT = 30.0
#: Of operations that pack code or move data.
_LONG_TIMEOUT = 600.0
_SYSTEM_SOCKETS = ("/run/zed/controller.sock", "/var/lib/zed/controller/controller.sock")
_LARGEST_REPLY = 64 << 20
_OVER = frozenset({"succeeded", "failed", "cancelled", "stopped"})


class FleetError(Exception):
    """What the controller refused or could not do. `code` is one of docs/zedctl.md, `hint` the next
    command."""

    def __init__(self, code: str, message: str, hint: str = "", frames: Sequence[str] = ()) -> None:
        text = ": ".join([*reversed(frames), message])
        super().__init__(text + (f" (next: {hint})" if hint else ""))
        self.code = code
        self.message = message
        self.hint = hint


class Row(Mapping[str, Any]):
    """One line of a reply. Fields are items and attributes."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = dict(fields)

    def __getitem__(self, name: str) -> Any:
        return _wrapped(self._fields[name])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no field {name!r}; there are {', '.join(self._fields)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"Row({self._fields!r})"

    def _repr_html_(self) -> str:
        return _table([(name, _text(value)) for name, value in self._fields.items()], ["field", "value"])


class Rows(List[Row]):
    """Rows of one kind; a table in a notebook."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = (), reply: Optional[Row] = None):
        super().__init__(Row(row) for row in rows)
        self.columns = list(columns)  #: what the table shows
        self.reply = reply  #: all of the reply, where it has more than the rows

    def _repr_html_(self) -> str:
        columns = self.columns or list(self[0] if self else [])
        return _table([[_text(_field(row, column)) for column in columns] for row in self], columns)


@dataclasses.dataclass(frozen=True)
class Series:
    """One metric of a job, thinned out by its node to at most `points`."""

    name: str
    steps: List[float]
    values: List[float]
    count: int  #: values that were logged
    not_finite: int  #: of them NaN or infinite, which `values` leaves out

    def _repr_html_(self) -> str:
        return _curve(self)


class Client:
    """Safe from several threads: each call has a connection of its own."""

    def __init__(self, socket_path: Optional[str] = None, timeout: float = DEFAULT_TIMEOUT) -> None:
        """`socket_path`: else $ZED_CONTROLLER, the development fleet that was started last, or
        a controller of this machine at its usual place. Fleets of `zedctl login` are not: it has no
        certificate. Nothing is connected before the first call."""
        self.socket_path = socket_path or find_controller()
        self.timeout = timeout

    # -- any operation -------------------------------------------------------------------------

    def call(self, operation: str, timeout: Optional[float] = None, **arguments: Any) -> Row:
        """`POST /v1/<operation>`: the reply, or FleetError."""
        body = json.dumps({name: value for name, value in arguments.items() if value is not None})
        connection = _UnixConnection(self.socket_path, timeout or self.timeout)
        try:
            connection.request("POST", f"/v1/{operation}", body.encode(), {"Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read(_LARGEST_REPLY + 1)
        except TimeoutError as error:
            raise FleetError("timeout", f"no answer from {self.socket_path} in time") from error
        except (OSError, http.client.HTTPException) as error:
            hint = "zedctl dev up starts a development fleet"
            raise FleetError("unavailable", f"cannot ask {self.socket_path}: {error}", hint) from error
        finally:
            connection.close()
        return _reply(text, response.status)

    # -- looking -------------------------------------------------------------------------------

    def status(self) -> Row:
        return self.call("status")

    def nodes(self) -> Rows:
        reply = self.call("nodes")
        return Rows(reply._fields["nodes"], ["node.name", "node.status", "gpu_jobs", "node.pool_free"], reply)

    def gpus(self) -> Rows:
        reply = self.call("gpus")
        return Rows(reply._fields["gpus"], ["node", "gpu.model", "gpu.vram_reported", "status", "jobs"], reply)

    def models(self) -> Rows:
        reply = self.call("models")
        return Rows(reply._fields["models"], ["name", "version", "size", "requirement", "home"], reply)

    def datasets(self, under: str = "", all: bool = False) -> Rows:
        reply = self.call("datasets", under=under, all=all)
        return Rows(reply._fields["datasets"], ["dataset", "type", "used", "snapshots", "newest", "home"], reply)

    def jobs(self, all: bool = False) -> Rows:
        reply = self.call("jobs", all=all)
        return Rows(reply._fields["jobs"], ["name", "state", "node", "checkpoint", "metrics", "reason"], reply)

    def job(self, name: str) -> Row:
        """One job; FleetError `not_found` if there is none of that name."""
        return Row(self.call("why", job=name)._fields["job"])

    def checkpoints(self, job: str) -> Rows:
        reply = self.call("checkpoints", job=job)
        return Rows(reply._fields["checkpoints"], ["name", "current", "metrics", "used", "nodes"], reply)

    def metrics(self, job: str, *names: str, checkpoint: str = "", points: int = 1000) -> Dict[str, Series]:
        """What it logged, by name. FleetError `not_found` if one of `names` was not logged."""
        reply = self.call("metrics", job=job, names=list(names), checkpoint=checkpoint, points=points)
        missing = sorted(set(names) - {one["name"] for one in reply._fields["series"]})
        if missing:
            others = ", ".join(reply._fields.get("other_names", [])) or "nothing else"
            raise FleetError("not_found", f"job {job} has not logged {', '.join(missing)}", f"it logged {others}")
        return {
            one["name"]: Series(one["name"], one["steps"], one["values"], one["count"], one["not_finite"])
            for one in reply._fields["series"]
        }

    def logs(self, job: str, lines: int = 100) -> List[str]:
        """The last lines that it wrote."""
        return [line["text"] for line in self.call("logs", job=job, offset=-lines)._fields["lines"]]

    def events(self, after: int = 0, limit: int = 200) -> Rows:
        reply = self.call("events", after=after, limit=limit)
        return Rows(reply._fields["events"], ["number", "kind", "subject", "text"], reply)

    def diff(self, a: str, b: str) -> Row:
        """What differs between "job@epoch-1" and "@epoch-2"."""
        return self.call("diff", a=a, b=b)

    # -- deciding ------------------------------------------------------------------------------

    def run(
        self,
        argv: Union[str, Sequence[str]],
        *,
        name: str = "",
        code: Union[str, "os.PathLike[str]", None] = None,
        setup: str = "",
        requires: str = "",
        env: Optional[Mapping[str, str]] = None,
        model: str = "",
        data: Sequence[str] = (),
        checkpoint_every: str = "",
        retries: int = 0,
        priority: int = 0,
    ) -> Row:
        """Submits a job without a cluster file. `argv`: the words of its command, or one text that is
        split as a shell would, without running one. `requires`: "vram:24, gpus:2"; '=' does as well.
        `code` is a folder of the controller's machine, `setup` a shell command before its first start. The
        job's row."""
        words = shlex.split(argv) if isinstance(argv, str) else [str(word) for word in argv]
        if not words:
            raise ValueError("a job needs a command")
        folder = str(Path(code).resolve()) if code is not None else ""
        reply = self.call(
            "run",
            timeout=_LONG_TIMEOUT,
            argv=words,
            name=name,
            uuid=secrets.token_hex(16),
            code=folder,
            setup=setup,
            requirement=re.sub(r"\b(\w+)=", r"\1:", requires),
            env=dict(env or {}),
            model=model,
            data=list(data),
            checkpoint_every=checkpoint_every,
            retries=retries,
            priority=priority,
        )
        return Row(reply._fields["job"])

    def dispatch(self, job: str, again: bool = False) -> Row:
        reply = self.call("dispatch", timeout=_LONG_TIMEOUT, job=job, again=again, uuid=secrets.token_hex(16))
        return Row(reply._fields["job"])

    def rollback(self, job: str, checkpoint: str, hold: bool = False) -> Row:
        return self.call("rollback", timeout=_LONG_TIMEOUT, job=job, checkpoint=checkpoint, hold=hold)

    def resume(self, job: str, checkpoint: str = "", on: str = "") -> Row:
        return self.call("resume", timeout=_LONG_TIMEOUT, job=job, on=on, **{"from": checkpoint})

    def checkpoint(self, job: str) -> Row:
        return Row(self.call("checkpoint", timeout=_LONG_TIMEOUT, job=job)._fields["job"])

    def stop(self, job: str) -> Row:
        return Row(self.call("stop", job=job)._fields["job"])

    def cancel(self, job: str) -> Row:
        return Row(self.call("cancel", job=job)._fields["job"])

    def replicate(self, what: str, to: str, dry_run: bool = False) -> Row:
        return self.call("replicate", timeout=86400.0, what=what, to=to, dry_run=dry_run)

    def wait(self, job: str, timeout: Optional[float] = None, every: float = 0.5) -> Row:
        """Until the job is over; its row. TimeoutError after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            row = self.job(job)
            if row["state"] in _OVER:
                return row
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"job {job} is still {row['state']} after {timeout} s")
            time.sleep(every)

    def __repr__(self) -> str:
        return f"Client({self.socket_path!r})"


def find_controller(environ: Mapping[str, str] = os.environ) -> str:
    """As zedctl looks for it. FileNotFoundError if there is none."""
    if environ.get("ZED_CONTROLLER"):
        return environ["ZED_CONTROLLER"]
    development = _development_socket(environ)
    if development:
        return development
    state = environ.get("XDG_STATE_HOME") or os.path.join(environ.get("HOME", "/"), ".local/state")
    for path in (*_SYSTEM_SOCKETS, os.path.join(state, "zed/controller/controller.sock")):
        if os.path.exists(path):
            return path
    raise FileNotFoundError(
        "no controller is known on this machine: zedctl dev up starts a development fleet,"
        " ZED_CONTROLLER or Client(path) names another"
    )


def _development_socket(environ: Mapping[str, str]) -> Optional[str]:
    runtime = environ.get("XDG_RUNTIME_DIR")
    folder = Path(runtime) / "zed-dev" if runtime else Path(f"/tmp/zed-dev-{os.getuid()}")
    try:
        status = folder.lstat()
        # Anyone may make a folder of that name in /tmp; only our own is believed.
        if status.st_uid != os.getuid() or status.st_mode & 0o077 or folder.is_symlink():
            return None
        state = Path((folder / "current").read_text().strip())
        return str(json.loads((state / "fleet.json").read_text())["socket"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("zed", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _reply(text: bytes, status: int) -> Row:
    try:
        body = json.loads(text)
    except ValueError as error:
        raise FleetError("corrupt", f"the answer (status {status}) is no JSON") from error
    if not isinstance(body, dict):
        raise FleetError("corrupt", "the answer is no JSON object")
    error = body.get("error")
    if isinstance(error, dict):
        code = str(error.get("code", "internal"))
        raise FleetError(code, str(error.get("message", "")), str(error.get("hint", "")), error.get("frames", ()))
    return Row(body)


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Row(value)
    return value


def _field(row: Mapping[str, Any], path: str) -> Any:
    value: Any = row
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_text(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return ", ".join(_text(inner) for inner in value)
    return str(value)


def _table(rows: Sequence[Sequence[str]], columns: Sequence[str]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _curve(series: Series, width: int = 480, height: int = 160) -> str:
    """An SVG line: no library, and no script that a notebook would have to trust."""
    name = html.escape(series.name)
    if not series.values:
        return f"<p>{name}: no finite values</p>"
    low, high = min(series.values), max(series.values)
    first, last = series.steps[0], series.steps[-1]
    points = " ".join(
        f"{(step - first) / ((last - first) or 1) * width:.1f},{(high - value) / ((high - low) or 1) * height:.1f}"
        for step, value in zip(series.steps, series.values)
    )
    return (
        f'<figure><svg viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f'<polyline fill="none" stroke="currentColor" points="{points}"/></svg>'
        f"<figcaption>{name}: {series.values[-1]:.4g} at {last:g}, lowest {low:.4g}, highest {high:.4g}"
        "</figcaption></figure>"
    )
