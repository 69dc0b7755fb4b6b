"""What every test here needs: the package on the path, an environment as the agent makes it."""

import contextlib
import io
import os
import shutil
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

from fake_agent import FakeAgent  # noqa: E402
from zed._client import Client  # noqa: E402


class JobTest(unittest.TestCase):
    """A job's folder, a socket path and, where the test starts it, an agent."""

    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="zed-")  # short: a socket path has 107 bytes
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        self.job_dir = os.path.join(self.root, "job")
        os.makedirs(os.path.join(self.job_dir, "ckpt"))
        self.socket = os.path.join(self.root, "s")
        self.environ = {
            "ZED_SOCKET": self.socket,
            "ZED_JOB": "digits",
            "ZED_JOB_DIR": self.job_dir,
            "ZED_ATTEMPT": "1",
            "ZED_GENERATION": "1.c0ffee.7",
        }
        self.stderr = io.StringIO()

    def agent(self, **options):
        agent = FakeAgent(self.socket, self.job_dir, **options)
        self.addCleanup(agent.stop)
        return agent

    def client(self, **environ):
        client = Client({**self.environ, **environ})
        self.addCleanup(client.abandon)
        return client

    def write(self, relative, content=b"weights"):
        path = os.path.join(self.job_dir, relative)
        with open(path, "wb") as file:
            file.write(content)
        return relative

    @contextlib.contextmanager
    def captured(self):
        with contextlib.redirect_stderr(self.stderr):
            yield

    def warnings(self):
        return self.stderr.getvalue().splitlines()


def until(condition, seconds=5.0):
    """Looks until it is so; AssertionError if that takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("what the test waits for did not happen")


def commit(client, epoch=None, step=None, paths=(), timeout=5.0, **metrics):
    return client.checkpoint(epoch, step, paths, timeout, metrics)


def epochs(client, total, save=None, start=None, timeout=5.0):
    return client.loop("epoch", total, save, start, timeout)
