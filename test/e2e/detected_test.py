"""A fleet whose GPUs are those that the machine's own tools tell of.

The tools are recorded ones, in PATH before the machine's; from there on all is real: the agent's helper asks
them, the agent offers what it found, the controller places jobs by it, and jobs see what they were given.
"""

import json
import os
import shutil
import unittest

from support import ROOT, RUNNING, TWO, UNPLACEABLE, FleetCase, wait_for

COLUMNS = ["index", "uuid", "pci.bus_id", "memory.total", "memory.used", "memory.free", "utilization.gpu",
           "temperature.gpu", "power.draw", "driver_version", "compute_cap", "mig.mode.current", "name"]
FIRST, SECOND = "GPU-a1e0cfa9-c5bc-2f1d-1d7b-b8e76bcd9f7b", "GPU-be5eb9d8-b853-3308-e076-420a4f373c06"
PARENT = "GPU-9f33e238-b1d8-9e41-8d82-b935d2870f96"
INSTANCES = ["MIG-76af1172-a394-2435-2583-bdd65e549eab", "MIG-2238933e-b4d8-b738-f1bd-1690c2a325ae"]
DISPATCHER = """#!/bin/sh
cd "$(dirname "$0")" || exit 1
case "$1" in
--query-gpu=*) exec ./csv/nvidia-smi "$@" ;;
--query-compute-apps=*) exec cat apps ;;
-L) exec cat list ;;
-q) exec cat xml ;;
*) exit 1 ;;
esac
"""


def card(index, uuid, bus, used=1, busy=0, name="NVIDIA GeForce RTX 4090", total=24564, mig="[N/A]"):
    return [index, uuid, f"00000000:{bus}:00.0", total, used, total - 354 - used, busy, 28, "11.02", "535.161.07",
            "8.9", mig, name]


class RecordedSmi:
    """An nvidia-smi that answers every question from what was last said here."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "csv").mkdir(parents=True)
        for path in (folder / "csv/nvidia-smi", folder / "nvidia-smi"):
            shutil.copy(ROOT / "test/gpu/fake_tool.py", path)
            path.chmod(0o755)
        (folder / "nvidia-smi").write_text(DISPATCHER)
        for name in ("apps", "list", "xml"):
            self.say(name, "")

    def say(self, name, text):
        new = self.folder / "new"
        new.write_text(text)
        new.rename(self.folder / name)

    def cards(self, *rows):
        text = "".join(", ".join(map(str, row)) + "\n" for row in rows)
        record = {"text": text, "status": 0, "mode": "csv", "columns": COLUMNS, "asks": str(self.folder / "asks")}
        self.say("csv/nvidia-smi.record.json", json.dumps(record))


class DetectedCase(FleetCase):
    nodes = [{"name": "alpha", "pool": "tank", "gpus": "auto"}]
    starts_up = False

    def setUp(self):
        super().setUp()
        self.smi = RecordedSmi(self.folder / "tools")
        path = f"{self.folder / 'tools'}:{self.fleet.environment['PATH']}"
        self.fleet.environment.update(PATH=path, CUDA_VISIBLE_DEVICES="", CUDA_DEVICE_ORDER="")
        for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES"):
            self.fleet.environment.pop(name, None)

    def gpus(self):
        return self.fleet.ask("gpus")["gpus"]

    def offered(self):
        """Names of what the fleet offers, once the first probe is in."""
        return [gpu["gpu"]["uuid"] for gpu in wait_for("the first probe", self.gpus)]

    def held(self, name, body):
        """A job that says what it was given and stays until `allow` lets it go."""
        self.files.mkdir(exist_ok=True)
        script = f'echo "sees $CUDA_VISIBLE_DEVICES"; while [ ! -e {self.gate(name)} ]; do sleep 0.1; done'
        return self.shell(name, script, body)

    def seen_by(self, name):
        self.fleet.wait_state(RUNNING + ("succeeded",), name)
        lines = wait_for(f"{name} to say what it sees", lambda: [
            line for line in self.fleet.zedctl("logs", name, "--all").stdout.splitlines() if line.startswith("sees ")])
        return lines[-1].split(" ", 1)[1]


class WholeCards(DetectedCase):
    def test_strangers_history_and_a_card_that_breaks(self):
        stranger = os.getpid()
        self.smi.cards(card(0, FIRST, "01", used=20480, busy=97), card(1, SECOND, "25"))
        self.smi.say("apps", f"{FIRST}, {stranger}, /opt/a,b/worker, 20400\n")
        self.fleet.up()
        self.assertEqual(self.offered(), [FIRST, SECOND])

        # What a stranger uses is used: one card is free, two are not.
        self.fleet.do("match", "--requires", "vram=20")
        refused = self.fleet.zedctl("match", "--requires", "vram=20", "--requires", "gpus=2", status=UNPLACEABLE)
        self.assert_says(refused, "not used by others", "20.0 GiB used by processes that are not Zed's")
        self.apply(self.held("job", "requires vram: 20\nretries 0"))
        self.fleet.do("dispatch", "job")
        self.assertEqual(self.seen_by("job"), SECOND)

        # Figures are kept: more than one sample, by the same names, each as the tool told it.
        wait_for("a history", lambda: all(len(gpu["history"]) > 1 for gpu in self.gpus()))
        sample = self.gpus()[0]["history"][-1]
        self.assertEqual([sample[key] for key in ("utilization", "used", "temperature", "power", "processes")],
                         [97, 20480 << 20, 28, 11.02, 1])

        # The stranger leaves, the job's card breaks: the job goes on there, and nothing is renumbered.
        self.smi.say("apps", "")
        broken = card(1, SECOND, "25")
        broken[3:9] = ["[GPU requires reset]"] * 6
        self.smi.cards(card(0, FIRST, "01"), broken)
        wait_for("the job to see the other card", lambda: self.seen_by("job") == FIRST)
        self.assertEqual([(gpu["gpu"]["uuid"], gpu["gpu"]["health"]) for gpu in self.gpus()],
                         [(FIRST, "ok"), (SECOND, "reset-required")])
        self.allow(1)
        self.fleet.wait_state("succeeded")

    def test_a_driver_that_is_loaded_after_the_agent_is_not_missed(self):
        self.smi.cards()
        self.fleet.up()
        wait_for("a probe that finds nothing", (self.smi.folder / "asks").exists)
        self.assertEqual(self.gpus(), [])
        self.smi.cards(card(0, FIRST, "01"))
        self.assertEqual(self.offered(), [FIRST])

    def test_shares_of_one_card_and_the_whole_other(self):
        self.smi.cards(card(0, FIRST, "01", used=8192), card(1, SECOND, "25"))
        self.smi.say("apps", f"{FIRST}, {os.getpid()}, worker, 8192\n")
        self.fleet.up()
        self.assertEqual(self.offered(), [FIRST, SECOND])
        share = "requires vram: 8, share: true"
        self.apply(self.held("whole", "requires vram: 20"), self.held("one", share), self.held("two", share))
        self.fleet.do("dispatch", "whole")
        self.assertEqual(self.seen_by("whole"), SECOND)
        self.fleet.do("dispatch", "one")
        self.assertEqual(self.seen_by("one"), FIRST)
        # 24 GiB less the driver's, the stranger's 8 and the 8 that are promised.
        self.fleet.do("dispatch", "two")
        self.assert_says(self.fleet.do("why", "two"), "one")
        self.assertEqual(self.fleet.state("two"), "pending")
        self.allow(1, "one")
        self.assertEqual(self.seen_by("two"), FIRST)


XML = """<?xml version="1.0" ?>
<nvidia_smi_log><driver_version>510.47.03</driver_version><cuda_version>11.6</cuda_version>
<gpu id="00000000:00:04.0"><product_name>NVIDIA A100-SXM4-40GB</product_name><uuid>{parent}</uuid>
<mig_mode><current_mig>Enabled</current_mig></mig_mode>
<fb_memory_usage><total>40960 MiB</total><used>38 MiB</used></fb_memory_usage>
<mig_devices>{instances}</mig_devices></gpu></nvidia_smi_log>
"""
INSTANCE = """<mig_device><index>{index}</index><gpu_instance_id>{index}</gpu_instance_id>
<compute_instance_id>0</compute_instance_id><fb_memory_usage><total>19968 MiB</total><used>19 MiB</used>
</fb_memory_usage></mig_device>"""


class Instances(DetectedCase):
    def test_the_instances_of_a_divided_card_are_what_is_offered(self):
        self.smi.cards(card(0, PARENT, "04", name="NVIDIA A100-SXM4-40GB", total=40960, mig="Enabled"))
        self.smi.say("xml", XML.format(parent=PARENT, instances="".join(INSTANCE.format(index=i) for i in range(2))))
        self.smi.say("list", f"GPU 0: NVIDIA A100-SXM4-40GB (UUID: {PARENT})\n" + "".join(
            f"  MIG 3g.20gb     Device  {i}: (UUID: {uuid})\n" for i, uuid in enumerate(INSTANCES)))
        self.fleet.up()
        wait_for("the instances", lambda: set(INSTANCES) <= set(self.offered()))
        # Nobody gets the card that they are parts of, and no process sees two of them.
        self.fleet.zedctl("match", "--requires", "vram=40", status=UNPLACEABLE)
        self.fleet.zedctl("match", "--requires", "gpus=2", status=UNPLACEABLE)
        self.fleet.do("match", "--requires", "vram=20")
        self.apply(*(self.held(name, "requires vram: 16") for name in ("one", "two", "three")))
        for name in ("one", "two"):
            self.fleet.do("dispatch", name)
        self.assertEqual({self.seen_by("one"), self.seen_by("two")}, set(INSTANCES))
        self.fleet.do("dispatch", "three")
        self.assertEqual(self.fleet.state("three"), "pending")
        freed = self.seen_by("two")
        self.allow(1, "two")
        self.assertEqual(self.seen_by("three"), freed)


DECLARED = """
node :alpha do
  gpu "RTX 3090", vram: 24
end
node :beta do
  gpu "A100", vram: 80, count: 2
  labels ["fast-disk"]
end
model :large do
  file "large.bin"
end
replicate :large do
  from :alpha
  to :beta
  max_rate "10 MB/s"
end
"""


class TheRestOfTheMachine(FleetCase):
    nodes = TWO

    def node(self, name):
        return next(row for row in self.fleet.ask("nodes")["nodes"] if row["node"]["name"] == name)

    def test_what_is_declared_detected_and_measured(self):
        (self.files / "large.bin").write_bytes(os.urandom(8_000_000))
        said = self.apply(DECLARED)
        differs = ["declares RTX 3090 24 GB", "detected NVIDIA GeForce RTX 4090 24 GB"]
        self.assert_says(said, *differs)
        self.assert_says(self.fleet.do("plan", self.files / "cluster.exs"), *differs)
        self.assertEqual([len(self.node(name)["differences"]) for name in ("alpha", "beta")], [1, 0])

        facts = self.node("beta")["node"]["facts"]
        self.assertEqual((facts["os"], facts["cpus"]), ("linux", os.cpu_count()))
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self.assertEqual(facts["memory"], memory)
        self.assertIn(facts["power"], ("", "mains", "battery"))
        match = self.fleet.ask("match", "--requires", "labels=fast-disk")
        self.assertEqual([row["node"] for row in match["matches"]], ["beta"])

        # How fast data goes is what a transfer took: this one was held to 10 MB a second.
        link = wait_for("the transfer to be measured", lambda: self.node("alpha")["links"])[0]
        self.assertEqual(link["to"], "beta")
        self.assertGreater(link["rate"], 2_000_000)
        self.assertLess(link["rate"], 12_000_000)


if __name__ == "__main__":
    unittest.main()
