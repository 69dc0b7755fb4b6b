"""One stream for several targets: it leaves its source once, and each node passes it on while it receives it."""

import hashlib
import os
import re
import time
import unittest

from support import TWO, FleetCase, wait_for

FOUR = TWO + [
    {"name": "gamma", "pool": "data", "gpus": "rtx-3080-10"},
    {"name": "delta", "pool": "disk", "gpus": "rtx-4090"},
]
TARGETS = ("beta", "gamma", "delta")
SIZE = 24_000_000
RATE = 4_000_000
UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class Chains(FleetCase):
    nodes = FOUR

    def test_three_copies_leave_the_source_once(self):
        content = os.urandom(SIZE)
        (self.files / "weights.bin").write_bytes(content)
        model = 'model :big do\n  file "weights.bin"\nend'
        self.apply(model)
        wait_for("the model at its source", lambda: self.copies() == ["alpha"])
        began = time.monotonic()
        self.apply(model, f'replicate :models do\n  from :alpha\n  to [:beta, :gamma, :delta]\n'
                          f'  max_rate "{RATE // 1_000_000} MB/s"\nend')
        wait_for("who sends to whom", lambda: len(self.transfers()) == 3)
        senders = {row["source"] for row in self.transfers()}
        self.assertEqual(len(senders), 3, "each node is the sender of one")
        wait_for("the copies", lambda: self.copies() == ["alpha", *sorted(TARGETS)])
        took = time.monotonic() - began
        self.assertGreater(took, SIZE / RATE * 0.8, "the rate of the policy holds")
        self.assertLess(took, 2 * SIZE / RATE, "three take the time of one, not of three")

        sent = self.sent()
        self.assertEqual(len(sent), 3, sent)
        out = [size for source, _, size in sent if source == "alpha"]
        self.assertEqual(len(out), 1, sent)
        self.assertLess(out[0], SIZE * 1.05, sent)
        for node in TARGETS:
            self.assertEqual(self.digests(node), {hashlib.sha256(content).hexdigest()}, node)

    def test_a_node_that_dies_in_the_middle_is_spliced_out(self):
        content = os.urandom(SIZE)
        (self.files / "weights.bin").write_bytes(content)
        model = 'model :big do\n  file "weights.bin"\nend'
        self.apply(model)
        wait_for("the model at its source", lambda: self.copies() == ["alpha"])
        self.apply(model, f'replicate :models do\n  from :alpha\n  to [:beta, :gamma, :delta]\n'
                          f'  max_rate "{RATE // 1_000_000} MB/s"\nend')
        tail = wait_for("bytes at the end of the chain", self.tail)
        self.fleet.kill(tail["source"])
        others = sorted({"alpha", *TARGETS} - {tail["source"]})
        wait_for("the copies of the others", lambda: self.copies() == others)
        self.fleet.up()
        wait_for("all copies", lambda: self.copies() == ["alpha", *sorted(TARGETS)])
        for node in TARGETS:
            self.assertEqual(self.digests(node), {hashlib.sha256(content).hexdigest()}, node)

    def tail(self):
        """The last hop, once bytes have come so far."""
        rows = self.transfers()
        senders = {row["source"] for row in rows}
        return next((row for row in rows if row["target"] not in senders and row["done"] > 0), None)

    def transfers(self):
        return self.fleet.ask("transfers")["transfers"]

    def copies(self):
        rows = [row for row in self.fleet.ask("models")["models"] if row["name"] == "big"]
        return sorted(copy["node"] for row in rows for copy in row["copies"] if copy["up_to_date"])

    def sent(self):
        """(source, target, bytes) of each transfer that events tell of."""
        found = re.findall(r"(\w+) -> (\w+), ([\d.]+) (\w+)", self.fleet.do("events").stdout)
        return [(source, target, float(size) * UNITS[unit]) for source, target, size, unit in found]

    def digests(self, node):
        paths = self.fleet.pool(node).rglob("weights.bin")
        return {hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


if __name__ == "__main__":
    unittest.main()
