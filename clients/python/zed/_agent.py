"""The agent as this process sees it: what it is told, what it answers, what it asks.

docs/job-protocol.md has the messages.
"""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from typing import Callable, Dict, List, Mapping, Optional, Tuple

from . import _clock
from ._connection import AgentAway, Connection, Message, WaitedTooLong
from ._environment import Environment
from ._values import Number

#: How long a checkpoint waits for an agent that is being restarted; once in an outage.
AWAY_SECONDS = 5.0
#: How long a checkpoint waits while an earlier one is still without an answer.
OVERDUE_SECONDS = 2.0
#: How long a stop ask without a deadline counts.
ASK_SECONDS = 30.0
_RETRY_SECONDS = 0.1
#: How often poll_now_and_then() looks. An ask waits for seconds; a look costs a system call.
POLL_SECONDS = 0.01


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that the agent has committed: it exists from now on."""

    id: str  #: 32 hexadecimal digits, the same on every node
    snapshot: str  #: "epoch-15"
    seq: int
    ms: float  #: what the commit took the agent
    epoch: Optional[int]
    step: Optional[int]
    paths: Tuple[str, ...]  #: relative to the job's folder


@dataclasses.dataclass(frozen=True)
class Wish:
    """A checkpoint to be."""

    epoch: Optional[int]
    step: Optional[int]
    paths: Tuple[str, ...]
    metrics: Mapping[str, Number]


class Refused(Exception):
    """Why there is no checkpoint. `code` is the agent's, or "timeout", "unavailable", "invalid"."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message + (f" ({hint})" if hint else ""))
        self.code = code


class Agent:
    """Safe from several threads: one talks at a time, and nobody waits for it beyond his deadline."""

    def __init__(self, environment: Environment, warn: Callable[[str, str], None]) -> None:
        self.stop_deadline: Optional[float] = None  #: set once a stop was asked
        self.ask_deadline: Optional[float] = None  #: of the newest checkpoint ask
        self._generation = environment.generation
        self._warn = warn
        hello = {"v": 1, "op": "hello", "generation": self._generation, "pid": os.getpid()}
        self._connection = Connection(environment.socket or "", hello)
        self._lock = threading.Lock()
        # Numbers must not repeat within a generation, not even in a second process of one attempt
        # (a wrapper that starts the script again): microseconds since boot never come twice.
        self._last_request = int(_clock.now() * 1_000_000)
        self._away_waited = False  # in this outage, somebody has waited already
        self._overdue = False  # a request on this connection has no answer yet
        self._next_poll = 0.0

    def commit(self, wish: Wish, deadline: float) -> Checkpoint:
        """Raises Refused, at the deadline at the latest."""
        if not self._lock.acquire(timeout=max(deadline - _clock.now(), 0.0)):
            raise Refused("timeout", "another thread's checkpoint is still waiting")
        try:
            if self._overdue:
                deadline = min(deadline, _clock.now() + OVERDUE_SECONDS)
            return _committed(self._exchange(self._request(wish, deadline), deadline), wish)
        finally:
            self._lock.release()

    def poll(self) -> None:
        """Notes what the agent sent meanwhile. Never waits, not even for another thread."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            for message in self._connection.poll():
                self._note(message)
        except AgentAway:
            self._overdue = False  # whatever was outstanding went with the connection
        finally:
            self._lock.release()

    def poll_now_and_then(self) -> None:
        """The same for calls that may come thousands of times a second."""
        now = _clock.now()
        if now >= self._next_poll:
            self._next_poll = now + POLL_SECONDS
            self.poll()

    def say_stopped(self) -> None:
        """Best effort: an agent that is away will see that the process ended."""
        deadline = _clock.now() + 1.0
        if not self._lock.acquire(timeout=1.0):
            return
        try:
            self._connection.connect(deadline)
            self._connection.send({"v": 1, "op": "stopped"}, deadline)
        except AgentAway:
            pass
        finally:
            self._lock.release()

    def abandon(self) -> None:
        """For a forked child: the connection is the parent's."""
        self._connection.close()

    def _request(self, wish: Wish, deadline: float) -> Message:
        self._last_request += 1
        return {
            "v": 1,
            "op": "checkpoint",
            "generation": self._generation,
            "request": self._last_request,
            "deadline_ms": _clock.to_ms(deadline),
            "epoch": wish.epoch,
            "step": wish.step,
            "metrics": dict(wish.metrics),
            "paths": list(wish.paths),
        }

    def _exchange(self, request: Message, deadline: float) -> Message:
        """Sends the request, again after a reconnect (the agent knows it by its number), and waits
        for its own reply."""
        sent_on = -1
        away_since: Optional[float] = None
        while _clock.now() < deadline:
            try:
                self._connection.connect(deadline)
                if sent_on != self._connection.serial:
                    self._connection.send(request, deadline)
                    sent_on = self._connection.serial
                messages = self._connection.receive(deadline)
            except WaitedTooLong:
                break
            except ValueError as error:
                raise Refused("invalid", str(error), "name a folder instead of its files") from None
            except AgentAway as away:
                self._overdue = False
                away_since = away_since or _clock.now()
                self._wait_a_little(away, min(deadline, away_since + AWAY_SECONDS))
                continue
            away_since = None
            reply = self._reply_in(messages, request["request"])
            if reply is not None:
                return reply
        self._overdue = True
        raise Refused("timeout", "the agent did not answer in time")

    def _wait_a_little(self, away: AgentAway, until: float) -> None:
        """Before the next try, or gives up: an outage costs its first checkpoint a wait, not each."""
        if self._away_waited or _clock.now() + _RETRY_SECONDS >= until:
            self._away_waited = True
            raise Refused("unavailable", str(away)) from None
        time.sleep(_RETRY_SECONDS)

    def _reply_in(self, messages: List[Message], number: int) -> Optional[Message]:
        mine = None
        for message in messages:
            self._note(message)
            if message.get("request") == number:
                mine = message
        return mine

    def _note(self, message: Message) -> None:
        """A late reply only shows that the agent is well again: its checkpoint was given up."""
        self._away_waited = False
        if "ask" in message:
            self._note_ask(message)
        elif "request" in message:
            self._overdue = False
        elif message.get("ok") is False:
            self._warn("hello", f"the agent does not accept this process: {_refusal(message)}")

    def _note_ask(self, message: Message) -> None:
        deadline_ms = message.get("deadline_ms")
        deadline = _clock.now() + ASK_SECONDS
        if isinstance(deadline_ms, (int, float)):
            deadline = deadline_ms / 1000
        if message["ask"] == "stop" and self.stop_deadline is None:
            self.stop_deadline = deadline
        elif message["ask"] == "checkpoint":
            self.ask_deadline = deadline


def _committed(reply: Message, wish: Wish) -> Checkpoint:
    if reply.get("ok") is not True:
        raise _refusal(reply)
    identity, snapshot = reply.get("id"), reply.get("snapshot")
    seq, ms = reply.get("seq"), reply.get("ms")
    if not isinstance(identity, str) or not isinstance(snapshot, str) or not isinstance(seq, int):
        raise Refused("internal", f"the agent's reply lacks id, snapshot or seq: {str(reply):.200}")
    took = float(ms) if isinstance(ms, (int, float)) else 0.0
    return Checkpoint(identity, snapshot, seq, took, wish.epoch, wish.step, wish.paths)


def _refusal(reply: Message) -> Refused:
    error = reply.get("error")
    fields: Dict[str, object] = error if isinstance(error, dict) else {}
    message = str(fields.get("message") or "the agent gave no reason")
    return Refused(str(fields.get("code") or "internal"), f"{message:.2000}", f"{fields.get('hint') or '':.2000}")
