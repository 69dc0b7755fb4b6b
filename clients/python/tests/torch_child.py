"""A script in a process that has PyTorch already: importing it takes seconds, and whoever kills a training two hundred
times wants to hit the training. Imports nothing of Zed: that reads the environment of the job, which comes first."""

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys


def _run(script, words, environment):
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [script, *words]
    sys.path[:0] = environment.get("PYTHONPATH", "").split(os.pathsep)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    runpy.run_path(script, run_name="__main__")


class TorchChild:
    """As much of subprocess.Popen as the tests need."""

    _context = multiprocessing.get_context("forkserver")
    _context.set_forkserver_preload(["torch"])

    def __init__(self, script, words, environment):
        self.args = [script, *words]
        self._process = self._context.Process(target=_run, args=(script, words, environment))
        self._process.start()

    @property
    def returncode(self):
        return self._process.exitcode

    def send_signal(self, number):
        os.kill(self._process.pid, number)

    def communicate(self, timeout=None):
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return None, f"it ended with {self._process.exitcode}"

    def kill(self):
        self.send_signal(signal.SIGKILL)
