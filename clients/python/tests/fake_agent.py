"""The agent's side of docs/job-protocol.md, small, and able to misbehave.

A fake, not a mock: it keeps the rules (generation, deadline, paths, repeated requests) and, given a
snapshot folder, makes real copies.
"""

import contextlib
import json
import os
import shutil
import socket
import threading
import time


class FakeAgent:
    """Listens from construction on. `behaviour(request, answer)` may replace what a checkpoint gets:
    it returns bytes to send, or None for silence; `answer()` makes the proper reply."""

    def __init__(self, path, job_dir, *, generation="1.c0ffee.7", snapshots=None, behaviour=None, listen=True):
        self.path = path
        self.job_dir = job_dir
        self.generation = generation
        self.snapshots = snapshots
        self.behaviour = behaviour
        self.messages = []  # everything received, in order
        self.committed = []  # the replies of real commits
        self._answers = {}
        self._connections = []
        self._servers = []
        self._changed = threading.Condition()
        self._listener = None
        if listen:
            self.start()

    def start(self):
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(8)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def stop(self):
        """As after kill -9: everything closes at once, the socket's file stays."""
        if self._listener is None:
            return
        listener, self._listener = self._listener, None
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        with self._changed:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
                connection.close()
            self._connections = []

    def join(self):
        """Until every commit under way has ended."""
        for server in self._servers:
            server.join(30)

    def restart(self):
        self.stop()
        os.unlink(self.path)
        self.start()

    def ask(self, kind, seconds=30.0):
        deadline_ms = int((time.clock_gettime(time.CLOCK_MONOTONIC) + seconds) * 1000)
        self.send(encode({"v": 1, "ask": kind, "deadline_ms": deadline_ms, "reason": "drain"}))

    def send(self, data):
        """To every connection, the first of which must exist within a second."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._connections, 5):
                raise AssertionError("no client has connected")
            for connection in self._connections:
                connection.sendall(data)

    def received(self, op, count=1):
        """The messages of this kind, once there are `count`."""
        with self._changed:
            done = self._changed.wait_for(lambda: len(self._of(op)) >= count, 5)
            if not done:
                raise AssertionError(f"{len(self._of(op))} {op} messages instead of {count}")
            return self._of(op)

    def _of(self, op):
        return [message for message in self.messages if message.get("op") == op]

    def _accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            server = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._servers.append(server)
            server.start()

    def _serve(self, connection):
        try:
            with connection, connection.makefile("rb") as lines:
                for line in lines:
                    message = json.loads(line)
                    reply = self._handle(message, connection)
                    if reply is not None:
                        connection.sendall(reply)
        except (OSError, ValueError):
            pass

    def _handle(self, message, connection):
        with self._changed:
            self.messages.append(message)
            if message["op"] == "hello":
                self._connections.append(connection)
            self._changed.notify_all()
        if message["op"] == "hello":
            return encode(self._hello(message))
        if message["op"] != "checkpoint":
            return None
        if self.behaviour is not None:
            return self.behaviour(message, lambda: encode(self.answer(message)))
        return encode(self.answer(message))

    def _hello(self, message):
        if message["generation"] != self.generation:
            return {"v": 1, "ok": False, "error": {"code": "stale", "message": "an older attempt"}}
        newest = self.committed[-1]["snapshot"] if self.committed else None
        return {"v": 1, "ok": True, "job": "digits", "attempt": 1, "checkpoint": newest, "checkpoint_every": None}

    def answer(self, message):
        key = (message["generation"], message["request"])
        if key not in self._answers:
            self._answers[key] = self._commit(message)
        return self._answers[key]

    def _commit(self, message):
        reply = {"v": 1, "request": message["request"]}
        problem = self._problem(message)
        if problem:
            return {**reply, "ok": False, "error": {"code": problem, "message": f"this is {problem}", "hint": "look"}}
        seq = len(self.committed) + 1
        name = f"epoch-{message['epoch']}" if message["epoch"] is not None else f"step-{message['step']}"
        if self.snapshots is not None:
            whole = os.path.join(self.snapshots, name)
            shutil.rmtree(whole, ignore_errors=True)
            shutil.copytree(self.job_dir, whole + ".part")
            os.rename(whole + ".part", whole)
        self.committed.append({**reply, "ok": True, "id": f"{seq:032x}", "snapshot": name, "seq": seq, "ms": 3})
        return self.committed[-1]

    def _problem(self, message):
        if message["generation"] != self.generation:
            return "stale"
        if time.clock_gettime(time.CLOCK_MONOTONIC) * 1000 > message["deadline_ms"]:
            return "timeout"
        for path in message["paths"]:
            inside = not os.path.isabs(path) and ".." not in path.split("/")
            if not inside or not os.path.exists(os.path.join(self.job_dir, path)):
                return "invalid"
        return None


def encode(message):
    return json.dumps(message).encode() + b"\n"
