"""The controller's machine is gone: its reign goes on where the journal's copy is."""

import json
import subprocess
import unittest

from support import BINARIES, RUNNING, TWO, FleetCase, wait_for


class Takeover(FleetCase):
    nodes = TWO

    def take_over(self, node, *more):
        """`zed-controller takeover` on a node, at the port and socket that everyone knows."""
        fleet = json.loads((self.fleet.dir / "fleet.json").read_text())
        command = [str(BINARIES / "zed-controller"), "takeover", "--state", str(self.fleet.dir / "second"),
                   "--name", fleet["controller"]["host"], "--machine", node,
                   "--port", str(fleet["controller"]["port"]), "--socket", fleet["socket"],
                   "--cookie-file", str(self.fleet.dir / "cookie"),
                   "--agent-state", str(self.fleet.dir / "nodes" / node), *more]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, 20)
        self.addCleanup(process.kill)
        return process

    def second(self):
        wait_for("the journal to be safe", lambda: self.fleet.ask("status")["safe"])
        return self.fleet.ask("status")["journal_second"]

    def test_the_second_node_goes_on(self):
        self.dispatch(self.counter(epochs=4, allowed=2))
        self.fleet.wait_checkpoint("epoch-2")
        second, before = self.second(), self.fleet.job()
        self.fleet.kill("controller")
        self.take_over(second)
        wait_for("the new term", lambda: self.fleet.zedctl("status").returncode == 0 and
                 self.fleet.ask("status")["term"].startswith("2-"))
        wait_for("the job to be seen", lambda: self.fleet.state() in RUNNING)
        self.assertEqual((self.fleet.job()["id"], self.fleet.job()["attempt"]), (before["id"], before["attempt"]))
        self.allow(4)
        self.fleet.wait_state("succeeded")

    def test_a_node_without_the_copy_refuses(self):
        second = self.second()
        other = next(node["name"] for node in self.nodes if node["name"] != second)
        self.fleet.kill("controller")
        process = self.take_over(other)
        self.assertEqual(process.wait(20), 1)
        self.assertIn("journal-copy", process.stdout.read())


if __name__ == "__main__":
    unittest.main()
