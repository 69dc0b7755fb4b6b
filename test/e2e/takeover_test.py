"""The controller's machine is gone: its reign goes on where the journal's copy is."""

import json
import os
import subprocess
import unittest

from support import BINARIES, RUNNING, TWO, FleetCase, wait_for


class TakeoverCase(FleetCase):
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


class Takeover(TakeoverCase):
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


class ALostJournal(TakeoverCase):
    """The controller's disk has lost records that were durable; the second node's copy has them."""

    def lose(self, damage):
        """Two epochs, a success, a safe journal; then the damage, and a start that has to refuse."""
        self.dispatch(self.counter(epochs=2))
        self.fleet.wait_state("succeeded")
        self.node, self.attempt = self.second(), self.fleet.job()["attempt"]
        self.fleet.kill("controller")
        copy = self.fleet.dir / "nodes" / self.node / "node" / "journal-copy"
        before = copy.read_bytes()
        damage(self.fleet.dir / "controller" / "journal")
        self.fleet.zedctl("dev", "up", self.fleet.profile)
        log = self.fleet.dir / "log" / "controller.log"
        wait_for("the controller to refuse", lambda: "zed-controller takeover" in log.read_text())
        self.assertEqual(copy.read_bytes(), before)
        self.start_again()
        self.assertEqual(copy.read_bytes(), before)
        self.take_over(self.node)
        wait_for("the new term", lambda: self.fleet.zedctl("status").returncode == 0)
        self.assertEqual((self.fleet.state(), self.fleet.job()["attempt"]), ("succeeded", self.attempt))
        return log.read_text()

    def start_again(self):
        """As a service manager does: it refuses again, though the disk may have grown meanwhile."""
        state = self.fleet.dir / "controller"
        again = subprocess.run(
            [BINARIES / "zed-controller", "run", "--state", state, "--cookie-file", self.fleet.dir / "cookie"],
            stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
        self.assertNotEqual(again.returncode, 0)
        self.assertRegex(again.stderr, "journal is gone|has lost its end")

    def test_one_that_is_gone(self):
        self.assertIn("this controller's journal is gone", self.lose(lambda path: path.unlink()))

    def test_one_that_is_cut(self):
        said = self.lose(lambda path: os.truncate(path, path.stat().st_size // 2))
        self.assertIn("this machine's journal has lost its end", said)

    def test_a_damaged_copy_is_sent_anew(self):
        self.dispatch(self.counter(epochs=1))
        self.fleet.wait_state("succeeded")
        node = self.second()
        self.fleet.down()
        copy = self.fleet.dir / "nodes" / node / "node" / "journal-copy"
        whole = copy.read_bytes()
        copy.write_bytes(whole[:60] + bytes([whole[60] ^ 1]) + whole[61:])
        self.fleet.up()
        self.assertEqual(self.second(), node)
        self.assertTrue(copy.read_bytes().startswith(whole))
        self.assertTrue(copy.with_name("journal-copy.damaged").exists())


if __name__ == "__main__":
    unittest.main()
