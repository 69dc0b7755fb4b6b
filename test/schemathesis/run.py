#!/usr/bin/env python3
"""Lets schemathesis loose on the controller of a real fleet, by what GET /v1/openapi.json says of it.

    test/schemathesis/run.py [arguments for `schemathesis run`]

Needs the programs (ZED_BINARIES, or build/release) and `schemathesis` on the PATH (./dev test-full sees to both).
Any failure of any check fails the run. The fleet is thrown away afterwards.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
sys.dont_write_bytecode = True

from shells import OverSocket  # noqa: E402
from support import Fleet  # noqa: E402

# What the controller keeps from the command line of the run: each needs more than one answer.
#   follow-events: a stream that does not end (src/http/http_test.cpp has its tests)
WITHOUT = ["follow-events"]


class Bridge:
    """A TCP port that leads to a UNIX socket, since schemathesis speaks TCP."""

    def __init__(self, path):
        self.path = path
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            near, _ = self.listener.accept()
            far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            far.connect(self.path)
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    @staticmethod
    def _pump(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            target.close()


def cluster_file():
    words = '["/bin/sh", "-c", "sleep 3600"]'
    return f"deploy :api do\n  node :alpha\n  node :beta\n  job :finetune do\n    run {words}\n  end\nend\n"


def main():
    folder = Path(tempfile.mkdtemp(prefix="zed-api-"))
    machines = [{"name": "alpha", "pool": "tank", "gpus": "rtx-4090"}, {"name": "beta", "pool": "nvme", "gpus": "none"}]
    fleet = Fleet(folder, machines)
    try:
        fleet.up()
        fleet.apply(cluster_file())
        fleet.do("dispatch", "finetune")
        bridge = Bridge(OverSocket(fleet).path)
        arguments = ["run", f"http://127.0.0.1:{bridge.port}/v1/openapi.json", "--checks", "all",
                     "--exclude-checks", "ignored_auth", "--phases", "examples,coverage,fuzzing",
                     "--suppress-health-check", "all", "--request-timeout", "30", "--no-color"]  # fmt: skip
        for operation in WITHOUT:
            arguments += ["--exclude-operation-id", operation]
        environment = dict(os.environ, SCHEMATHESIS_HOOKS=str(HERE / "hooks.py"))
        done = subprocess.run(["schemathesis", "--config-file", str(HERE / "schemathesis.toml"), *arguments,
                               *sys.argv[1:]], env=environment, cwd=folder)  # fmt: skip
        status = fleet.zedctl("status")
        if status.returncode != 0:
            print(f"the controller did not survive:\n{status.stderr}{fleet.logs_of_daemons()}", file=sys.stderr)
            return 1
        return done.returncode
    finally:
        fleet.zedctl("dev", "down", "--yes")
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
