"""One connection to the agent: framed JSON lines with every wait bounded.

docs/job-protocol.md has the messages. Nothing here knows what they mean.
"""

from __future__ import annotations

import contextlib
import json
import socket
from typing import Any, Dict, List, Optional

from . import _clock

#: The longest line in either direction, its newline included.
LINE_BYTES = 64 * 1024
#: What one poll() reads at most: an agent gone wild must not keep a training step busy.
POLL_BYTES = 4 * LINE_BYTES
#: How often poll() tries to reach an agent that is away.
RETRY_SECONDS = 1.0

Message = Dict[str, Any]


class AgentAway(Exception):
    """There is no agent at the other end, or none that speaks the protocol."""


class WaitedTooLong(Exception):
    """The deadline passed; the connection still stands."""


class Connection:
    """Not safe for several threads: its owner holds a lock."""

    def __init__(self, path: str, hello: Message) -> None:
        self._path = path
        self._hello = hello
        self._socket: Optional[socket.socket] = None
        self._buffer = bytearray()
        self._retry_at = 0.0
        self.serial = 0  #: counts connections, so that a caller sees that its request went with the old one

    def connect(self, deadline: float) -> None:
        """Makes sure there is a connection and hello is sent on it. Raises AgentAway."""
        if self._socket is not None:
            return
        if not hasattr(socket, "AF_UNIX"):
            raise AgentAway("this system has no UNIX sockets")
        fresh = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            fresh.setblocking(False)
            # A UNIX socket connects at once or not at all (EAGAIN: the agent's backlog is full).
            fresh.connect(self._path)
        except OSError as error:
            fresh.close()
            self._retry_at = _clock.now() + RETRY_SECONDS
            raise AgentAway(f"cannot connect to {self._path}: {error.strerror or error}") from None
        self._socket = fresh
        self._buffer.clear()
        self.serial += 1
        self.send(self._hello, deadline)

    def send(self, message: Message, deadline: float) -> None:
        """Raises AgentAway, or ValueError for a message longer than the protocol allows."""
        line = json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        if len(line) > LINE_BYTES:
            raise ValueError(f"the message has {len(line)} bytes, the protocol allows {LINE_BYTES}")
        assert self._socket is not None
        try:
            self._socket.settimeout(max(deadline - _clock.now(), 0.001))
            self._socket.sendall(line, getattr(socket, "MSG_NOSIGNAL", 0))
        except OSError as error:
            # Half a line may be under way: this connection is of no use any more.
            self.close()
            raise AgentAway(f"cannot send to the agent: {error}") from None

    def receive(self, deadline: float) -> List[Message]:
        """Waits for at least one message. Raises WaitedTooLong or AgentAway."""
        while True:
            messages = self._take_lines()
            if messages:
                return messages
            remaining = deadline - _clock.now()
            if remaining <= 0:
                raise WaitedTooLong
            self._read(remaining)

    def poll(self) -> List[Message]:
        """What has come in, without waiting. Reconnects now and then. Raises AgentAway."""
        if self._socket is None:
            if _clock.now() < self._retry_at:
                return []
            self.connect(_clock.now())
        messages: List[Message] = []
        total = 0
        while total < POLL_BYTES:
            got = self._read(0)
            messages += self._take_lines()
            if got == 0:
                break
            total += got
        return messages

    def close(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
        self._socket = None
        self._retry_at = _clock.now() + RETRY_SECONDS

    def _read(self, seconds: float) -> int:
        """Reads once, waiting `seconds` at most; 0 when nothing came."""
        assert self._socket is not None
        try:
            self._socket.settimeout(seconds)
            data = self._socket.recv(LINE_BYTES)
        except (BlockingIOError, socket.timeout):
            return 0
        except OSError as error:
            self.close()
            raise AgentAway(f"the connection to the agent broke: {error}") from None
        if not data:
            self.close()
            raise AgentAway("the agent closed the connection")
        self._buffer += data
        return len(data)

    def _take_lines(self) -> List[Message]:
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = rest
        try:
            if len(rest) >= LINE_BYTES:
                raise ValueError("a line without end")
            return [_parse(bytes(line)) for line in lines]
        except (ValueError, RecursionError) as error:
            self.close()
            raise AgentAway(f"the agent at {self._path} does not speak the protocol: {error}") from None


def _parse(line: bytes) -> Message:
    if len(line) >= LINE_BYTES:
        raise ValueError("a line that is too long")
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError("a line that is no object")
    if message.get("v") != 1:
        raise ValueError(f"version {message.get('v')!r} instead of 1")
    return message
