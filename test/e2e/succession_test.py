"""The controller's machine is gone, or in other hands: its authority goes on elsewhere, on machines of their own."""

import json
import os
import shutil
import struct
import unittest
from pathlib import Path

from machines_test import PASSPHRASE, MachinesCase
from support import wait_for

SHIM = Path(os.environ.get("ZED_CLOCK_SHIM", ""))
KEEPER_PATIENCE_S = 40  # an agent asks 5 s after its start


class SuccessionCase(MachinesCase):
    """alpha and beta, one of them the second node; `other` is the one that is not."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        wait_for("a second node", lambda: cls.laptop.ask("status")["safe"])
        second = cls.laptop.ask("status")["journal_second"]
        cls.second, cls.other = (cls.alpha, cls.beta) if second == "alpha" else (cls.beta, cls.alpha)
        # Agents ask again every ten minutes, and once when they start.
        for agent in (cls.second, cls.other):
            cls.restart(agent)
        wait_for("both agents to be back", lambda: cls.up() == {"alpha", "beta"})
        wait_for("the copy of the authority", (cls.second.folder / "a/pki/authority/ca-key.pem").exists, KEEPER_PATIENCE_S)
        wait_for("the other one to know the second",
                 lambda: second in (cls.other.folder / "a/pki/join.json").read_text(), KEEPER_PATIENCE_S)

    @classmethod
    def restart(cls, agent):
        agent.stop("zed-agent")
        cls.start_agent(agent)

    @classmethod
    def take_over(cls, *more):
        """`zed-controller takeover` on the second node. Returns when it serves."""
        passphrase = cls.second.folder / "passphrase"
        passphrase.write_text(PASSPHRASE + "\n")
        cls.second.start("zed-controller", "takeover", "--state", "c", "--agent-state", "a", "--host", cls.second.address,
                         "--passphrase-file", passphrase, "--lost-after", 7, *more)  # fmt: skip
        socket = cls.second.folder / "c/controller.sock"
        wait_for("the new controller's socket", socket.exists)
        wait_for("the new term", lambda: cls.at_second("status", status=None).returncode == 0)

    @classmethod
    def at_second(cls, *words, **options):
        return cls.second.run("zedctl", "--socket", cls.second.folder / "c/controller.sock", *words, **options)

    @classmethod
    def certificate(cls, machine):
        return (machine.folder / "a/pki/node.pem").read_text()


@unittest.skipUnless(SHIM.is_file(), "SKIPPED: ZED_CLOCK_SHIM names no library (ctest sets it)")
class Succession(SuccessionCase):
    def test_the_second_node_goes_on_with_the_authority(self):
        self.assertFalse((self.other.folder / "a/pki/authority").exists())
        wrong = self.second.folder / "wrong"
        wrong.write_text("not it\n")
        self.dispatch("train", 2)
        wait_for("the job to succeed", lambda: self.state("train") == "succeeded")
        self.controller.stop("zed-controller", sig=9)
        refused = self.second.run("zed-controller", "takeover", "--state", "c", "--agent-state", "a",
                                  "--passphrase-file", wrong, status=1)  # fmt: skip
        self.assertIn("passphrase", refused.stderr)
        self.take_over()
        # Nobody told the agents or the person: agents find it by themselves, a person says where.
        self.laptop.run("zedctl", "login", self.second.address)
        wait_for("both agents to have followed", lambda: self.up() == {"alpha", "beta"})
        self.assertTrue(self.laptop.ask("status")["term"].startswith("2-"))
        wait_for("the jobs of before", lambda: self.state("train") == "succeeded")
        # It admits: a machine that joins now, and runs.
        gamma = self.network.add("gamma")
        token = self.at_second("token", "create", "--node", "gamma").stdout.strip()
        gamma.run("zed-agent", "join", self.second.address, "--token", token, "--state", "a")
        self.start_agent(gamma)
        wait_for("gamma to be up", lambda: self.up() == {"alpha", "beta", "gamma"})
        # It renews: what is due by the agent's clock is asked for where the controller is now.
        before = self.certificate(self.other)
        self.other.stop("zed-agent")
        self.start_agent_later(self.other, days=70)
        wait_for("a new certificate", lambda: self.certificate(self.other) != before, KEEPER_PATIENCE_S)
        self.other.stop("zed-agent")
        self.start_agent(self.other)
        wait_for("it to be back with it", lambda: self.up() == {"alpha", "beta", "gamma"})
        self.dispatch("after", 1)
        wait_for("a job under the new controller", lambda: self.state("after") == "succeeded")

    def start_agent_later(self, agent, days):
        """The agent with a clock that is some days ahead."""
        clock = agent.folder / "clock"
        clock.write_bytes(struct.pack("=q", days * 86_400))
        ahead = {"LD_PRELOAD": str(SHIM), "ZED_TEST_CLOCK": str(clock)}
        agent.environment.update(ahead)
        self.start_agent(agent)
        for variable in ahead:
            del agent.environment[variable]


class IssuingCertificateInOtherHands(SuccessionCase):
    def test_nothing_is_believed_that_it_signed(self):
        # The former controller runs on, and agents obey it: it is a thief's now.
        self.take_over("--revoke-issued")
        self.assertEqual(self.up(), {"alpha", "beta"})
        self.restart(self.other)
        wait_for("the other agent to leave the thief", lambda: "its certificate was revoked" in self.other.log("zed-agent"),
                 KEEPER_PATIENCE_S)  # fmt: skip
        wait_for("it to be away there", lambda: self.other.name not in self.up())
        refusal = "issuing certificate that signed it was revoked"
        wait_for("the thief to be refused", lambda: refusal in self.other.log("zed-agent"))
        # What it gave out counts for nothing at the new one either, until each has joined anew.
        moved = self.laptop.run("zedctl", "login", self.second.address, status=None)
        self.assertIn("does not believe", moved.stderr)
        for agent in (self.other, self.second):
            agent.stop("zed-agent")
            shutil.rmtree(agent.folder / "a/pki")
            token = self.at_second("token", "create", "--node", agent.name).stdout.strip()
            agent.run("zed-agent", "join", self.second.address, "--token", token, "--state", "a")
            self.start_agent(agent)
        token = self.at_second("token", "create", "--node", "alice", "--role", "operator").stdout.strip()
        self.laptop.run("zedctl", "login", self.second.address, "--token", token)
        wait_for("both agents to be up", lambda: self.up() == {"alpha", "beta"})
        # Not even for a moment do they go back.
        revoked = (self.other.folder / "a/pki/revoked.json").read_text()
        self.assertGreater(len(json.loads(revoked)["serials"]), 0)
        self.dispatch("after", 1)
        wait_for("a job under the new controller", lambda: self.state("after") == "succeeded")


if __name__ == "__main__":
    unittest.main()
