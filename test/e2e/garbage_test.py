"""Binary garbage into every socket of a fleet: nothing falls over, nothing is believed."""

import json
import os
import random
import socket
import struct
import sys
import unittest

from support import JOBS, RUNNING, TWO, FleetCase, is_running

noise = random.Random(11)
HOSTILE = {
    "noise": noise.randbytes(100_000),
    "zeros": bytes(100_000),
    "a length beyond all bounds": b"\xff\xff\xff\xff" + noise.randbytes(1000),
    "a short length, again and again": b"\x00\x00" * 10_000,
    "half a length": b"\x00",
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a name of 64 KiB": struct.pack(">H", 65535) + b"N" + bytes(8) + noise.randbytes(65526),
    "a head without end": b"POST /v1/jobs HTTP/1.1\r\n" + b"x: y\r\n" * 100_000,
    "a body that is announced only": b"POST /v1/jobs HTTP/1.1\r\nHost: zed\r\nContent-Length: 99999999999\r\n\r\n{",
    "nested JSON": b"POST /v1/jobs HTTP/1.1\r\nHost: zed\r\nContent-Length: 100000\r\n\r\n" + b"[" * 100_000,
    "nothing": b"",
}


def throw_at(connect, payload):
    with connect() as connection:
        connection.settimeout(1)
        try:
            connection.sendall(payload)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
        except OSError:
            pass


def to_port(port):
    return lambda: socket.create_connection(("127.0.0.1", port), timeout=5)


def to_path(path):
    def connect():
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(path))
        return connection

    return connect


class Garbage(FleetCase):
    nodes = TWO

    def test_on_every_port_of_the_daemons(self):
        self.dispatch(self.counter(epochs=3, allowed=1, body='prefer gpu: "A100"'))
        self.fleet.wait_checkpoint("epoch-1")
        pids = {name: self.fleet.pid(name) for name in ("controller", "alpha", "beta")}
        fleet = json.loads((self.fleet.dir / "fleet.json").read_text())
        doors = {"the controller's socket": to_path(fleet["socket"]),
                 "the controller's port": to_port(fleet["controller"]["port"])}
        for node in fleet["nodes"]:
            doors[f"{node['name']}'s port"] = to_port(node["port"])
            doors[f"{node['name']}'s data port"] = to_port(node["data_port"])
        for door, connect in doors.items():
            for what, payload in HOSTILE.items():
                with self.subTest(door=door, what=what):
                    throw_at(connect, payload)
        for name, pid in pids.items():
            self.assertTrue(is_running(pid), name)
            self.assertLess(resident_mib(pid), 200, name)
        self.assertEqual({name: self.fleet.node_status(name) for name in ("alpha", "beta")},
                         {"alpha": "up", "beta": "up"})
        self.assertIn(self.fleet.state(), RUNNING)
        self.allow(3)
        self.fleet.wait_state("succeeded")
        self.fleet.wait_copies("epoch-3", ["alpha", "beta"])
        self.assertEqual(self.fleet.job()["attempt"], 1)

    def test_many_connections_that_say_nothing(self):
        fleet = json.loads((self.fleet.dir / "fleet.json").read_text())
        held = []
        self.addCleanup(lambda: [connection.close() for connection in held])
        for _ in range(200):
            for port in (fleet["controller"]["port"], fleet["nodes"][0]["port"], fleet["nodes"][0]["data_port"]):
                try:
                    held.append(socket.create_connection(("127.0.0.1", port), timeout=2))
                except OSError:
                    pass
        self.dispatch(self.counter(epochs=1))
        self.fleet.wait_state("succeeded")

    def test_http_of_another_origin_is_refused(self):
        socket_path = json.loads((self.fleet.dir / "fleet.json").read_text())["socket"]
        self.assertEqual(os.stat(socket_path).st_mode & 0o777, 0o600)
        for operation in ("frobnicate", "../../etc/passwd", "jobs"):
            body = b'{"all": "perhaps"}'
            with to_path(socket_path)() as connection:
                connection.settimeout(5)
                connection.sendall(f"POST /v1/{operation} HTTP/1.1\r\nHost: zed\r\nContent-Length: {len(body)}\r\n"
                                   "Connection: close\r\n\r\n".encode() + body)
                status = connection.recv(65536).split(b" ", 2)[1]
            self.assertIn(status, (b"400", b"404"), operation)


class GarbageFromAJob(FleetCase):
    def test_into_its_own_socket(self):
        self.dispatch(self.job_text("job", [sys.executable, JOBS / "vandal.py"], "retries 0"))
        row = self.fleet.wait_state(("succeeded", "failed"))
        log = self.fleet.log()
        self.assertEqual(row["state"], "succeeded", log)
        self.assertFalse([line for line in log if "ACCEPTED" in line], log)
        self.assertIn("then epoch-1", log)
        self.assertEqual(self.fleet.current(), ["epoch-1"])


def resident_mib(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


if __name__ == "__main__":
    unittest.main()
