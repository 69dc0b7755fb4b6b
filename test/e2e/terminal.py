"""A program that a person uses at a terminal."""

import os
import pty
import select
import subprocess

from support import wait_for


class Terminal:
    """Runs a program on a terminal of its own; closing it hangs up."""

    def __init__(self, words, environment):
        self._master, slave = pty.openpty()
        self.child = subprocess.Popen(words, env=environment, stdin=slave, stdout=slave, stderr=slave,
                                      start_new_session=True)  # fmt: skip
        os.close(slave)
        self._said = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._master)
        self.child.terminate()
        try:
            self.child.wait(5)
        except subprocess.TimeoutExpired:  # an interactive shell does not heed SIGTERM
            self.child.kill()
            self.child.wait()

    def type(self, text):
        """What was said before is forgotten: what is waited for next is the answer to this."""
        self._said = b""
        os.write(self._master, text.encode())

    def says(self, text):
        """Waits until it has said this, and gives all that it has said since something was typed."""

        def said():
            while text.encode() not in self._said and select.select([self._master], [], [], 0)[0]:
                self._said += os.read(self._master, 4096)
            return text.encode() in self._said

        wait_for(f"{text!r} on the terminal", said)
        return self._said.decode(errors="replace")
