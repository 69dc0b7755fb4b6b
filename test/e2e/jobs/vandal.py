"""A job that sends its agent everything but the protocol, then shows that checkpoints still work."""

import json
import os
import random
import socket
import sys
import time

import zed

noise = random.Random(7)


def hello(generation):
    return json.dumps({"v": 1, "op": "hello", "generation": generation, "pid": os.getpid()}).encode() + b"\n"


def checkpoint(**changes):
    request = {"v": 1, "op": "checkpoint", "generation": zed.generation, "request": noise.randrange(1, 2**50),
               "deadline_ms": int(time.monotonic() * 1000) + 5000, "epoch": 99, "metrics": {}, "paths": []}
    request.update(changes)
    return hello(zed.generation) + json.dumps(request).encode() + b"\n"


def talk(payload, until=None):
    """What comes back until the agent closes, `until` is in it, or nothing more comes."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(2)
        connection.connect(os.environ["ZED_SOCKET"])
        answer = b""
        try:
            connection.sendall(payload)
            if until is None:
                connection.shutdown(socket.SHUT_WR)
            while (until is None or until not in answer) and (piece := connection.recv(65536)):
                answer += piece
        except OSError:
            pass
        return answer


GARBAGE = {
    "noise": noise.randbytes(65536),
    "a line without end": b"a" * 1_000_000,
    "nested": b"[" * 60_000 + b"\n",
    "not an object": b"17\n",
    "half a line": hello("x")[:20],
    "zeros": bytes(100_000),
    "bad utf-8": b'{"v":1,"op":"\xff\xfe"}\n',
    "another version": b'{"v":2,"op":"hello"}\n',
    "an unknown operation": b'{"v":1,"op":"frobnicate"}\n',
    "numbers beyond all bounds": b'{"v":1,"op":"hello","generation":"1.1","pid":1e400}\n',
}
REFUSED = {
    "an old generation": checkpoint(generation="0.1"),
    "a path that climbs out": checkpoint(paths=["../../../../etc/passwd"]),
    "an absolute path": checkpoint(paths=["/etc/passwd"]),
    "a path that is not there": checkpoint(paths=["nowhere"]),
    "a deadline that has passed": checkpoint(deadline_ms=1),
    "a request number beyond all bounds": checkpoint(request=2**60),
    "metrics that are none": checkpoint(metrics={"loss": "high"}),
}


def main():
    os.symlink("/etc", "link")
    REFUSED["a path through a link"] = checkpoint(paths=["link/passwd"])
    for what, payload in GARBAGE.items():
        answer = talk(payload)
        print(f"{what}: {'ACCEPTED' if b'ok' in answer and b'snapshot' in answer else 'no harm'}", flush=True)
    for what, payload in REFUSED.items():
        answer = talk(payload, until=b'"request":')
        print(f"{what}: {'ACCEPTED' if b'snapshot' in answer else 'refused'}", answer[-300:], flush=True)
    done = zed.checkpoint(epoch=1)
    print(f"then {done.snapshot if done else 'no checkpoint'}", flush=True)
    sys.exit(0 if done else 1)


if __name__ == "__main__":
    main()
